"""Reductions and normalizations of the elements that a mask lets count.

All take ``mask=``, a tensor that is broadcast to the input (IndexError where it has more
dimensions), and ``dtype=``, the result's; ``dim`` is a number or several, None and () all. The
input may be a MaskedTensor, whose own mask counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.masked._fill import dims, filled, input_mask
from taeda.nn import functional as F

Dims = int | Sequence[int] | None


def _summed(input: Tensor, dtype: taeda.dtype | None) -> taeda.dtype:
    """The dtype of a sum: integers and bools are counted in int64."""
    is_inexact = input.is_floating_point() or input.is_complex()
    return dtype or (input.dtype if is_inexact else taeda.int64)


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum; 0 where nothing counts.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.masked.sum(x, 1, mask=torch.tensor([[True, False], [False, False]]))
    tensor([1, 0])
    """
    summed = dims(dim, input.ndim)
    return taeda.sum(filled("sum", input, mask), summed, bool(keepdim), dtype=_summed(input, dtype))


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product; 1 where nothing counts.

    >>> torch.masked.prod(torch.tensor([2, 3, 4]), mask=torch.tensor([True, False, True]))
    tensor(8)
    """
    result = filled("prod", input, mask).to(_summed(input, dtype))
    for d in reversed(dims(dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


def cumsum(
    input: Tensor, dim: int, *, dtype: taeda.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The sums of the elements up to each, in the input's dtype.

    >>> torch.masked.cumsum(torch.tensor([2, 3, 4]), 0, mask=torch.tensor([True, False, True]))
    tensor([2, 2, 6])
    """
    data = filled("sum", input, mask, caller="cumsum")
    return taeda.cumsum(data, dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: taeda.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The products of the elements up to each, in the input's dtype.

    >>> torch.masked.cumprod(torch.tensor([2, 3, 4]), 0, mask=torch.tensor([True, False, True]))
    tensor([2, 2, 8])
    """
    data = filled("prod", input, mask, caller="cumprod")
    return taeda.cumprod(data, dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest element; the least number of the dtype where nothing counts.

    >>> torch.masked.amax(torch.tensor([2.0, 3.0]), 0, mask=torch.tensor([True, False]))
    tensor(2.)
    """
    data = filled("amax", input, mask)
    return taeda.amax(data, dims(dim, data.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least element; the greatest number of the dtype where nothing counts.

    >>> torch.masked.amin(torch.tensor([2.0, 3.0]), 0, mask=torch.tensor([False, True]))
    tensor(3.)
    """
    data = filled("amin", input, mask)
    return taeda.amin(data, dims(dim, data.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the greatest element, in the input's dtype.

    >>> torch.masked.argmax(torch.tensor([2, 9, 4]), mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    data = filled("argmax", input, mask)
    return taeda.argmax(data, dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the least element, in the input's dtype.

    >>> torch.masked.argmin(torch.tensor([2, 1, 4]), mask=torch.tensor([True, False, True]))
    tensor(0)
    """
    data = filled("argmin", input, mask)
    return taeda.argmin(data, dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements count."""
    if mask is None:
        mask = taeda.ones(input.shape, dtype=taeda.bool, device=input.device)
    return mask.sum(dims(dim, input.ndim), keepdim)


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean; NaN where nothing counts. ValueError unless the dtype is inexact.

    >>> torch.masked.mean(torch.tensor([2.0, 3.0]), 0, mask=torch.tensor([True, False]))
    tensor(2.)
    """
    source, given = "Optional" if dtype else "Input", dtype or input.dtype
    if not (given.is_floating_point or given.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either "
            f"a floating point or complex dtype. Got: {given}"
        )
    mask = None if mask is None else input_mask(input, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=given, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median, of two in the middle the lesser; NaN where nothing counts.

    ValueError where nothing counts of integers.

    >>> torch.masked.median(torch.tensor([2, 3, 9]), mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    is_float = input.is_floating_point()
    values = input if is_float else input.to(taeda.float32)
    data = filled("median", values, mask)
    result = taeda.nanmedian(data, dims(dim, input.ndim)[0], keepdim).values
    if is_float:
        return result
    if result.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return result.to(dtype or input.dtype)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(input))); -inf where nothing counts.

    >>> torch.masked.logsumexp(torch.tensor([2.0, 3.0]), 0, mask=torch.tensor([True, False]))
    tensor(2.)
    """
    data = filled("logsumexp", input, mask)
    return taeda.logsumexp(data, dims(dim, input.ndim), keepdim).to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: taeda.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), each with its mask.

    >>> x, mask = torch.tensor([-100.0, -200.0]), torch.tensor([True, False])
    >>> torch.masked.logaddexp(x, torch.tensor([-1.0, -2.0]), input_mask=mask, other_mask=mask)
    tensor([-1., -inf])
    """
    data = filled("logaddexp", input, input_mask)
    return taeda.logaddexp(data, filled("logaddexp", other, other_mask)).to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`torch.linalg.vector_norm`; 0 where nothing counts, inf for the order -inf.

    >>> x = torch.tensor([3.0, 9.0, 4.0])
    >>> torch.masked.norm(x, 2, 0, mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    if ord is None:
        raise TypeError("masked.norm(): argument 'ord' (position 2) must be Number, not NoneType")
    data = filled("norm", input, mask, ord)
    return taeda.linalg.vector_norm(
        data,
        ord,
        dims(dim, input.ndim),
        bool(keepdim),
        dtype=dtype or input.dtype,
    )


def _variance(
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: taeda.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """The variance in the dtype that it is computed in."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if dtype is None or not (dtype.is_floating_point or dtype.is_complex):
        dtype = taeda.result_type(input, 1.0) if dtype is None else taeda.float32
    mask = None if mask is None else input_mask(input, mask)
    count = _count(input, dim, True, mask)
    centered = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(centered * centered.conj(), dim, keepdim=keepdim, dtype=dtype, mask=mask)
    count = count.reshape(total.shape).to(dtype.to_real() if dtype.is_complex else dtype)
    return total / (count - correction).clamp(min=0)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance, over the number of elements less `correction`, 1; NaN where nothing counts.

    >>> x = torch.tensor([1.0, 9.0, 3.0])
    >>> torch.masked.var(x, 0, mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    result = _variance(input, dim, unbiased, correction, keepdim, dtype, mask)
    return result if dtype is None else result.to(dtype)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of `var`.

    >>> x = torch.tensor([1.0, 9.0, 3.0])
    >>> torch.masked.std(x, 0, False, mask=torch.tensor([True, False, True]))
    tensor(1.)
    """
    result = _variance(input, dim, unbiased, correction, keepdim, dtype, mask)
    return taeda.sqrt(result if dtype is None else result.to(dtype))


def softmax(
    input: Tensor, dim: int, *, dtype: taeda.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmax` over the elements that count; 0 for the others, NaN where nothing counts.

    >>> x = torch.tensor([1.0, 9.0, 1.0])
    >>> torch.masked.softmax(x, 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    data = filled("amax", input, mask, caller="softmax")
    return F.softmax(data, dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: taeda.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`.

    >>> x = torch.tensor([1.0, 9.0, 1.0])
    >>> torch.masked.log_softmax(x, 0, mask=torch.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    data = filled("amax", input, mask, caller="log_softmax")
    return F.log_softmax(data, dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(
    input: Tensor, dim: int, *, dtype: taeda.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmax` of the negative input.

    >>> x = torch.tensor([1.0, -9.0, 1.0])
    >>> torch.masked.softmin(x, 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    data = filled("amin", input, mask, caller="softmin")
    return F.softmin(data, dims(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: taeda.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The input over its `norm`, or over `eps` where that is greater.

    >>> x = torch.tensor([3.0, 9.0, 4.0])
    >>> torch.masked.normalize(x, 2, 0, mask=torch.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    data: Any = filled("sum", input, mask, caller="normalize")
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return data / taeda.maximum(length, length.new_full([], eps))
