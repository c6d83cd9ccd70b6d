"""Numerical limits of dtypes, and the tensor types of old (``torch.FloatTensor``)."""

from __future__ import annotations

import math
from typing import Any

from taeda import _C


def _show(value: float) -> str:
    """Six significant digits, as PyTorch's limits are printed."""
    return f"{value:.6g}"


def _integer(dtype: Any) -> Any:
    """The integer dtype of the same size."""
    return {1: _C.uint8, 2: _C.int16, 4: _C.int32, 8: _C.int64}[dtype.itemsize]


def _number(code: int, dtype: Any) -> float:
    """The number that these bits are in a floating dtype."""
    return _C.tensor(code, dtype=_integer(dtype)).view(dtype).item()


def _code(number: float, dtype: Any) -> Any:
    return _C.tensor(number, dtype=dtype).view(_integer(dtype)).item()


def _largest(dtype: Any) -> float:
    """The largest finite number: the codes above it are infinity or NaN."""
    bits = dtype.itemsize * 8 - dtype.is_signed
    first, last = _code(1.0, dtype), (1 << bits) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if math.isfinite(_number(middle, dtype)):
            first = middle
        else:
            last = middle - 1
    return _number(first, dtype)


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    __module__ = __name__.partition(".")[0]

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            kind = dtype.__class__.__name__
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {kind}")
        real = dtype.to_real()
        if not real.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{dtype}'"
            )
        if real is _C.float4_e2m1fn_x2:
            raise TypeError(f"torch.finfo(): an element of {dtype} holds two numbers")
        self.bits = real.itemsize * 8
        one = _code(1.0, real)
        self.eps = _number(one + 1, real) - 1
        mantissa = round(-math.log2(self.eps))
        self.resolution = 10.0 ** -int(mantissa * math.log10(2))
        self.smallest_subnormal = _number(0, real) or _number(1, real)
        self.smallest_normal = self.tiny = (
            _number(1 << mantissa, real) if mantissa else _number(0, real)
        )
        self.max = _largest(real)
        self.min = -self.max if real.is_signed else _number(0, real)
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
        if not isinstance(type, _C.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' must be torch.dtype, not {type.__class__.__name__}"
            )
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
                "enabled. (no CUDA device was found)"
            )
        return TensorType.__call__(cls, *args, device=device).to(device or "cuda")


_DTYPES = {value: None for value in vars(_C).values() if isinstance(value, _C.dtype)}
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
