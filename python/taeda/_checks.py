"""Checks that raise an exception of a kind, with a message that is made only then."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch
from taeda._C import Tensor, _overridable

Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """`error_type` unless `cond`, a bool, is true."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use "
            "torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, builtins.bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(
        "Expected cond to be True, but got False." if message is None else str(message())
    )


def _check_index(cond: Any, message: Message = None) -> None:
    """IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` is a size: not negative, at most `max`."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Message = None
) -> None:
    """`error_type` unless all elements of a tensor of bools are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != torch.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, builtins.bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Message = None) -> None:
    """RuntimeError unless all elements of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


@_overridable
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The index in each dimension of `shape`, of indices into its elements in row-major order.

    >>> import taeda as torch
    >>> torch.unravel_index(torch.tensor([4, 1]), (3, 2))
    (tensor([2, 0]), tensor([0, 1]))
    """
    whole = not (indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool)
    _check_type(whole, lambda: f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    _check_type(
        all(isinstance(size, int) for size in sizes),
        lambda: f"expected 'shape' sequence to only contain ints, but got {sizes}",
    )
    _check_value(
        all(size >= 0 for size in sizes),
        lambda: f"'shape' cannot have negative values, but got {tuple(sizes)}",
    )
    if not sizes:
        return ()
    device = indices.device
    steps = [math.prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    found = indices.to(torch.int64).unsqueeze(-1)
    found = torch.floor_divide(found, torch.tensor(steps, device=device))
    return torch.remainder(found, torch.tensor(sizes, device=device)).unbind(-1)
