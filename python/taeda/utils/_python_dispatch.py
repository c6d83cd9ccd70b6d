"""TorchDispatchMode and the tools for classes with a __torch_dispatch__.

A mode sees every dispatched operator of its block below autograd: in forward and in backward, with
the operator's object of torch.ops and its arguments. What composite operators are made of is seen
one by one; docs/notes/dispatch.md says which operators are composites.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from taeda import _C, _ops

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Context manager whose ``__torch_dispatch__`` sees every operator of the block.

    >>> from torch.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    """

    def __init__(self, _dispatch_key: Any = None):
        pass

    def __torch_dispatch__(
        self, func: _ops.OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _C._pop_torch_dispatch_stack()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """The old name of making a mode."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: no mode is the framework's own."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that only passes on."""

    def __torch_dispatch__(
        self, func: _ops.OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The active modes of this thread, the innermost last."""
    return _C._torch_dispatch_stack()


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active on this thread."""
    return bool(_get_current_dispatch_mode_stack())


def _push_mode(mode: TorchDispatchMode) -> None:
    _C._push_on_torch_dispatch_stack(mode)


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    return _C._pop_torch_dispatch_stack()


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """No mode sees what the block does."""
    taken = [_pop_mode() for _ in _get_current_dispatch_mode_stack()]
    try:
        yield taken[::-1]
    finally:
        for mode in reversed(taken):
            _push_mode(mode)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor's class says what it is made of: it has __tensor_flatten__."""
    subclass = isinstance(t, _C.Tensor) and type(t) is not _C.Tensor
    return subclass and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """A tensor of the same class, made of what `callback(name, part)` gives for its parts."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(parts, context, outer_size, outer_stride)
    if made.shape != outer_size or made.stride() != outer_stride:
        raise AssertionError(
            f"{type(t)}.__tensor_unflatten__ gave a tensor of another size or stride"
        )
    return made


def return_and_correct_aliasing(
    func: _ops.OpOverload, args: tuple, kwargs: dict | None, out: Any
) -> Any:
    """The results of a wrapper's operator with what its schema promises: what is written in place
    or given as out= is returned as the argument itself, and views know the memory of their base."""
    schema = func._schema
    given = dict(zip((a.name for a in schema.arguments), args)) | (kwargs or {})
    by_letter: dict[str, tuple[Any, Any]] = {}
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.name in given:
            for letter in argument.alias_info.before_set:
                by_letter[letter] = (argument, given[argument.name])

    def correct(result: Any, declared: Any) -> Any:
        if declared.alias_info is None:
            return result
        for letter in declared.alias_info.before_set:
            argument, value = by_letter.get(letter, (None, None))
            if argument is not None and argument.is_write:
                return value
        return result

    if len(schema.returns) == 1:
        return correct(out, schema.returns[0])
    return type(out)(correct(o, r) for o, r in zip(out, schema.returns))
