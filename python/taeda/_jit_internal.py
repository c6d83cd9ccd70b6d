"""Marks for the script compiler, and questions about types. The marks change nothing."""

from __future__ import annotations

import builtins
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, Final, TypeVar

from taeda.futures import Future  # noqa: F401

Function = TypeVar("Function", bound=Callable)


class BroadcastingListCls:
    """``BroadcastingList2[int]``: a list of two numbers, or one number for both."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1


class FunctionModifiers:
    """What the marks tell the compiler."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = (
        "if this method is not scripted, copy the python method onto the scripted model"
    )
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _marked(function: Any, mark: str) -> Any:
    try:
        function._torchscript_modifier = mark
    except AttributeError:  # a builtin, a property
        pass
    return function


def export(fn: Function) -> Function:
    """Marks a method for compilation."""
    return _marked(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Marks what scripts do not call."""
    if isinstance(fn, property):
        for accessor in (fn.fget, fn.fset):
            if accessor is not None:
                unused(accessor)
        return fn
    return _marked(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a method that scripts leave to Python; also as ``@ignore(drop=True)``."""
    if callable(drop):
        return _marked(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function, got {drop}"
        )
    mark = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE
    return functools.partial(_marked, mark=mark)


def _drop(fn: Function) -> Function:
    return _marked(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: Function) -> Function:
    return _marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> str:
    """The mark of a function."""
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "_torchscript_modifier", FunctionModifiers.DEFAULT)


def is_scripting() -> bool:
    """Whether the code runs inside a compiled script: never."""
    return False


def _overload(func: Function) -> Function:
    """Marks a declaration of a function for other types; the last definition is called."""
    return func


_overload_method = _overload


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable,
    if_false: Callable,
    module_name: str,
    func_name: str,
) -> Callable:
    """A function that calls one of two by a boolean argument."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__module__, fn.__name__ = module_name, func_name
    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    return fn


class _Await:
    """A call that runs when its result is asked for."""

    def __init__(self, function: Callable):
        self._function, self._values = function, []  # type: ignore[var-annotated]

    def wait(self) -> Any:
        """The result."""
        if not self._values:
            self._values.append(self._function())
        return self._values[0]


# --- types ---


def is_list(ann: Any) -> bool:
    """Whether an annotation is a list's."""
    return ann is list or typing.get_origin(ann) is list


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is a tuple's."""
    return ann is tuple or typing.get_origin(ann) is tuple


def is_dict(ann: Any) -> bool:
    """Whether an annotation is a dictionary's."""
    return ann is dict or typing.get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    """Whether an annotation is a union."""
    return typing.get_origin(ann) in (typing.Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is a union with None."""
    return is_union(ann) and type(None) in typing.get_args(ann)


def is_final(ann: Any) -> bool:
    """Whether an annotation is Final."""
    return ann is Final or typing.get_origin(ann) is Final


def _isinstance(obj: Any, target_type: Any) -> bool:
    """``isinstance`` that looks into containers."""
    if isinstance(target_type, tuple):
        return any(_isinstance(obj, kind) for kind in target_type)
    origin, items = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
        raise RuntimeError(
            f"Attempted to use {target_type} without a contained type. Please add a contained "
            "type, e.g. List[int]"
        )
    if is_union(target_type):
        return any(_isinstance(obj, kind) for kind in items)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_isinstance(k, items[0]) and _isinstance(v, items[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(items) and all(map(_isinstance, obj, items))
    return all(_isinstance(item, items[0]) for item in obj)
