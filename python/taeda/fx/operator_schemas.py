"""Arguments of calls by the signature of what they call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple
    kwargs: dict[str, Any]


def _by_signature(
    function: Callable, args: tuple, kwargs: dict | None, keywords: bool
) -> ArgsKwargsPair | None:
    """The arguments with the defaults; None where there is no signature that they fit."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **(kwargs or {}))
    except (TypeError, ValueError):
        return None
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in plain for parameter in signature.parameters.values()):
        return None
    bound.apply_defaults()
    if keywords:
        return ArgsKwargsPair((), dict(bound.arguments))
    return ArgsKwargsPair(bound.args, bound.kwargs)


def normalize_function(
    target: Callable,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of `target` with all defaults; None without a signature."""
    return _by_signature(target, args, kwargs, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The same for a call of the submodule of `root` with the path `target`."""
    forward = root.get_submodule(target).forward
    return _by_signature(forward, args, kwargs, normalize_to_only_use_kwargs)
