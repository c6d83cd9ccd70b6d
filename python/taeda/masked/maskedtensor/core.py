"""MaskedTensor: data and a mask of the same shape, True where an element counts.

Pointwise operators compute on the data and keep the mask, which both arguments must have in
common; views move both; reductions leave out what does not count (`taeda.masked`). Gradients are
MaskedTensors too. What has no rule raises TypeError.

>>> import warnings; warnings.simplefilter("ignore")
>>> x = torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
>>> x
MaskedTensor(
  [  1.0000,       --]
)
>>> x.sum()
MaskedTensor(  1.0000, True)
"""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import Tensor
from taeda._C import DisableTorchFunctionSubclass
from taeda.autograd import Function

_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. "
    "Please open a Github issue for features requests and see our documentation on the "
    "torch.masked module for further information about the project."
)
_LEAF = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid "
    "this, you can use data.detach().clone()"
)
_UNSUPPORTED = (taeda.uint8, taeda.bfloat16, taeda.complex32, taeda.complex64, taeda.complex128)


class MaskedTensor(Tensor):
    """`data`, of which `mask`, a bool tensor of its shape, says what counts; both are copied."""

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn(_LEAF, UserWarning, stacklevel=2)
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            data.size(),
            strides=data.stride() if data.layout == taeda.strided else None,
            dtype=data.dtype,
            device=data.device,
            requires_grad=requires_grad,
        )

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        if data.layout == taeda.sparse_coo:
            data, mask = data.coalesce(), mask.coalesce()
            if data._nnz() != mask._nnz():
                data = data.sparse_mask(mask)
        self._set_data_mask(data.clone(), mask.clone())

    def _set_data_mask(self, data: Tensor, mask: Tensor) -> None:
        """Keeps both; an error where they do not fit."""
        if type(data) is not type(mask):
            raise TypeError(
                f"data and mask must have the same type. Got {type(data)} and {type(mask)}"
            )
        if data.layout not in (taeda.strided, taeda.sparse_coo, taeda.sparse_csr):
            raise TypeError(f"data layout of {data.layout} is not supported.")
        if data.layout != taeda.strided and not _same_pattern(data, mask):
            raise ValueError(
                "data and mask are both sparse tensors but do not have the same indices."
            )
        if mask.dtype != taeda.bool:
            raise TypeError("mask must have dtype bool.")
        if data.dtype in _UNSUPPORTED:
            raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
        if data.dim() != mask.dim():
            raise ValueError("data.dim() must equal mask.dim()")
        if data.size() != mask.size():
            raise ValueError("data.size() must equal mask.size()")
        self._masked_data, self._masked_mask = data, mask

    @staticmethod
    def _from_values(data: Tensor, mask: Tensor) -> MaskedTensor:
        return Constructor.apply(data, mask)

    def get_data(self) -> Tensor:
        """The data, also of elements that do not count; its gradient is a MaskedTensor."""
        return GetData.apply(self)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """The data, with `value` where an element does not count."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    @property
    def layout(self) -> Any:
        """That of the data and the mask."""
        return self._masked_data.layout

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are in a sparse layout."""
        return self.is_sparse_coo() or self.is_sparse_csr()

    def is_sparse_coo(self) -> bool:
        """Whether the layout is torch.sparse_coo."""
        return self.layout == taeda.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the layout is torch.sparse_csr."""
        return self.layout == taeda.sparse_csr

    def to_dense(self) -> MaskedTensor:  # type: ignore[override]
        """In strided layout: what has no value does not count."""
        return _Converted.apply(self, taeda.strided)

    def to_sparse(self) -> MaskedTensor:  # type: ignore[override]
        """In layout torch.sparse_coo, of the elements that count."""
        return _Converted.apply(self, taeda.sparse_coo)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> MaskedTensor:  # type: ignore[override]
        """In layout torch.sparse_csr, of the elements that count."""
        return _Converted.apply(self, taeda.sparse_csr)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        data, mask = self._masked_data, self._masked_mask
        if self.is_sparse:
            data, mask = data.to_dense(), mask.to_dense()
        if not data.dim():
            return f"MaskedTensor({_words(data, mask)[0]}, {mask.item()})"
        return f"MaskedTensor(\n{_indent(_text(data, mask))}\n)"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from taeda.masked.maskedtensor._rules import functions

        rule = functions().get(func)
        if rule is not None:
            return rule(*args, **(kwargs or {}))
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from taeda.masked.maskedtensor._rules import dispatch

        return dispatch(func, args, kwargs or {})


class Constructor(Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> MaskedTensor:
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None


class _Converted(Function):
    """A MaskedTensor in another layout."""

    @staticmethod
    def forward(ctx: Any, self: MaskedTensor, layout: Any) -> MaskedTensor:
        ctx.layout = self.layout
        data, mask = self._masked_data, self._masked_mask
        if data.layout == layout:
            return MaskedTensor(data, mask)
        dense, counts = data.to_dense(), mask.to_dense()
        if layout == taeda.strided:
            return MaskedTensor(dense, counts)
        pattern = counts.to_sparse(layout=layout)
        return MaskedTensor(dense.sparse_mask(pattern), pattern)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if is_masked_tensor(grad):
            return _Converted.apply(grad, ctx.layout), None
        return grad.to_sparse(layout=ctx.layout), None


class GetData(Function):
    @staticmethod
    def forward(ctx: Any, self: MaskedTensor) -> Tensor:
        ctx.mask = self._masked_mask
        return self._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad if is_masked_tensor(grad) else MaskedTensor(grad, ctx.mask)


def _same_pattern(data: Tensor, mask: Tensor) -> bool:
    if data._nnz() != mask._nnz():
        return False
    if data.layout == taeda.sparse_coo:
        return bool(data._indices().eq(mask._indices()).all())
    rows = data.crow_indices().eq(mask.crow_indices()).all()
    return bool(rows) and bool(data.col_indices().eq(mask.col_indices()).all())


def _words(data: Tensor, mask: Tensor) -> list[str]:
    """The elements of at most one dimension as text."""
    words = []
    for value, counts in zip(data.reshape(-1).tolist(), mask.reshape(-1).tolist(), strict=True):
        shown = f"{value:8.4f}" if isinstance(value, float) else str(value)
        words.append(shown if counts else "--")
    return words


def _text(data: Tensor, mask: Tensor) -> str:
    if data.dim() == 1:
        words = _words(data, mask)
        width = max((8 if word == "--" else len(word) for word in words), default=0)
        return "[" + ", ".join(w.rjust(width) if w == "--" else w for w in words) + "]"
    rows = [_indent(_text(d, m)) for d, m in zip(data, mask, strict=True)]
    return "[\n" + ",\n".join(rows) + "\n]"


def _indent(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def get_data(value: Any) -> Any:
    """The data of a MaskedTensor; anything else as it is."""
    return value._masked_data if is_masked_tensor(value) else value


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A MaskedTensor that is a leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A MaskedTensor to which gradients of `data` lead."""
    return MaskedTensor._from_values(data, mask)
