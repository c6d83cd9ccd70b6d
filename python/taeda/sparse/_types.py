"""torch.sparse.FloatTensor and its like, old programs' names of dtypes with the sparse layout."""

from __future__ import annotations

from typing import Any

import taeda


class _SparseType(type):
    """isinstance() asks for the layout and the dtype."""

    dtype: Any

    def __instancecheck__(cls, object: Any) -> bool:
        return isinstance(object, taeda.Tensor) and object.is_sparse and object.dtype is cls.dtype

    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Of indices, values and a size, or of sizes: a tensor without values."""
        if all(isinstance(a, int) for a in args):
            return taeda.sparse_coo_tensor(args, dtype=cls.dtype)
        return taeda.sparse_coo_tensor(*args, dtype=cls.dtype, **options)


_DTYPES = {
    "Float": taeda.float32,
    "Double": taeda.float64,
    "Half": taeda.float16,
    "BFloat16": taeda.bfloat16,
    "Byte": taeda.uint8,
    "Char": taeda.int8,
    "Short": taeda.int16,
    "Int": taeda.int32,
    "Long": taeda.int64,
}

TENSOR_TYPES = {
    f"{name}Tensor": _SparseType(
        f"{name}Tensor", (), {"dtype": dtype, "is_sparse": True, "__module__": "torch.sparse"}
    )
    for name, dtype in _DTYPES.items()
}
