"""An operator's schema from the annotations of a Python function."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import taeda

UNKNOWN = "unknown"


def _schema_types() -> dict[Any, str]:
    numbers = {
        int: "SymInt",
        float: "float",
        bool: "bool",
        int | float | bool: "Scalar",
    }
    singles = {
        **numbers,
        taeda.Tensor: "Tensor",
        str: "str",
        taeda.dtype: "ScalarType",
        taeda.device: "Device",
    }
    found: dict[Any, str] = {}
    for kind, name in singles.items():
        found[kind] = name
        found[kind | None] = f"{name}?"
        if name in ("str", "ScalarType", "Device"):
            continue
        for sequence in (collections.abc.Sequence, list):
            found[_list_key(sequence, kind)] = f"{name}[]"
            found[_optional_key(_list_key(sequence, kind))] = f"{name}[]?"
            if name == "Tensor":
                element = _optional_key(kind)
                found[_list_key(sequence, element)] = "Tensor?[]"
    return found


def _list_key(origin: Any, element: Any) -> Any:
    return (origin, _key(element))


def _optional_key(kind: Any) -> Any:
    return ("optional", _key(kind))


def _key(kind: Any) -> Any:
    """One form for Optional[X], X | None, List[X], list[X] and Sequence[X]."""
    if isinstance(kind, tuple):
        return kind
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        if len(rest) == 1:
            return ("optional", _key(rest[0]))
        inner = functools.reduce(operator.or_, rest)
        return ("optional", inner) if len(rest) != len(args) else inner
    if origin in (list, collections.abc.Sequence):
        return (origin, _key(args[0]))
    return kind


_table: dict[Any, str] = {}


def _schema_type(kind: Any) -> str | None:
    if not _table:
        _table.update({_key(k): name for k, name in _schema_types().items()})
    return _table.get(_key(kind))


def _resolve(annotation: Any, function: Callable, error: Callable[[str], Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except NameError as problem:
        return error(f"Unsupported type annotation {annotation}. It is not a type. ({problem}).")


def _default(value: Any, name: str, error: Callable[[str], Any]) -> str:
    if value is None or isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (str, taeda.device)):
        return f'"{value}"'
    if isinstance(value, taeda.dtype):
        return str(value).removeprefix("torch.")
    return error(f"Parameter {name} has an unsupported default value type {type(value)}.")


def _returns(annotation: Any, error: Callable[[str], Any]) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    if annotation is inspect.Parameter.empty:
        return error("No return type annotation was provided. Please add one.")
    if typing.get_origin(annotation) is tuple:
        parts = typing.get_args(annotation)
        if parts == ((),):
            return "()"
    else:
        parts = (annotation,)
    names = []
    for part in parts:
        name = _schema_type(part)
        if name is None or name.endswith("?"):
            return error(f"Return has unsupported type {annotation}.")
        names.append(name)
    return names[0] if len(names) == 1 else "(" + ", ".join(names) + ")"


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Iterable[Any] | None = None,
) -> str:
    """The schema of a function whose parameters are annotated, as `custom_op` infers it.

    Args:
        mutates_args: the names of the tensors that it writes, or "unknown".
        op_name: put in front of the schema.
        tags: has no effect on the schema.

    >>> def scale(x: torch.Tensor, factor: float) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float factor) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def error(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    if isinstance(mutates_args, str):
        if mutates_args != UNKNOWN:
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are "
                "mutated or the string 'unknown'. "
            )
        written = None
    else:
        written = set(mutates_args)
        missing = written - set(signature.parameters)
        if missing:
            error(
                f"{missing} in mutates_args were not found in the custom op's signature. "
                "mutates_args should contain the names of all args that the custom op mutates, or "
                "just the string 'unknown' if you don't know."
            )
    parts, starred = [], False
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            error("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if parameter.annotation is parameter.empty:
            error(f"Parameter {name} must have a type annotation.")
        annotation = _resolve(parameter.annotation, prototype_function, error)
        kind = _schema_type(annotation)
        if kind is None:
            error(f"Parameter {name} has unsupported type {parameter.annotation}.")
        if (written is None and kind.startswith("Tensor")) or (written and name in written):
            if not kind.startswith("Tensor"):
                error(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of "
                    "Tensors can be mutated"
                )
            kind = f"Tensor(a{i}!){kind.removeprefix('Tensor')}"
        text = f"{kind} {name}"
        if parameter.default is not parameter.empty:
            text += f"={_default(parameter.default, name, error)}"
        parts.append(text)
    result = _returns(_resolve(signature.return_annotation, prototype_function, error), error)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"
