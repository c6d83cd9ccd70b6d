"""A pytest plugin for PyTorch's own tests: `-p pytorch_tests`.

They stand on `torch.testing._internal`, which lies in PyTorch's wheel and not in taeda's. Under
taeda this plugin reads it from the wheel in .venv, with empty modules for what it imports of the
compiler, and supplies the private names that it asks for while it is imported. The checkout is
older than the wheel: names that its tests import and the wheel has dropped decorate nothing.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
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
    "torch._vendor", "torchgen",
)  # fmt: skip
EMPTY = (
    "torch._refs", "torch._prims", "torch._prims_common", "torch._decomp", "torch._inductor",
    "torch._lazy", "torch._native", "torch._dynamo.testing", "torch._dynamo.trace_rules",
    "torch._logging.scribe", "torch._subclasses.fake_tensor", "torch._utils_internal",
    "torch.backends.python_native", "torch.backends.xnnpack", "torch.utils._triton",
)  # fmt: skip
DROPPED = {"common_utils": ["skipIfMps"], "common_cuda": ["tf32_is_not_fp32"]}
PARTS = ["common_utils", "common_device_type", "common_cuda"]
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

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())


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
    "torch.jagged": "jagged",
}


class EmptyModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return sys.modules.get(f"{self.__name__}.{name}") or Nothing()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if any(name == part or name.startswith(part + ".") for part in FROM_WHEEL):
            folder = WHEEL.parent.joinpath(*name.split(".")[:-1])
            return importlib.machinery.PathFinder.find_spec(name, [str(folder)])
        if any(name == part or name.startswith(part + ".") for part in EMPTY):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


def supply(owner, name, value=None):
    if not hasattr(owner, name):
        setattr(owner, name, Nothing() if value is None else value)


MISSING = re.compile(
    r"cannot import name '(?P<name>\w+)' from '(?P<owner>[\w.]+)'|"
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<attribute>\w+)'|"
    r"'_OpNamespace' '(?P<namespace>\w+)' object has no attribute '(?P<operator>\w+)'"
)


def supply_until_it_imports(module):
    """Imports a module of the wheel, with Nothing for each name that it misses."""
    for _ in range(100):
        try:
            return importlib.import_module(module)
        except (ImportError, AttributeError) as error:
            if not (found := MISSING.match(str(error))):
                raise
            if found["operator"]:
                operators = getattr(importlib.import_module("torch").ops, found["namespace"])
                vars(operators)[found["operator"]] = Nothing()
            else:
                owner = importlib.import_module(found["owner"] or found["module"])
                supply(owner, found["name"] or found["attribute"])
    raise ImportError(f"{module} misses too many names")


def prepare_taeda():
    import torch

    for name in (*EMPTY, *FROM_WHEEL):
        parent = name.rpartition(".")[0]
        if parent:
            vars(importlib.import_module(parent)).setdefault("__path__", [])
    sys.meta_path.insert(0, Finder())
    torch.ops.mkldnn.__dict__["_is_mkldnn_acl_supported"] = lambda: False
    for part in FROM_WHEEL:  # taeda's own go, so that the wheel's are found
        for name in [n for n in sys.modules if n == part or n.startswith(part + ".")]:
            del sys.modules[name]
    for path, value in STATE.items():
        owner, name = torch, path.removeprefix("torch.")
        while "." in name:
            first, name = name.split(".", 1)
            owner = getattr(owner, first)
        supply(owner, name, value)
    torch.cuda.jiterator = Nothing()
    for name, stand_in in QUANTIZED.items():
        setattr(torch, name, getattr(torch, stand_in))


def pytest_configure(config):
    if "taeda" in sys.modules:
        prepare_taeda()
    for part in PARTS:
        module = supply_until_it_imports(f"torch.testing._internal.{part}")
        for name in DROPPED.get(part, ()):
            supply(module, name)


@pytest.fixture(autouse=True)
def _one_thread():
    import torch

    torch.set_num_threads(1)
