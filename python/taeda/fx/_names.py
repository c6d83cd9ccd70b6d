"""How functions and types are called in the code of graphs."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any

import taeda
from taeda._ops import OpOverload, OpOverloadPacket
from taeda.nn._functional.handover import BUILT_IN

_PUBLIC_MODULES = ("", "nn.functional", "special", "linalg", "functional")


def type_repr(kind: object) -> str:
    """The short name of a type, the repr of anything else."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return f"{torch_name(kind.__module__)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind)


def torch_name(module: str) -> str:
    """The name of a module as programs know it: 'torch.nn' of 'taeda.nn'."""
    first, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if first == "taeda" else module


def follow(path: str) -> Any:
    """The object that a dotted path below torch leads to, or None."""
    found: Any = taeda
    for part in filter(None, path.split(".")):
        found = getattr(found, part, None)
    return found


def is_torch_module(module: str | None) -> bool:
    """Whether a module is part of torch."""
    return module is not None and module.partition(".")[0] in ("taeda", "torch")


def _owner(function: Any) -> str:
    """The path of the module below torch where programs find `function`: 'nn.functional'."""
    module = function.__module__.partition(".")[2]
    public = ".".join(part for part in module.split(".") if not part.startswith("_"))
    plain = function.__name__.startswith("_") or isinstance(function, types.BuiltinFunctionType)
    if function.__name__ in BUILT_IN and public == "nn.functional":
        public = "_C._nn"
    for owner in ("" if plain else public, public, *_PUBLIC_MODULES):
        if getattr(follow(owner), function.__name__, None) is function:
            return owner
    return module


def _lambda_name(function: Callable) -> str:
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except Exception as error:
        raise RuntimeError("Unable to represent lambda") from error


def is_tensor_member(function: Any) -> bool:
    """Whether `function` is one of Tensor's methods."""
    name = getattr(function, "__name__", "")
    descriptors = (types.MethodDescriptorType, types.WrapperDescriptorType)
    qualified = getattr(function, "__qualname__", "") == f"Tensor.{name}"
    member = getattr(taeda.Tensor, name, None) is function
    return member and (isinstance(function, descriptors) or qualified)


def qualified_name(function: Callable) -> str:
    """'torch.add', 'torch.nn.functional.relu', 'torch.ops.aten.add.Tensor', 'my_module.f'."""
    if isinstance(function, OpOverload | OpOverloadPacket):
        return f"torch.ops.{function}"
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    if is_tensor_member(function):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        name = _lambda_name(function)
    module = function.__module__
    if module is None:
        raise RuntimeError(f"cannot find module for {function}")
    if is_torch_module(module):
        return ".".join(filter(None, ["torch", _owner(function), name]))
    return f"{module}.{name}"


def is_from_torch(function: Any) -> bool:
    """Whether code that knows torch alone reaches the object by its qualified name."""
    if isinstance(function, OpOverload | OpOverloadPacket) or is_tensor_member(function):
        return True
    if not is_torch_module(getattr(function, "__module__", None)):
        return False
    name = getattr(function, "__name__", None)
    return name is not None and getattr(follow(_owner(function)), name, None) is function
