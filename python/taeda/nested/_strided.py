"""Nested tensors of the strided layout: a list of tensors that may differ in every size.

Functions run on each tensor by itself. What programs do most often is there; the jagged layout is
the faster one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import taeda
from taeda import Tensor
from taeda.nested._jagged import _OPERATORS, _POINTWISE
from taeda.utils._pytree import tree_leaves, tree_map

# Functions of each tensor that name dimensions by an argument.
_OF_DIMS = {"softmax": 1, "log_softmax": 1, "transpose": 2, "select": 1, "chunk": 0}
_OF_PARTS = ("linear", "layer_norm", "matmul", "__matmul__", "bmm", "embedding")


class StridedNestedTensor(Tensor):
    """The tensors `parts`, with as many dimensions each."""

    @staticmethod
    def __new__(cls, parts: list[Tensor]) -> StridedNestedTensor:
        first = parts[0] if parts else taeda.empty(0)
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, (0,), dtype=first.dtype, device=first.device
        )

    def __init__(self, parts: list[Tensor]) -> None:
        self._parts = parts

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _dispatch(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{func}: not implemented for nested tensors")

    layout = property(lambda self: taeda.strided)
    is_nested = property(lambda self: True)
    dtype = property(lambda self: self._parts[0].dtype if self._parts else taeda.float32)
    device = property(lambda self: self._parts[0].device if self._parts else taeda.device("cpu"))
    requires_grad = property(lambda self: any(p.requires_grad for p in self._parts))

    @property
    def shape(self) -> Any:
        """RuntimeError: sizes may differ."""
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
        )

    def dim(self) -> int:
        """The number of dimensions, the batch's among them."""
        return (self._parts[0].dim() if self._parts else 0) + 1

    ndimension = dim
    ndim = property(dim)

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension in which all tensors agree."""
        if dim is None:
            return self.shape
        dim = dim % self.dim()
        sizes = {p.size(dim - 1) for p in self._parts} if dim else {len(self._parts)}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def __reduce_ex__(self, proto: Any) -> Any:
        from taeda._utils import _rebuild_nested_tensor

        sizes = [list(p.shape) for p in self._parts]
        strides = [list(taeda.empty(n, device="meta").stride()) for n in sizes]
        starts = [0]
        for part in self._parts[:-1]:
            starts.append(starts[-1] + part.numel())
        rows = taeda.tensor(sizes), taeda.tensor(strides), taeda.tensor(starts[: len(sizes)])
        return _rebuild_nested_tensor, (self.values().detach(), *rows)

    def __deepcopy__(self, memo: dict) -> StridedNestedTensor:
        grad = self.requires_grad
        return StridedNestedTensor([p.detach().clone().requires_grad_(grad) for p in self._parts])

    def _nested_tensor_size(self) -> Tensor:
        """The sizes of each tensor."""
        return taeda.tensor([list(p.shape) for p in self._parts])

    def numel(self) -> int:
        """The number of elements of all tensors."""
        return sum(p.numel() for p in self._parts)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True."""
        return True

    def values(self) -> Tensor:
        """All elements, one after the other."""
        return taeda.cat([p.reshape(-1) for p in self._parts])

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The tensors."""
        if dim != 0:
            raise RuntimeError("NestedTensor can only be unbound along dimension 0 ")
        return tuple(self._parts)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor, with `padding` where a tensor is smaller than the greatest."""
        sizes = [max(n) for n in zip(*(p.shape for p in self._parts), strict=True)]
        if output_size is not None:
            if any(a < b for a, b in zip(output_size[1:], sizes, strict=True)):
                raise RuntimeError(
                    "Value in output_size is less than NestedTensor padded size. Truncation is not "
                    "supported."
                )
            sizes = list(output_size[1:])
        padded = []
        for part in self._parts:
            ends = zip(reversed(sizes), reversed(part.shape), strict=True)
            amounts = [n for want, have in ends for n in (0, want - have)]
            padded.append(taeda.nn.functional.pad(part, amounts, value=padding))
        return taeda.stack(padded)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._parts)

    def __getitem__(self, index: Any) -> Tensor:
        first, *rest = index if isinstance(index, tuple) else (index,)
        return self._parts[first][tuple(rest)] if rest else self._parts[first]

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        lines = ",\n".join(f"  {p}".replace("\n", "\n  ") for p in self._parts)
        return f"nested_tensor([\n{lines}\n])"


def _is_nested(value: Any) -> bool:
    return isinstance(value, StridedNestedTensor)


def _dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    plain = _OPERATORS.get(name, name)
    if name in _OF_DIMS:
        return _of_dims(func, _OF_DIMS[name], *args, **kwargs)
    if name == "is_same_size":
        return _is_same_size(*args, **kwargs)
    elementwise = plain in _POINTWISE or (plain.endswith("_") and plain[:-1] in _POINTWISE)
    if elementwise or name in _OF_PARTS:
        return _of_parts(func, args, kwargs)
    raise NotImplementedError(f"{name}: not implemented for nested tensors of the strided layout")


def _is_same_size(self: Any, other: Any) -> bool:
    if not (_is_nested(self) and _is_nested(other)):
        first, second = ("is" if _is_nested(t) else "is not" for t in (self, other))
        raise RuntimeError(
            "Expected both self and other to be nested tensors. "
            f"Self {first} nested. While Other {second} nested."
        )
    return [p.shape for p in self._parts] == [p.shape for p in other._parts]


def _of_parts(func: Callable, args: Any, kwargs: dict[str, Any]) -> StridedNestedTensor:
    counts = {len(v) for v in tree_leaves((args, kwargs)) if _is_nested(v)}
    if len(counts) != 1:
        raise RuntimeError(
            f"{getattr(func, '__name__', func)}: Expected the nested arguments to have as many "
            f"tensors each, given {sorted(counts)}"
        )

    def call(i: int) -> Tensor:
        def part(value: Any) -> Any:
            return value._parts[i] if _is_nested(value) else value

        return func(*tree_map(part, args), **tree_map(part, kwargs))

    return StridedNestedTensor([call(i) for i in range(counts.pop())])


def _of_dims(func: Callable, count: int, self: Any, *args: Any, **kwargs: Any) -> Any:
    def inner(dim: int) -> int:
        if dim % self.dim() == 0:
            raise RuntimeError(
                f"{getattr(func, '__name__', func)}: not supported on the batch dimension of "
                "nested tensors"
            )
        return dim % self.dim() - 1

    dims = [inner(d) for d in args[:count]]
    if "dim" in kwargs:
        kwargs = {**kwargs, "dim": inner(kwargs["dim"])}
    return StridedNestedTensor([func(p, *dims, *args[count:], **kwargs) for p in self._parts])
