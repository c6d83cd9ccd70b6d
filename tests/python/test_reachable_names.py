"""Every public name of PyTorch's main modules can be read, and dir() lists no name that cannot."""

import importlib
import sys
import types
from pathlib import Path

import pytest

import taeda

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import public_names as names

MODULES = "torch torch.Tensor torch.nn torch.nn.functional torch.linalg torch.fft".split()
# What PyTorch's modules have imported for themselves, and strings that its docstrings are made of.
OWN = set(
    """
    builtins cpp ctypes glob platform textwrap windows torch math warnings importlib np inspect os
    sys Optional threading functools dataclasses annotations grad Callable Any TypeVar TYPE_CHECKING
    profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
    common_notes common_args multi_dim_common factory_common_args reproducibility_notes
    sparse_support_notes tf32_notes BroadcastingList1 BroadcastingList2 BroadcastingList3 DType
    GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES Tensor assert_int_or_pair
    boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary
    has_torch_function_variadic
    """.split()
)


def found(of, name):
    value = of
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_pytorchs_names_are_here(name):
    theirs, mine = found(pytest.importorskip("torch"), name), found(taeda, name)
    public = {n for n in dir(theirs) if not n.startswith("_")} - OWN
    assert sorted(n for n in public if not hasattr(mine, n) and reached(mine, n) is None) == []


def reached(owner, name):
    """What a name is, where reading it raises: properties of objects do."""
    return vars(owner).get(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_what_can_be_read(name):
    owner = found(taeda, name)
    if isinstance(owner, types.ModuleType):
        assert [n for n in dir(owner) if not hasattr(owner, n)] == []


def module_of(package, name):
    """A module, also one that becomes an attribute only when it is imported."""
    return importlib.import_module(f"{package.__name__}.{name}")


def is_own(module, name):
    """Whether a name that a module holds is of it, rather than imported for its own use."""
    value = getattr(module, name, module)
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{module.__name__}.{name}"
    home = getattr(value, "__module__", None)
    return not isinstance(home, str) or home.startswith(("torch", "taeda", "builtins"))


def public_names(module):
    if isinstance(vars(module).get("m"), types.ModuleType):  # torch.backends' stand before theirs
        module = module.m
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {n for n in listed if hasattr(module, n)}
    return {n for n in dir(module) if not n.startswith("_") and is_own(module, n)}


def is_of_pytorchs(module, name):
    """Whether a name that PyTorch's module holds without __all__ is at home in that module."""
    home = getattr(getattr(module, name, None), "__module__", None)
    return hasattr(module, "__all__") or not home or home.startswith(module.__name__)


def has(module, name):
    """Whether a module has a name, be it only a module in it."""
    if hasattr(module, name) or hasattr(vars(module).get("m"), name):
        return True
    try:
        return importlib.import_module(f"{module.__name__}.{name}") is not None
    except ImportError:
        return False


def listed(table, name):
    return sorted(table.get(name, ("", ""))[0].split())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", names.MODULES)
def test_modules_have_pytorchs_names_but_those_listed(name):
    theirs = module_of(pytest.importorskip("torch"), name)
    mine = module_of(taeda, name)
    public = {n for n in public_names(theirs) if is_of_pytorchs(theirs, n)} - OWN
    constants = set(listed(names.CONSTANTS, name))
    missing = sorted(n for n in public - constants if not has(mine, n))
    assert missing == listed(names.MISSING, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*names.MAIN[:-1], *names.MODULES])
def test_modules_have_pytorchs_constants_but_those_listed(name):
    package = pytest.importorskip("torch")
    theirs, mine = (module_of(p, name) if name else p for p in (package, taeda))
    missing = sorted(n for n in names.constants(theirs) if not has(mine, n))
    assert missing == listed(names.CONSTANTS, name)


@pytest.mark.parametrize("name", "serialization utils.cpp_extension nn.functional onnx".split())
def test_plain_constants_have_pytorchs_values(name):
    theirs = module_of(pytest.importorskip("torch"), name)
    mine = module_of(taeda, name)
    plain = (int, str, float, dict, tuple)
    for n in names.constants(theirs) - set(listed(names.CONSTANTS, name)):
        value = getattr(theirs, n)
        if isinstance(value, plain) and n.isupper() and not isinstance(value, dict):
            assert getattr(mine, n) == value, n


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", names.MODULES)
def test_modules_have_no_other_public_names_but_those_listed(name):
    theirs = module_of(pytest.importorskip("torch"), name)
    mine = module_of(taeda, name)
    assert [n for n in dir(mine) if not hasattr(mine, n)] == []
    extra = sorted(n for n in public_names(mine) if not has(theirs, n))
    assert extra == listed(names.ADDED, name) or listed(names.ADDED, name) == ["*"]


REFUSED = {
    "Tensor.q_scale": "no quantized tensors",
    "Tensor.to_padded_tensor": "nested_tensor makes one",
    "Tensor.index": "index with tensors",
    "native_norm": "vector_norm",
    "nn.functional.scaled_mm": "_scaled_mm",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_raises_says_what_to_use(name):
    function = found(taeda, f"taeda.{name}")
    assert function._only_raises
    with pytest.raises(NotImplementedError, match=REFUSED[name]):
        function(taeda.ones(2), 1.0)


def test_quantized_layers_can_be_imported():
    assert taeda.nn.quantized is importlib.import_module("taeda.nn.quantized")
    with pytest.raises(NotImplementedError, match="quantized"):
        taeda.nn.quantized.Linear(2, 2)


WITHOUT_GROUPS = "make sure to call init_process_group"  # PyTorch's words, asked for a group


def called(value):
    """What calling a name that only raises says; of a decorator, calling what it decorates."""
    arguments = (taeda.ones(1),) if value.__qualname__.startswith("_refusing") else ()
    try:
        made = value(*arguments)
        made(len)() if callable(made) else None
    except (NotImplementedError, ValueError, AssertionError) as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
def test_all_that_only_raises_says_what_is_missing_and_what_to_use(monkeypatch):
    monkeypatch.setattr(taeda._C, "_cuda_initialize", lambda why: None)  # as with a device
    monkeypatch.setattr(taeda.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(taeda.accelerator, "_need", lambda: None)
    silent = {}
    for name, (value, why) in names.raising(taeda).items():
        said = called(value)
        missing, _, instead = why.partition("; ")
        if not ((said.endswith(f": {why}") and missing and instead) or WITHOUT_GROUPS in said):
            silent[name] = said
    assert silent == {}
