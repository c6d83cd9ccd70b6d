"""PyTorch's callables as taeda's: the same name, or the same code over taeda's names.

`translate(torch.linalg.svd)` is `taeda.linalg.svd`. Functions of the databases, such as
`lambda x, *args: x.expand(*args)`, are made anew with each global and closure translated, so that
they call taeda.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import taeda


class Missing(Exception):
    """taeda has no such name."""


class NotMirrored(Exception):
    """A tensor without strides (sparse, nested, quantized), or a module with parameters."""


# Searched in this order, so that the shortest public name of a function is found first.
_MODULES = """
torch torch.nn.functional torch.linalg torch.fft torch.special torch.masked torch.signal.windows
torch.functional torch.autograd torch.autograd.forward_ad torch.func torch._C._nn torch._C._linalg
torch._C._fft torch._C._special torch._C._VariableFunctions
""".split()


@functools.cache
def _paths() -> dict[int, str]:
    """id of a function -> where it is reached."""
    found: dict[int, str] = {}
    for module in _MODULES:
        owner = functools.reduce(getattr, module.split(".")[1:], torch)
        for name in sorted(dir(owner), key=lambda name: name.startswith("_")):
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, types.ModuleType):
                found.setdefault(id(value), f"{module}.{name}")
    for name in dir(torch.Tensor):
        found.setdefault(id(getattr(torch.Tensor, name)), f"torch.Tensor.{name}")
    return found


def reach(path: str) -> Any:
    """What taeda has under the name `torch.a.b`."""
    parts = path.split(".")[1:]
    found: Any = taeda
    for i, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(["taeda", *parts[: i + 1]]))
            except ImportError as error:
                raise Missing(path) from error
    if getattr(found, "_only_raises", False):
        raise Missing(path)
    return found


def _module(module: types.ModuleType) -> Any:
    name = module.__name__
    if name == "torch" or (name.startswith("torch.") and not name.startswith("torch.testing")):
        return reach(name)
    return module


def _names(code: types.CodeType) -> set[str]:
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, nested))


_functions: dict[int, tuple[Any, Any]] = {}


def _function(function: types.FunctionType) -> types.FunctionType:
    """The function's code over translated globals, defaults and closure."""
    if id(function) in _functions:
        return _functions[id(function)][1]
    globals_: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(
        function.__code__, globals_, function.__name__, function.__defaults__, cells
    )
    _functions[id(function)] = (function, made)
    made.__kwdefaults__ = function.__kwdefaults__
    for name in _names(function.__code__) & function.__globals__.keys():
        try:
            globals_[name] = translate(function.__globals__[name])
        except Missing:
            pass  # a NameError when it is used, if it is
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        try:
            cell.cell_contents = translate(old.cell_contents)
        except Missing:
            del _functions[id(function)]
            raise
    made.__defaults__ = tuple(map(translate, function.__defaults__ or ())) or None
    return made


def _of_overload(value: Any) -> Any:
    """torch.ops.aten.name or one of its overloads."""
    packet, _, overload = str(value).removeprefix("aten.").partition(".")
    found = getattr(taeda.ops.aten, packet, None)
    if found is None:
        raise Missing(f"torch.ops.aten.{packet}")
    return getattr(found, overload) if overload else found


@contextmanager
def _generator_restored() -> Iterator[None]:
    """What the databases call freeze_rng_state."""
    state = taeda.get_rng_state()
    try:
        yield
    finally:
        taeda.set_rng_state(state)


def _object(value: Any) -> Any:
    """A module without parameters or a dataclass, made anew with the same attributes; the number of
    an enumeration's member."""
    if hasattr(value, "__int__"):
        return int(value)
    cls = translate(type(value))
    if dataclasses.is_dataclass(value):
        names = [item.name for item in dataclasses.fields(value) if item.init]
        return cls(**{name: translate(getattr(value, name)) for name in names})
    if any(True for _ in value.parameters()):
        raise NotMirrored(type(value).__name__)
    made = cls()
    for name in vars(made).keys() - {"training"}:
        if not name.startswith("_"):
            setattr(made, name, getattr(value, name))
    return made


def translate(value: Any) -> Any:
    """What stands for PyTorch's `value` with taeda; other values are returned as they are."""
    if isinstance(value, types.ModuleType):
        return _module(value)
    if isinstance(value, functools.partial):
        return functools.partial(translate(value.func), *value.args, **value.keywords)
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return _of_overload(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(taeda, str(value).removeprefix("torch."))
    if value is torch.Tensor:
        return taeda.Tensor
    if id(value) in _paths() and callable(value):
        return reach(_paths()[id(value)])
    if type(value).__module__.startswith("torch.nn.") and not isinstance(value, torch.Tensor):
        return _object(value)
    if isinstance(value, types.FunctionType):
        if value.__name__ == "freeze_rng_state":
            return _generator_restored
        name = value.__module__ or ""
        if name.startswith("torch.testing._") or value.__closure__:
            return _function(value)
        if name.startswith("torch."):
            return reach(f"{name}.{value.__qualname__}")
    if isinstance(value, type) and value.__module__.split(".")[0] == "torch":
        return reach(f"{value.__module__}.{value.__qualname__}")
    return value
