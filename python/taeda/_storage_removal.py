"""The warning that storages of elements are to go, as in PyTorch: once a program.

A class's public methods warn; what they call in turn does not, nor do their twins with a leading
underscore, which the package uses itself.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

_TEXT = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only class of storages: this matters to programs that use storages themselves. To get one, "
    "call tensor.untyped_storage() instead of tensor.storage()."
)
_SPECIAL = {"__len__": "_len", "__getitem__": "_getitem", "__setitem__": "_setitem",
            "__iter__": "_iter", "__copy__": "_copy", "__deepcopy__": "_deepcopy"}  # fmt: skip


class _State:
    always = False
    given = False
    depth = 0  # of calls of methods inside one another


def warn(stacklevel: int = 2) -> None:
    """Warns whoever called the caller, the first time only unless asked for always."""
    if _State.depth == 0 and (_State.always or not _State.given):
        _State.given = True
        warnings.warn(_TEXT, UserWarning, stacklevel=stacklevel + 1)


def quiet(function: Callable) -> Callable:
    """The function, which does not warn."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _State.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _State.depth -= 1

    return call


def warning(function: Callable) -> Callable:
    """The function, which warns first."""
    silent = quiet(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn()
        return silent(*args, **kwargs)

    return call


def deprecate(cls: type, *inherited: type) -> None:
    """Makes the public methods of a class warn, and what it has from `inherited`."""
    found: dict[str, Any] = {}
    for owner in (*inherited, cls):
        found.update(vars(owner))
    for name, value in found.items():
        twin = _SPECIAL.get(name) or (None if name.startswith("_") else f"_{name}")
        if twin is None:
            continue
        if isinstance(value, property) and value.fget:
            setattr(cls, name, property(warning(value.fget), value.fset, doc=value.__doc__))
        elif isinstance(value, classmethod):
            setattr(cls, name, classmethod(warning(value.__func__)))
        elif callable(value):
            if twin not in found:
                setattr(cls, twin, quiet(value))
            setattr(cls, name, warning(value))
