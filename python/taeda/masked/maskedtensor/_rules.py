"""What operators do with MaskedTensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor, masked, strided
from taeda._elementwise import COPIES
from taeda.masked.maskedtensor.core import (
    MaskedTensor,
    as_masked_tensor,
    get_data,
    is_masked_tensor,
)
from taeda.utils._pytree import tree_leaves, tree_map

# Both data and mask are put through these.
_MOVED = frozenset(
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view "
    "_reshape_alias reshape permute squeeze flatten cat unsqueeze unfold unfold_backward im2col "
    "col2im stack contiguous split_with_sizes unbind alias flip movedim".split()
)
_REDUCTIONS = "sum mean amin amax argmin argmax prod all norm var std".split()


def _any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return mask.any(keepdim=keepdim) if dim is None else mask.any(dim, keepdim)


def _all(data: Tensor, dim: Any = None, *, mask: Tensor, keepdim: bool = False, **_: Any) -> Tensor:
    """`torch.all` of the elements that count."""
    data = data.masked_fill(~mask, True)
    return data.all() if dim is None else data.all(dim, keepdim)


def _reduction(name: str) -> Callable[..., Any]:
    compute = _all if name == "all" else getattr(masked, name)

    def reduce(self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        if not is_masked_tensor(self):
            raise TypeError("Input to reduce_dim must be a MaskedTensor")
        self = self.to_dense() if self.is_sparse else self
        data, mask = _counted(self, None)
        options = {} if dim is None else {"dim": dim, "keepdim": keepdim}
        result = compute(data, **options, dtype=dtype, mask=mask)
        return as_masked_tensor(result, _any(mask, dim, keepdim and dim is not None))

    return reduce


class _Counted(taeda.autograd.Function):
    """The data of a MaskedTensor, the gradient of which has its mask."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
        ctx.mask = mask
        return data.view_as(data)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return as_masked_tensor(get_data(grad), ctx.mask), None


def _counted(x: Any, mask: Any) -> tuple[Any, Any]:
    """Data and mask of a tensor with its mask; a MaskedTensor's own mask counts."""
    if is_masked_tensor(x):
        return _Counted.apply(x.get_data(), x.get_mask()), x.get_mask()
    return x, mask


def _with_own_mask(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `taeda.masked` for MaskedTensors, whose own mask counts."""

    def call(input: Any, *args: Any, mask: Any = None, **options: Any) -> Any:
        input, mask = _counted(input, mask)
        return function(input, *args, mask=mask, **options)

    return call


def _logaddexp(
    input: Any, other: Any, *, input_mask: Any = None, other_mask: Any = None, **options: Any
) -> Any:
    input, input_mask = _counted(input, input_mask)
    other, other_mask = _counted(other, other_mask)
    masks = {"input_mask": input_mask, "other_mask": other_mask}
    return _C._by_owner["masked"]["logaddexp"](input, other, **masks, **options)


class _Where(taeda.autograd.Function):
    """torch.where, whose gradients do not count where the other argument was taken."""

    @staticmethod
    def forward(ctx: Any, condition: Tensor, self: Any, other: Any) -> MaskedTensor:
        ctx.condition = condition
        parts = [_with_mask(value, condition) for value in (self, other)]
        (data, mask), (other_data, other_mask) = parts
        return MaskedTensor(
            taeda.where(condition, data, other_data), taeda.where(condition, mask, other_mask)
        )

    @staticmethod
    def backward(ctx: Any, grad: MaskedTensor) -> Any:
        data, mask = grad._masked_data, grad._masked_mask
        return (
            None,
            MaskedTensor(data, mask & ctx.condition),
            MaskedTensor(data, mask & ~ctx.condition),
        )


def _with_mask(value: Any, like: Tensor) -> tuple[Any, Tensor]:
    """Data and mask of a value, all of which counts where it has none."""
    if is_masked_tensor(value):
        return value._masked_data, value._masked_mask
    return value, taeda.ones_like(like, dtype=taeda.bool)


@functools.cache
def functions() -> dict[Any, Callable[..., Any]]:
    """Functions that are not left to their operators -> what they do."""
    found: dict[Any, Callable[..., Any]] = {}
    for name in _REDUCTIONS:
        found |= {getattr(owner, name): _reduction(name) for owner in (taeda, Tensor)}
    found |= {f: _with_own_mask(f) for f in _C._by_owner["masked"].values()}
    found[_C._by_owner["masked"]["logaddexp"]] = _logaddexp
    where = {taeda.where: _Where.apply, Tensor.where: lambda self, c, o: _Where.apply(c, self, o)}
    return found | where


def _mask(args: Any) -> Tensor:
    """The one mask that the arguments have; ValueError where they have several."""
    first, *others = (value._masked_mask for value in tree_leaves(args) if is_masked_tensor(value))
    for mask in others:
        if mask is not first and not _equal(mask, first):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on "
                "Github."
            )
    return first


def _equal(mask: Tensor, other: Tensor) -> bool:
    if mask.shape != other.shape and not (mask.dim() == other.dim() and mask.layout == strided):
        return False
    return bool(mask.to_dense().eq(other.to_dense()).all())


def _wrap(data: Any, mask: Any) -> Any:
    if isinstance(data, list | tuple):
        return type(data)(_wrap(d, m) for d, m in zip(data, mask, strict=True))
    return MaskedTensor(data, mask) if isinstance(data, Tensor) else data


def dispatch(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator."""
    name = func._opname
    elementwise = func._is_pointwise or name.removesuffix("_") in COPIES
    data = tree_map(get_data, args), tree_map(get_data, kwargs)
    if name == "_local_scalar_dense" or name == "item":
        return func(*data[0], **data[1])
    if name == "is_same_size":
        return data[0][0].shape == data[0][1].shape
    if name in _MOVED:
        return _wrap(func(*data[0], **data[1]), _moved(func, args, kwargs))
    if name == "softmax" or name == "_softmax":
        return _softmax(args, kwargs)
    if name == "_softmax_backward_data":
        return _softmax_backward(*args)
    if elementwise and name.endswith("_"):
        mask = _mask((args, kwargs))
        args[0]._set_data_mask(func(*data[0], **data[1]), mask)
        return args[0]
    if elementwise:
        result = func(*data[0], **data[1])
        mask = _mask((args, kwargs))
        return MaskedTensor(result, mask.expand_as(result) if mask.layout == strided else mask)
    if name in _REDUCTIONS:
        return _reduction(name)(*args, **kwargs)
    warnings.warn(
        f"{name} is not implemented in __torch_dispatch__ for MaskedTensor.", stacklevel=2
    )
    return NotImplemented


def _moved(func: Any, args: Any, kwargs: Any) -> Any:
    def mask(value: Any) -> Any:
        return value._masked_mask if is_masked_tensor(value) else value

    return func(*tree_map(mask, args), **tree_map(mask, kwargs))


def _softmax(args: Any, kwargs: Any) -> MaskedTensor:
    """Over the elements that count, 0 where none does."""
    self, dim = args[0], args[1] if len(args) > 1 else kwargs["dim"]
    data, mask = self._masked_data, self._masked_mask
    result = data.masked_fill(~mask, -taeda.inf).softmax(dim).masked_fill(~mask, 0)
    return MaskedTensor(result, mask)


def _softmax_backward(grad: MaskedTensor, output: MaskedTensor, dim: int, dtype: Any) -> Any:
    mask = _mask((grad, output))
    g, y = grad._masked_data, output._masked_data
    product = (g * y).masked_fill(~mask, 0)
    return MaskedTensor(product - y * product.sum(dim, keepdim=True), mask)
