"""functionalize: a function without writes in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import _C, Tensor
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["functionalize"]


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """``func`` without writes in place: each becomes an operator that makes a new tensor.

    Arguments that ``func`` writes get their last values in the end, so the function that is
    returned does what ``func`` does. With ``remove="mutations_and_views"`` views become copies
    too. docs/notes/transforms.md says what operators become.

    >>> import taeda as torch
    >>> def double(x):
    ...     y = x.clone()
    ...     y[0].mul_(2)
    ...     return y
    >>> torch.func.functionalize(double)(torch.ones(2))
    tensor([2., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are:\n     remove='mutations': in-place and out= operators become "
            "operators that make new tensors.\n     remove='mutations_and_views': besides, views "
            "become copies."
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        _C._functionalize_enter(remove == "mutations_and_views")
        try:
            inner: dict[int, Tensor] = {}  # a tensor that is given twice stays one
            for x in leaves:
                if isinstance(x, Tensor) and id(x) not in inner:
                    inner[id(x)] = _C._functionalize_wrap(x)
            given = [inner[id(x)] if isinstance(x, Tensor) else x for x in leaves]
            inner_args, inner_kwargs = tree_unflatten(given, spec)
            result = tree_map(_current, func(*inner_args, **inner_kwargs))
            changed = {
                id(x): (x, _Layout(y), _current(y) if _C._functionalize_is_written(y) else None)
                for x, y in zip(leaves, given)
                if isinstance(x, Tensor)
            }
        finally:
            _C._functionalize_exit()
        for x, layout, value in changed.values():
            if layout != _Layout(x):
                layout.give_to(x)
            if value is not None:
                x.copy_(value)
        return result

    return wrapped


def apply_function(cls: Any, args: tuple) -> Any:
    """``cls.apply(*args)`` in a level. Where the caller differentiates an argument, the Function
    runs outside, on what its arguments stand for; else its operators are functionalized."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    if not any(_C._is_differentiated_below(x) for x in tensors):
        return _C._apply_function(cls, cls._backward_cls(), args)
    if not any(x.requires_grad or _C._tangents(x) for x in tensors):
        return _apply_outside(cls, args, _C.is_grad_enabled())
    if not cls._has_setup_context:
        raise RuntimeError(
            f"functionalize: {cls.__name__} is differentiated inside and outside of functionalize, "
            "and its forward takes ctx: override the setup_context staticmethod."
        )
    return _C._apply_function(_Outside(cls), cls._backward_cls(), args)


def _apply_outside(cls: Any, args: tuple, recording: bool) -> Any:
    values = [_current(x) for x in args]
    versions = [x._version if isinstance(x, Tensor) else 0 for x in values]
    results = _C._functionalize_outside(recording, lambda: cls.apply(*values))
    if any(isinstance(x, Tensor) and x._version != v for x, v in zip(values, versions)):
        raise RuntimeError(
            f"functionalize: {cls.__name__} writes an argument that is differentiated outside of "
            "functionalize, which has no rule for it."
        )
    return tree_map(lambda y: _C._functionalize_wrap(y) if isinstance(y, Tensor) else y, results)


class _Outside:
    """Stands for a Function whose forward runs on what its arguments stand for."""

    _has_setup_context = True

    def __init__(self, cls: Any) -> None:
        self.__name__ = cls.__name__
        self.setup_context, self.jvp = cls.setup_context, cls.jvp
        self._cls, self._recording = cls, _C.is_grad_enabled()

    def forward(self, *args: Any) -> Any:
        return _apply_outside(self._cls, args, self._recording)


def _current(x: Any) -> Any:
    return _C._functionalize_unwrap(x) if isinstance(x, Tensor) else x


class _Layout:
    """Sizes and strides of a tensor, which squeeze_, transpose_, resize_ and out= change."""

    def __init__(self, x: Tensor) -> None:
        self._sizes, self._strides = x.shape, x.stride()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Layout) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def give_to(self, x: Tensor) -> None:
        """Lays ``x`` out like this, in larger memory where it has other elements."""
        if x.numel() != self._sizes.numel():
            x.resize_(self._sizes)
        else:
            x.as_strided_(self._sizes, self._strides)
