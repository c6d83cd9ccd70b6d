"""What PyTorch has as operators and taeda as methods: questions, the parts of sparse tensors."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .spelling import define


@define("is_pinned(Tensor self, Device? device=None) -> bool")
def _is_pinned(self: Tensor, device: Any = None) -> bool:
    return self.is_pinned()


@define("dim(Tensor self) -> int")
def _dim(self: Tensor) -> int:
    return self.dim()


@define("is_contiguous(Tensor self) -> bool")
def _is_contiguous(self: Tensor) -> bool:
    return self.is_contiguous()


@define("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool")
def _is_contiguous_in(self: Tensor, memory_format: Any) -> bool:
    return self.is_contiguous(memory_format=memory_format)


@define("is_same_size(Tensor self, Tensor other) -> bool")
def _is_same_size(self: Tensor, other: Tensor) -> bool:
    return self.shape == other.shape


@define("_nnz(Tensor self) -> int")
def _nnz(self: Tensor) -> int:
    return self._nnz()


@define("values(Tensor(a) self) -> Tensor(a)")
def _values(self: Tensor) -> Tensor:
    return self.values()


@define("crow_indices(Tensor(a) self) -> Tensor(a)")
def _crow_indices(self: Tensor) -> Tensor:
    return self.crow_indices()


@define("col_indices(Tensor(a) self) -> Tensor(a)")
def _col_indices(self: Tensor) -> Tensor:
    return self.col_indices()


@define("numpy_T(Tensor(a) self) -> Tensor(a)")
def _numpy_t(self: Tensor) -> Tensor:
    return self.permute(*reversed(range(self.dim())))


@define("_int_mm(Tensor self, Tensor mat2) -> Tensor")
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return taeda._int_mm(self, mat2)


@define(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
    "out_dtype=None) -> Tensor"
)
def _grouped_mm(self: Tensor, mat2: Tensor, *rest: Any, **options: Any) -> Tensor:
    return taeda._grouped_mm(self, mat2, *rest, **options)


@define("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return taeda._weight_norm(v, g, dim)
