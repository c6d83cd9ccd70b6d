"""Numerical limits of dtypes, and the tensor types of old (``torch.FloatTensor``)."""

from __future__ import annotations

from typing import Any

from taeda import _C

# dtype -> exponent of eps, smallest normal, largest value
_FLOATS = {
    _C.float16: (2.0**-10, 2.0**-14, 65504.0, 1e-3, 2.0**-24),
    _C.bfloat16: (2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127, 1e-2, 2.0**-133),
    _C.float32: (2.0**-23, 2.0**-126, (2 - 2.0**-23) * 2.0**127, 1e-6, 2.0**-149),
    _C.float64: (2.0**-52, 2.0**-1022, 1.7976931348623157e308, 1e-15, 5e-324),
}


def _show(value: float) -> str:
    """Six significant digits, as PyTorch's limits are printed."""
    return f"{value:.6g}"


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            kind = dtype.__class__.__name__
            raise TypeError(f"finfo(): argument 'type' must be torch.dtype, not {kind}")
        real = dtype.to_real()
        if real not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{dtype}'"
            )
        self.eps, self.tiny, self.max, self.resolution, self.smallest_subnormal = _FLOATS[real]
        self.smallest_normal = self.tiny
        self.min = -self.max
        self.bits = real.itemsize * 8
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


TYPE_NAMES = {
    _C.float32: "Float",
    _C.float64: "Double",
    _C.float16: "Half",
    _C.bfloat16: "BFloat16",
    _C.uint8: "Byte",
    _C.int8: "Char",
    _C.int16: "Short",
    _C.int32: "Int",
    _C.int64: "Long",
    _C.bool: "Bool",
    _C.complex64: "ComplexFloat",
    _C.complex128: "ComplexDouble",
}


class TensorType(type):
    """``FloatTensor`` and its kin: a call makes a tensor of the dtype, isinstance asks for it."""

    dtype: Any

    def __call__(cls, *args: Any) -> Any:
        return _C._legacy_tensor(cls.dtype, *args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Tensor) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


TENSOR_TYPES = {
    f"{name}Tensor": TensorType(f"{name}Tensor", (), {"dtype": dtype, "__module__": "torch"})
    for dtype, name in TYPE_NAMES.items()
}


def type_text(dtype: Any) -> str:
    """'torch.FloatTensor'."""
    return f"torch.{TYPE_NAMES[dtype]}Tensor"


def dtype_of_type(name: Any) -> Any:
    """The dtype that 'torch.FloatTensor', FloatTensor or torch.float32 names."""
    if isinstance(name, _C.dtype):
        return name
    if isinstance(name, TensorType):
        return name.dtype
    if isinstance(name, str):
        short = name.removeprefix("torch.")
        if short in TENSOR_TYPES:
            return TENSOR_TYPES[short].dtype
        if short == "Tensor":
            return _C.get_default_dtype()
        raise ValueError(f"invalid type: '{name}'")
    if name is _C.Tensor:
        return _C.get_default_dtype()
    raise TypeError(f"dtype must be a type, str, or dtype object, got {type(name).__name__}")
