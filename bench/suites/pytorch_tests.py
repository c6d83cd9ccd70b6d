"""A pytest plugin for PyTorch's own tests: `-p pytorch_tests`.

They stand on `torch.testing._internal`, which lies in PyTorch's wheel and not in taeda's. Under
taeda this plugin reads it from the wheel in .venv, with empty modules for what it imports of the
compiler, and supplies the private names that it asks for while it is imported. The checkout is
older than the wheel: names that its tests import and the wheel has dropped decorate nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = next(iter(ROOT.glob(".venv/lib/python*/site-packages/torch")), None)
FROM_WHEEL = (
    "torch.testing._internal", "torch.testing._comparison", "torch.testing._utils",
    "torch.testing._creation", "torch.utils._import_utils", "torch.utils._foreach_utils",
    "torch.utils._dtype_abbrs", "torch._vendor", "torchgen",
)  # fmt: skip
EMPTY = (
    "torch._prims", "torch._inductor", "torch._lazy", "torch._native", "torch._dynamo.testing",
    "torch._dynamo.trace_rules", "torch._logging.scribe", "torch._C._profiler",
    "torch.backends.python_native", "torch.backends.xnnpack",
)  # fmt: skip
INTERNAL = "torch.testing._internal"
# what the checkout imports of them and the wheel has dropped, by what stands for it
DROPPED = {
    "common_utils": {"skipIfMps": None, "IS_PPC": None},
    "common_cuda": {"tf32_is_not_fp32": None},
    "common_nn": {"new_module_tests": lambda nn: nn.get_new_module_tests()},
    "common_methods_invocations": {"binary_ufuncs_and_refs": lambda them: them.binary_ufuncs},
}  # fmt: skip
# private names of taeda's modules, read from the wheel's files
BORROWED = {"torch.autograd.gradcheck": ["_get_numerical_jacobian", "_iter_tensors"]}
# dtypes that tests are named by, and others whose tests nobody counts
QUANTIZED = {
    "quint8": "float8_e4m3fn", "qint8": "float8_e5m2",
    "qint32": "float8_e4m3fnuz", "quint4x2": "float8_e5m2fnuz",
}  # fmt: skip


class Nothing:
    """Stands for what is not there: false, empty, a decorator that changes nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __or__(self, other):
        return self

    __ror__ = __getitem__ = __or__

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())


NO_NAMES = types.SimpleNamespace(__all__=[])
# What each test asks for at its start and end: no modes and no invariants to restore.
STATE = {
    "torch._C.ScriptDict": Nothing,
    "torch._C.ScriptList": Nothing,
    "torch._C._len_torch_function_stack": lambda: 0,
    "torch._C._get_torch_function_state": lambda: 0,
    "torch._C._set_torch_function_state": lambda state: None,
    "torch._C._get_graph_executor_optimize": lambda *mode: False,
    "torch._C._jit_set_num_profiled_runs": lambda *runs: 0,
    "torch.sparse.check_sparse_tensor_invariants.is_enabled": staticmethod(lambda: False),
    "torch.sparse.check_sparse_tensor_invariants.enable": staticmethod(lambda: None),
    "torch.sparse.check_sparse_tensor_invariants.disable": staticmethod(lambda: None),
    "torch.ao.nn.qat.modules": NO_NAMES,
    "torch.ao.nn.quantizable.modules": NO_NAMES,
    "torch.ao.nn.quantized.modules": NO_NAMES,
    "torch.ao.nn.quantized.MaxPool2d": Nothing,
    "torch.nn.LinearCrossEntropyLoss": Nothing,
    "torch._C._TorchFunctionState": types.SimpleNamespace(ENABLED=0),
    "torch._C._DisableFuncTorch": contextlib.nullcontext,
    "torch.jagged": "jagged",
    "torch._mkldnn": "torch._mkldnn",
}
# What else the wheel's modules and the tests ask for while they are imported.
MISSED = """
    _chunk_cat _foreach_clone _foreach_max _foreach_mm _native_batch_norm_legit
    _batch_norm_with_update _scaled_mm_v2 _unsafe_masked_index _unsafe_masked_index_put_accumulate
    native_dropout_backward jiterator_unary jiterator_binary
    jiterator_4inputs_with_extra_args jiterator_binary_return_by_ref jiterator_2inputs_2outputs
    autograd.kineto_available autograd._calculate_shape autograd.profiler_util._format_time
    nn.parallel._functions.Broadcast nn.Container profiler.itt nn.functional.linear_cross_entropy
    _C._ConvBackend _C.ScriptFunction _C.ScriptMethod _C._get_cpu_capability backends.python_native
""".split()


class EmptyModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return sys.modules.get(f"{self.__name__}.{name}") or Nothing()


class Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are empty here."""

    def find_spec(self, name, path=None, target=None):
        if any(name == part or name.startswith(part + ".") for part in EMPTY):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


class Wheel(importlib.abc.MetaPathFinder):
    """Finds modules in the wheel."""

    def find_spec(self, name, path=None, target=None):
        if not any(name == part or name.startswith(part + ".") for part in FROM_WHEEL):
            return None
        folder = WHEEL.parent.joinpath(*name.split(".")[:-1])
        spec = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Supplied(name, spec.loader.path)
        return spec


class Supplied(importlib.machinery.SourceFileLoader):
    """Runs a module of the wheel, with Nothing for each name that it misses."""

    def exec_module(self, module):
        before = dict(vars(module))
        for _ in range(200):
            vars(module).clear()
            vars(module).update(before)
            try:
                super().exec_module(module)
                break
            except (ImportError, AttributeError) as error:
                supply_missing(error)
        for name, stand_in in DROPPED.get(module.__name__.removeprefix(f"{INTERNAL}."), {}).items():
            supply(module, name, stand_in and stand_in(module))
        if module.__name__ == f"{INTERNAL}.common_device_type":
            module.instantiate_device_type_tests = adapted(module.instantiate_device_type_tests)


def adapted(instantiate):
    """Drops what the wheel's classes of tests refuse.

    That is tests that would get the name of another one, and a setUp that calls the one after its
    own class by `self.__class__`, which the wheel derives: it would call itself.
    """

    def instantiate_tests(tests, *args, **options):
        own = vars(tests)
        for name in [name for name in own if f"{name}_cpu" in own]:
            delattr(tests, name)
        for name in [name for name in ("setUp", "tearDown") if name in own]:
            if "__class__" in own[name].__code__.co_names:
                delattr(tests, name)
        return instantiate(tests, *args, **options)

    return instantiate_tests


def supply(owner, name, value=None):
    if not hasattr(owner, name):
        setattr(owner, name, Nothing() if value is None else value)


MISSING = re.compile(
    r"cannot import name '(?P<name>\w+)' from '(?P<owner>[\w.]+)'|"
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<attribute>\w+)'|"
    r"'_OpNamespace' '(?P<namespace>\w+)' object has no attribute '(?P<operator>\w+)'"
)


def supply_missing(error):
    """Nothing for the name that an import did not find."""
    if not (found := MISSING.match(str(error))):
        raise error
    if found["operator"]:
        operators = getattr(importlib.import_module("torch").ops, found["namespace"])
        vars(operators)[found["operator"]] = Nothing()
    else:
        owner = importlib.import_module(found["owner"] or found["module"])
        supply(owner, found["name"] or found["attribute"])


def borrow(module, names):
    """Sets names of a module to what the wheel's file of it defines."""
    file = WHEEL.parent.joinpath(*module.split(".")).with_suffix(".py")
    loader = Supplied(f"wheel.{module}", str(file))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    for name in names:
        supply(importlib.import_module(module), name, getattr(theirs, name))


def prepare_taeda():
    import torch

    for name in (*EMPTY, *FROM_WHEEL):
        parent = name.rpartition(".")[0]
        if parent:
            vars(importlib.import_module(parent)).setdefault("__path__", [])
    sys.meta_path.insert(0, Empty())
    sys.modules["torch._prims.utils"] = importlib.import_module("torch._prims_common")
    torch.ops.mkldnn.__dict__["_is_mkldnn_acl_supported"] = lambda: False
    for part in FROM_WHEEL:  # taeda's own go, so that the wheel's are found
        for name in [n for n in sys.modules if n == part or n.startswith(part + ".")]:
            del sys.modules[name]
    for path, value in (STATE | dict.fromkeys(f"torch.{name}" for name in MISSED)).items():
        owner, _, name = path.rpartition(".")
        supply(pkgutil.resolve_name(owner), name, value)
    for module, names in BORROWED.items():
        borrow(module, names)
    torch.cuda.jiterator = Nothing()
    for name, stand_in in QUANTIZED.items():
        setattr(torch, name, getattr(torch, stand_in))


def pytest_configure(config):
    import torch

    if "taeda" in sys.modules:
        prepare_taeda()
    supply(torch._C, "has_mkldnn", False)
    sys.meta_path.insert(0, Wheel())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Files set the default dtype for themselves alone, as each has a process of its own there."""
    import torch

    torch.set_default_dtype(torch.float32)
    yield
    collector.default_dtype = torch.get_default_dtype()


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(request):
    import torch

    torch.set_default_dtype(request.node.getparent(pytest.Module).default_dtype)
    torch.set_num_threads(1)
