"""Semi-structured sparsity: two of every four elements of a row are 0.

PyTorch compresses such matrices on NVIDIA's GPUs alone. taeda has no kernels for them: a tensor
that PyTorch would refuse is refused in its words, another raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda import Tensor

_WHY = "taeda has no kernels for semi-structured matrices; use torch.mm with the dense tensor"


class _SEMI_STRUCTURED_SPARSE_CONFIG(NamedTuple):
    """The least sizes of a compressed matrix and of the dense one it is multiplied with."""

    sparse_min_rows: int
    sparse_min_cols: int
    dense_min_rows: int
    dense_min_cols: int


class SparseSemiStructuredTensor(Tensor):
    """What the classes of compressed matrices are. None is made: `from_dense` raises."""

    _DEFAULT_ALG_ID = 0
    _DTYPE_SHAPE_CONSTRAINTS: dict[Any, _SEMI_STRUCTURED_SPARSE_CONFIG] = {}
    _FORCE_CUTLASS = False
    _FUSE_TRANSPOSE = False
    _PROTOTYPE_WARNING_SHOWN = False
    BACKEND = ""
    SPARSE_DISPATCH: dict[Any, Any] | None = None

    @classmethod
    def _load_dispatch_table(cls, custom_dispatch_table: Any = None) -> None:
        """Adds functions for operators of such tensors, by the operators' packets."""
        if cls.SPARSE_DISPATCH is None:
            cls.SPARSE_DISPATCH = dict(custom_dispatch_table or {})

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor: Tensor) -> None:
        """RuntimeError where PyTorch refuses a tensor."""
        x = original_tensor
        if not x.is_cuda:
            raise RuntimeError(
                f"Error original_tensor.device= {x.device} is not supported! Only CUDA tensors "
                "are currently supported."
            )
        if x.dim() != 2:
            raise RuntimeError(
                f"Error original_tensor.dim = {x.dim()} is not supported! Only 2d tensors are "
                "currently supported."
            )
        limits = cls._DTYPE_SHAPE_CONSTRAINTS.get(x.dtype)
        if limits is None:
            raise RuntimeError(f"Error original_tensor.dtype {x.dtype} is not a supported dtype!")
        rows, columns = limits.sparse_min_rows, limits.sparse_min_cols
        if x.shape[0] < rows or x.shape[0] % rows or x.shape[1] < columns or x.shape[1] % columns:
            raise RuntimeError(
                f"Error original_tensor.shape {x.shape} is not supported! Both dimensions must be "
                f"larger or equal than and a multiple of ({rows}, {columns})"
            )

    @classmethod
    def from_dense(cls, original_tensor: Tensor, *_: Any) -> Any:
        """RuntimeError or NotImplementedError: nothing is compressed."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        raise NotImplementedError(f"torch.sparse.{cls.__name__}: {_WHY}")


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The format of CUTLASS: elements and their indices in two matrices."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS = {
        taeda.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 128, 16, 16),
        taeda.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        taeda.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        taeda.float32: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 4, 4),
    }


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The format of cuSPARSELt: elements and their indices in one matrix."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS = {
        taeda.float8_e4m3fn: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        taeda.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        taeda.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
        taeda.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
    }


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False) -> Any:
    """RuntimeError or NotImplementedError, as `SparseSemiStructuredTensor.from_dense`."""
    force = SparseSemiStructuredTensor._FORCE_CUTLASS
    kind = SparseSemiStructuredTensorCUTLASS if force else SparseSemiStructuredTensorCUSPARSELT
    return kind.from_dense(original_tensor)
