"""The names that PyTorch's files use for types, and what they are here."""

from __future__ import annotations

from typing import Any

import taeda

# Storage class name in a file -> dtype of its elements.
STORAGE_DTYPES = {
    "FloatStorage": taeda.float32,
    "DoubleStorage": taeda.float64,
    "HalfStorage": taeda.float16,
    "BFloat16Storage": taeda.bfloat16,
    "LongStorage": taeda.int64,
    "IntStorage": taeda.int32,
    "ShortStorage": taeda.int16,
    "CharStorage": taeda.int8,
    "ByteStorage": taeda.uint8,
    "BoolStorage": taeda.bool,
    "ComplexFloatStorage": taeda.complex64,
    "ComplexDoubleStorage": taeda.complex128,
    "UntypedStorage": taeda.uint8,
}
STORAGE_NAMES = {dtype: name for name, dtype in STORAGE_DTYPES.items() if name != "UntypedStorage"}

# dtype name in a file -> dtype.
DTYPES = {
    name: getattr(taeda, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    ).split()
}
DTYPES.update(
    half=taeda.float16,
    float=taeda.float32,
    double=taeda.float64,
    short=taeda.int16,
    int=taeda.int32,
    long=taeda.int64,
    cfloat=taeda.complex64,
    cdouble=taeda.complex128,
)


class StorageType:
    """A storage class named in a file: a dtype, or untyped bytes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = STORAGE_DTYPES[name]


class LoadedStorage:
    """A storage read from a file: the bytes, and the dtype that its tensors have.

    ``untyped`` is None on the meta device.
    """

    def __init__(self, untyped: Any, dtype: Any, nbytes: int, device: Any) -> None:
        self.untyped = untyped
        self.dtype = dtype
        self.nbytes = nbytes
        self.device = device
