"""Functions and methods that are replaced while a program is traced."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda.fx.node import map_aggregate
from taeda.fx.proxy import Proxy

_ABSENT = object()


def _find_proxy(*searched: Any) -> Proxy | None:
    """A proxy in nested containers, or None."""
    found: list[Proxy] = []
    map_aggregate(searched, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable) -> Callable:
    """`orig_fn`, whose calls with proxies are recorded whole."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable:
    """The method `name` of a class, whose calls with proxies are recorded whole."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _Patcher:
    """Replacements in dictionaries of globals and in classes, which are taken back in the end."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *exception: object) -> None:
        self.revert_all_patches()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replaces ``frame_dict[name]``, or the builtin of that name, unless it is replaced."""
        before = frame_dict.get(name, _ABSENT)
        if before is _ABSENT and not hasattr(builtins, name):
            raise KeyError(name)
        if not getattr(before, "__fx_already_patched", False):
            new_fn.__fx_already_patched = deduplicate
            self._made.append((frame_dict, name, before, new_fn))
            frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replaces a class's method, unless it is replaced."""
        before = getattr(cls, name)
        if not getattr(before, "__fx_already_patched", False):
            new_fn.__fx_already_patched = deduplicate
            self._made.append((cls, name, before, new_fn))
            setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """True for the first call with an object."""
        if id(thing) in self._visited:
            return False
        self._visited.add(id(thing))
        return True

    def revert_all_patches(self) -> None:
        """Puts everything back."""
        for owner, name, before, _ in reversed(self._made):
            if isinstance(owner, type):
                setattr(owner, name, before)
            elif before is _ABSENT:
                del owner[name]
            else:
                owner[name] = before

    def reapply_all_patches(self) -> None:
        """Replaces everything again."""
        for owner, name, _, new_fn in self._made:
            if isinstance(owner, type):
                setattr(owner, name, new_fn)
            else:
                owner[name] = new_fn


_active: list[_Patcher] = []


@contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    _active.append(_Patcher())
    try:
        yield _active[-1]
    finally:
        _active.pop().revert_all_patches()


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Runs a block as if nothing was traced."""
    patcher = _active[-1] if _active else _Patcher()
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Wraps those globals whose ids are listed: functions like math.sqrt."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if id(value) in function_ids and not name.startswith("_") and callable(value):
            patcher.patch(frame_dict, name, _create_wrapped_func(value))
