"""NestedTensor: tensors of a batch that differ in the size of one dimension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import taeda
from taeda import Tensor
from taeda.nested import _jagged
from taeda.nested._sizes import NestedSize, ragged_size


class NestedTensor(Tensor):
    """The jagged layout: the tensors one after the other in `values`, at `offsets`.

    A view of differentiable values: gradients are theirs, and functions that have a rule run on
    them (nested/_jagged.py). With `lengths` there may be holes between the tensors.
    """

    _values: Tensor  # type: ignore[assignment]

    @staticmethod
    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        _ragged_idx: int = 1,
        **_: Any,
    ) -> NestedTensor:
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, (0,), dtype=values.dtype, device=values.device
        )

    def __init__(
        self,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        _ragged_idx: int = 1,
        requires_grad: bool = False,
        **_: Any,
    ) -> None:
        self._values, self._offsets, self._lengths = values, offsets, lengths
        self._ragged_idx = _ragged_idx
        if requires_grad:
            values.requires_grad_()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _jagged.dispatch(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{func}: not implemented for nested tensors")

    # --- parts ---

    def values(self) -> Tensor:
        """The tensors one after the other; with holes where there are `lengths`."""
        return self._values

    def offsets(self) -> Tensor:
        """Where each tensor begins in the values, and where the last ends."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """The tensors' sizes where there are holes between them; else None."""
        return self._lengths

    def _sizes(self) -> Tensor:
        """The size of each tensor in the ragged dimension."""
        return self._offsets.diff() if self._lengths is None else self._lengths

    def _like(self, values: Tensor, ragged_idx: int | None = None) -> NestedTensor:
        """Other values with the same ragged sizes."""
        at = self._ragged_idx if ragged_idx is None else ragged_idx
        return NestedTensor(values, self._offsets, lengths=self._lengths, _ragged_idx=at)

    def _packed(self) -> Tensor:
        """The values without holes."""
        if self._lengths is None:
            return self._values
        return taeda.cat(self.unbind(), self._ragged_idx - 1)

    def _without_holes(self) -> NestedTensor:
        if self._lengths is None:
            return self
        offsets = taeda.nn.functional.pad(self._lengths.cumsum(0), (1, 0))
        return NestedTensor(self._packed(), offsets, _ragged_idx=self._ragged_idx)

    @property
    def _max_seqlen(self) -> int:
        return int(self._sizes().max())

    @property
    def _min_seqlen(self) -> int:
        return int(self._sizes().min())

    _maybe_max_seqlen, _maybe_min_seqlen = _max_seqlen, _min_seqlen
    _get_max_seqlen = lambda self: self._max_seqlen  # noqa: E731
    _get_min_seqlen = lambda self: self._min_seqlen  # noqa: E731

    # --- what a tensor is asked ---

    @property
    def shape(self) -> Any:
        """The number of tensors and their sizes, one of which is a ragged size, as `j1`."""
        sizes: list[Any] = [self._offsets.size(0) - 1, *self._values.shape]
        sizes[self._ragged_idx] = ragged_size(
            self._offsets if self._lengths is None else self._lengths
        )
        return NestedSize(sizes)

    _size = shape

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[_jagged._wrap(self, dim)]

    def dim(self) -> int:
        """The number of dimensions, the batch's among them."""
        return self._values.dim() + 1

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all tensors."""
        return self._packed().numel()

    layout = property(lambda self: taeda.jagged)
    is_nested = property(lambda self: True)
    dtype = property(lambda self: self._values.dtype)
    device = property(lambda self: self._values.device)
    is_cuda = property(lambda self: self._values.is_cuda)
    is_meta = property(lambda self: self._values.is_meta)
    is_sparse = property(lambda self: False)
    is_leaf = property(lambda self: self._values.is_leaf)
    grad_fn = property(lambda self: self._values.grad_fn)
    itemsize = property(lambda self: self._values.itemsize)
    T = property(lambda self: self.transpose(-2, -1))
    mT = T

    @property
    def requires_grad(self) -> bool:
        """Whether the values require a gradient."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    @property
    def grad(self) -> Tensor | None:
        """The values' gradient, nested."""
        return None if self._values.grad is None else self._like(self._values.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values.grad = value._values if isinstance(value, NestedTensor) else value

    @property  # which nobody assigns
    def data(self) -> Tensor:  # type: ignore[override]
        """Without history."""
        return self._like(self._values.data)

    def retain_grad(self) -> None:
        """Keeps the gradient of values that are no leaf."""
        self._values.retain_grad()

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """Of the values; `gradient` is nested as this tensor is."""
        self._values.backward(getattr(gradient, "_values", gradient), *args, **kwargs)

    def is_floating_point(self) -> bool:
        """Whether the dtype is."""
        return self._values.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is."""
        return self._values.is_complex()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are, without holes."""
        return self._lengths is None and self._values.is_contiguous()

    def item(self) -> Any:
        """The only element."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._packed().item()

    def tolist(self) -> Any:
        """RuntimeError, as in PyTorch: see `unbind`."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError, as in PyTorch: see `unbind` and `to_padded_tensor`."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor, with `padding` after the elements of each tensor.

        The ragged dimension has the greatest size, or that of `output_size`.
        """
        values, at = self._packed().movedim(self._ragged_idx - 1, 0), self._ragged_idx
        sizes, count = self._sizes(), len(self)
        longest = int(sizes.max()) if count else 0
        width = longest if output_size is None else int(output_size[at])
        if width < longest:
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not "
                "supported."
            )
        mask = taeda.arange(width, device=values.device) < sizes.unsqueeze(1)
        padded = values.new_full((count, width, *values.shape[1:]), padding)
        return padded.index_put((mask,), values).movedim(1, at)

    def __len__(self) -> int:
        return self._offsets.size(0) - 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        end = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        end = f", grad_fn={self.grad_fn}" if self.grad_fn else end
        size = f"({', '.join(map(str, self.shape))})"
        return (
            f"NestedTensor(size={size}, offsets={self._offsets}{end}, "
            f"contiguous={self.is_contiguous()})"
        )

    def __reduce_ex__(self, proto: Any) -> Any:
        from taeda.nested._internal.nested_tensor import _rebuild_njt

        return _rebuild_njt, (
            {
                "values": self._values,
                "offsets": self._offsets,
                "lengths": self._lengths,
                "_ragged_idx": self._ragged_idx,
                "_metadata_cache": {},
                "requires_grad": self.requires_grad,
            },
        )

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        values = self._values.detach().clone().requires_grad_(self.requires_grad)
        return self._like(values)
