"""inspect.signature of every public function and method."""

import importlib
import inspect
import types

import pytest

import taeda as torch

MODULES = ("", "nn.functional", "linalg", "fft", "special", "autograd", "cuda", "func", "nn.init")
# What Python itself gives no signature for: exceptions and the types of C structures.
UNKNOWN = (BaseException, tuple)
# Without an argument that PyTorch's have (out, align_to_window), or with another name for one.
OTHER_NAMES = {"normalize", "stft", "split"}


def public_functions(module):
    """(name, function or class) of what a module offers and does not only refuse."""
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        refused = isinstance(value, type) and issubclass(value, UNKNOWN)
        refused |= hasattr(value, "_schema")  # operators as torch.ops has them
        if not refused and not getattr(value, "_only_raises", False):
            yield name, value


def module(library, name):
    return importlib.import_module(f"{library.__name__}.{name}") if name else library


@pytest.mark.parametrize("name", MODULES)
def test_every_function_of_a_module_has_a_signature(name):
    without = []
    for function, value in public_functions(module(torch, name)):
        try:
            inspect.signature(value)
        except (TypeError, ValueError):
            without.append(function)
    assert without == []


def test_every_method_of_tensor_has_a_signature():
    without = []
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if name.startswith("_") or not callable(value):
            continue
        try:
            found = inspect.signature(value)
        except (TypeError, ValueError):
            without.append(name)
        else:
            first = next(iter(found.parameters), None)
            static = isinstance(inspect.getattr_static(torch.Tensor, name), staticmethod)
            assert static or first in ("self", "input") or inspect.ismethod(value), name
    assert without == []


@pytest.mark.parametrize(
    "owner", [torch.Generator, torch.UntypedStorage, torch.dtype, torch.Size, torch.device]
)
def test_every_method_of_a_class_of_the_core_has_a_signature(owner):
    methods = [value for name, value in vars(owner).items() if not name.startswith("_")]
    for method in filter(callable, methods):
        inspect.signature(method)


def test_functions_written_in_python_or_without_a_docstring_have_a_signature():
    names = list(inspect.signature(torch.hash_tensor).parameters)
    assert names == ["input", "dim", "keepdim", "mode", "out"]
    assert str(inspect.signature(torch.overrides.has_torch_function_variadic)).startswith("(*args")


def names_of(signature):
    """The parameters that can be given by name."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in signature.parameters.values() if p.kind in by_name]


@pytest.mark.parametrize("name", ["nn.functional", "", "nn.init"])
def test_parameters_have_pytorchs_names_where_it_tells_them(name):
    oracle = pytest.importorskip("torch")
    ours, theirs = module(torch, name), module(oracle, name)
    different, compared = [], 0
    for function, value in public_functions(ours):
        try:
            expected = inspect.signature(getattr(theirs, function))
        except (AttributeError, TypeError, ValueError):
            continue
        gone = getattr(value, "__module__", "") == "taeda._functions.removed"
        if not (isinstance(value, type) or gone or "args" in expected.parameters):
            compared += 1
            if not set(names_of(expected)) <= set(names_of(inspect.signature(value))):
                different.append(function)
    assert compared > 10 and set(different) <= OTHER_NAMES, (compared, different)


def test_names_of_builtin_functions_are_those_of_pytorchs_schemas():
    """For what PyTorch writes in C++ it gives no signature, but the operators have schemas."""
    oracle = pytest.importorskip("torch")
    different, compared = [], 0
    for name, value in public_functions(torch):
        overloads = oracle._C._jit_get_schemas_for_operator(f"aten::{name}")
        if not inspect.isbuiltin(value) or not overloads:
            continue
        known = {a.name for schema in overloads for a in schema.arguments}
        known = {"input" if a == "self" else a for a in known} | {"out", "requires_grad"}
        known |= {a + "_" for a in known}  # from is a word of Python
        compared += 1
        if others := set(names_of(inspect.signature(value))) - known:
            different.append((name, others))
    assert compared > 400 and {name for name, _ in different} <= {"orgqr", "tensor"}, different


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (torch.add, "(input, other, *, alpha=1, out=None)"),
        (torch.sum, "(input, dim=None, keepdim=False, *, dtype=None, out=None)"),
        (torch.Tensor.view, "(self, /, *size, dtype=None)"),
        (torch.Tensor.add_, "(self, /, other, *, alpha=1)"),
        (torch.Tensor.random_, "(self, /, from_=None, to=None, *, generator=None)"),
        (torch.nn.functional.linear, "(input, weight, bias=None)"),
        (torch.Tensor.size, "(self, /, dim=None)"),
        (torch.Tensor.to, "(self, /, *args, **kwargs)"),
        (torch.Generator, "(device='cpu')"),
        (torch.manual_seed, "(seed)"),
        (torch.tensor, "(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_signatures_read_as_one_calls(function, text):
    assert str(inspect.signature(function)) == text


def test_a_signature_binds_what_the_function_takes():
    bound = inspect.signature(torch.sum).bind(torch.ones(2), dim=0)
    assert torch.sum(*bound.args, **bound.kwargs).item() == 2
    assert torch.add.__doc__.startswith("add(input: Tensor | Number, other: ")
