"""Numerical limits of dtypes, and the tensor types of old (``torch.FloatTensor``)."""

from __future__ import annotations

import math
from typing import Any

from taeda import _C
from taeda._arguments import require_dtype


def _show(value: float) -> str:
    """Six significant digits, as PyTorch's limits are printed."""
    return f"{value:.6g}"


# The mantissa bits, the least exponent of a normal number, and the largest number, of each dtype. A
# number is mantissa 2**exponent, with the mantissa from 1 to 2.
_FORMATS = {
    _C.float64: (52, -1022, (2 - 2.0**-52) * 2.0**1023),
    _C.float32: (23, -126, (2 - 2.0**-23) * 2.0**127),
    _C.bfloat16: (7, -126, (2 - 2.0**-7) * 2.0**127),
    _C.float16: (10, -14, (2 - 2.0**-10) * 2.0**15),
    _C.float8_e4m3fn: (3, -6, 1.75 * 2.0**8),  # a mantissa of 1.875 would be NaN
    _C.float8_e5m2: (2, -14, 1.75 * 2.0**15),
    _C.float8_e4m3fnuz: (3, -7, 1.875 * 2.0**7),
    _C.float8_e5m2fnuz: (2, -15, 1.75 * 2.0**15),
    _C.float8_e8m0fnu: (0, -127, 2.0**127),  # powers of two alone
}


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    __module__ = __name__.partition(".")[0]

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        require_dtype("finfo", "type", dtype)
        real = dtype.to_real()
        if not real.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{dtype}'"
            )
        if real is _C.float4_e2m1fn_x2:
            raise TypeError(f"torch.finfo(): an element of {dtype} holds two numbers")
        mantissa, least, self.max = _FORMATS[real]
        self.bits = real.itemsize * 8
        # PyTorch's number, half of the distance from 1 to the next one.
        self.eps = 0.125 if real is _C.float8_e5m2fnuz else 2.0**-mantissa
        self.resolution = 10.0 ** -int(mantissa * math.log10(2))
        self.smallest_normal = self.tiny = 2.0**least
        self.smallest_subnormal = 2.0 ** (least - mantissa)
        self.min = -self.max if real.is_signed else self.tiny
        self.dtype = str(real).removeprefix("torch.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={_show(self.resolution)}, min={_show(self.min)}, "
            f"max={_show(self.max)}, eps={_show(self.eps)}, "
            f"smallest_normal={_show(self.smallest_normal)}, tiny={_show(self.tiny)}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: bits, max, min."""

    __module__ = __name__.partition(".")[0]

    def __init__(self, type: Any) -> None:
        require_dtype("iinfo", "type", type)
        if type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.dtype = str(type).removeprefix("torch.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class TensorType(type):
    """``FloatTensor`` and its kin: a call makes a tensor of the dtype, isinstance asks for it."""

    dtype: Any
    device_type = "cpu"
    is_cuda = property(lambda cls: cls.device_type == "cuda")

    def __new__(mcs, name: str, bases: tuple, namespace: dict) -> Any:
        for base in bases:
            raise TypeError(
                f"type '{base.__module__}.{base.__name__}' is not an acceptable base type"
            )
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if device is not None and _C.device(device).type != cls.device_type:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls.device_type} but device type: "
                f"{_C.device(device).type} was passed"
            )
        return _C._legacy_tensor(cls.dtype, *args)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, _C.Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device_type
        )

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


class CudaTensorType(TensorType):
    """``torch.cuda.FloatTensor`` and its kin, on the current device."""

    device_type = "cuda"

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if not _C._cuda_device_count():
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA "
                f"enabled. (no CUDA device was found: {_C._cuda_how_to_find_devices()})"
            )
        return TensorType.__call__(cls, *args, device=device).to(device or "cuda")


_DTYPES: dict[Any, None] = {
    value: None for value in vars(_C).values() if isinstance(value, _C.dtype)
}
_CLASSES = {f"{dtype._class_name}Tensor": dtype for dtype in _DTYPES}


def _types(kind: type[TensorType], module: str) -> dict[str, TensorType]:
    return {
        name: kind(name, (), {"dtype": dtype, "__module__": module})
        for name, dtype in _CLASSES.items()
        if not (dtype._is_storage_type or dtype.is_complex)
    }


TENSOR_TYPES = _types(TensorType, "torch")
CUDA_TENSOR_TYPES = _types(CudaTensorType, "torch.cuda")


def type_text(dtype: Any, device: Any = None, is_sparse: bool = False) -> str:
    """'torch.FloatTensor', 'torch.cuda.FloatTensor', 'torch.sparse.FloatTensor'."""
    part = "" if device is None or device.type == "cpu" else f"{device.type}."
    part += "sparse." if is_sparse else ""
    return f"torch.{part}{dtype._class_name}Tensor"


def device_of_type(name: Any) -> str | None:
    """The device type that 'torch.cuda.FloatTensor' or the class names; None for a dtype's name."""
    if isinstance(name, TensorType):
        return name.device_type
    if not isinstance(name, str) or not name.endswith("Tensor"):
        return None
    return "cuda" if name.startswith("torch.cuda.") else "cpu"


def dtype_of_type(name: Any) -> Any:
    """The dtype that 'torch.FloatTensor', FloatTensor or torch.float32 names."""
    if isinstance(name, _C.dtype):
        return name
    if isinstance(name, TensorType):
        return name.dtype
    if isinstance(name, str):
        short = name.removeprefix("torch.").removeprefix("cuda.")
        if short in _CLASSES:
            return _CLASSES[short]
        if short == "Tensor":
            return _C.get_default_dtype()
        raise ValueError(f"invalid type: '{name}'")
    if name is _C.Tensor:
        return _C.get_default_dtype()
    raise TypeError(f"dtype must be a type, str, or dtype object, got {type(name).__name__}")
