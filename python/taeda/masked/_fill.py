"""What operations with a mask have in common: the mask in its input's shape, and what fills in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function


def dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """`dim` as sorted numbers that count from the front; all for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
                f"but got {d})"
            )
        found.append(d % ndim)
    return tuple(sorted(found))


def input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """`mask` as bool in the shape of `input`."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            "input)"
        )
    return mask.broadcast_to(input.shape).to(taeda.bool)


def identity(operation: str, input: Tensor, order: Any = 2) -> Tensor:
    """The number that changes no result of `operation`."""
    dtype = input.dtype
    is_real_float, least = input.is_floating_point(), operation in _LEAST
    if operation in ("sum", "prod"):
        value: Any = 0 if operation == "sum" else 1
    elif operation == "norm":
        value = math.inf if order == -math.inf else 0
    elif operation == "median":  # of nanmedian
        value, dtype = math.nan, dtype if is_real_float else taeda.float32
    elif is_real_float or (input.is_complex() and operation == "logsumexp"):
        value = -math.inf if least else math.inf
    elif dtype == taeda.bool:
        raise NotImplementedError(f"identity of {operation} on {dtype} input")
    else:
        value = taeda.iinfo(dtype).min if least else taeda.iinfo(dtype).max
    return taeda.tensor(value, dtype=dtype, device=input.device)


_LEAST = ("amax", "argmax", "logaddexp", "logsumexp")


class _Fill(Function):
    """The filled data of a MaskedTensor, whose gradient is a MaskedTensor."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, operation: str, order: Any) -> Tensor:
        ctx.mask = mask
        return taeda.where(mask, data, identity(operation, data, order))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        from taeda.masked.maskedtensor.core import as_masked_tensor, get_data

        return as_masked_tensor(get_data(grad), ctx.mask), None, None, None


def filled(
    operation: str, input: Tensor, mask: Tensor | None, order: Any = 2, caller: str | None = None
) -> Tensor:
    """`input` with the identity of `operation` where it does not count.

    A MaskedTensor's own mask counts, not `mask`. ValueError unless `input` is strided.
    """
    from taeda.masked.maskedtensor import is_masked_tensor

    if input.layout != taeda.strided:
        expects = f"masked {caller or operation} expects strided tensor"
        raise ValueError(f"{expects} (got {input.layout} tensor)")
    if is_masked_tensor(input):
        masked: Any = input
        return _Fill.apply(masked.get_data(), masked.get_mask(), operation, order)
    if mask is None:
        return input
    return taeda.where(input_mask(input, mask), input, identity(operation, input, order))
