"""Fake quantization: numbers rounded to those for which integers stand, by scale and zero point.

x becomes (clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) scale. Gradients
pass straight through where x is within the range and are 0 outside.
"""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd import Function


class qscheme:
    """How the numbers of a quantized tensor share scales and zero points."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


qscheme.__module__ = __name__.partition(".")[0]
per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class _StraightThrough(Function):
    """The first argument's gradient passes to the second where a mask is True."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, input: Tensor, mask: Tensor) -> Tensor:  # type: ignore
        ctx.save_for_backward(mask)
        return output

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        return None, gy * mask, None


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _check_zero_point(is_inside: bool) -> None:
    if not is_inside:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _check_input(x: Tensor, kernel: str) -> None:
    if not x.is_floating_point():
        name = str(x.dtype).removeprefix("torch.")
        word = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char"}.get(name)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{word or name.title()}'")


def _quantized(x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int) -> tuple:
    """The output and where x is within the range."""
    with taeda.no_grad():
        wide = x.float() if x.dtype in (taeda.float16, taeda.bfloat16) else x
        at = wide * (1.0 / scale.float()).to(wide.dtype)
        is_whole = not zero_point.is_floating_point()
        at = taeda.round(at) + zero_point if is_whole else taeda.round(at + zero_point)
        mask = (at >= low) & (at <= high)
        output = (_clamped(at, low, high) - zero_point) * scale
        return output.to(x.dtype), mask


def _clamped(at: Tensor, low: int, high: int) -> Tensor:
    """The integers within the range; `low` where there is none: for NaN."""
    return taeda.where(at.isnan(), low, at.clamp(low, high))


def _per_tensor(x: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> tuple:
    _check_range(low, high)
    _check_input(x, "fake_quantize_tensor_cachemask_kernel_type_handling")
    number = zero_point.item() if isinstance(zero_point, Tensor) else zero_point
    _check_zero_point(low <= int(number) <= high)
    if not isinstance(scale, Tensor):
        scale = taeda.tensor(scale, dtype=taeda.float32, device=x.device)
    zero_point = taeda.tensor(int(number), device=x.device)
    return _rounded(x, scale.reshape(()), zero_point, low, high)


def _rounded(x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int) -> tuple:
    """`_quantized`, with the gradient that passes straight through."""
    output, mask = _quantized(x, scale.detach(), zero_point.detach(), low, high)
    return _StraightThrough.apply(output, x, mask), mask


@_C._overridable
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """`input` rounded to what integers from `quant_min` to `quant_max` stand for.

    Args:
        input: any floating-point dtype, which the result has too.
        scale, zero_point: numbers, or tensors of one element.

    Raises RuntimeError for a range or zero point that does not fit.

    >>> x = torch.tensor([0.04, 0.26, 30.])
    >>> torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255)
    tensor([ 0.0000,  0.3000, 25.5000])
    """
    return _per_tensor(input, scale, zero_point, quant_min, quant_max)[0]


def _along(values: Tensor, x: Tensor, axis: int) -> Tensor:
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)


def _per_channel(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, low: int, high: int
) -> tuple:
    if scale.dtype not in (taeda.float32, taeda.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {_word(scale)}")
    if zero_point.dtype not in (taeda.int32, taeda.float32, taeda.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {_word(zero_point)}")
    if scale.dim() != 1 or zero_point.dim() != 1:
        which = "scale" if scale.dim() != 1 else "zero point"
        raise RuntimeError(f"{which} should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    size = x.size(axis)  # IndexError where there is no such dimension
    if scale.numel() != size:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    _check_range(low, high)
    inside = ((zero_point >= low) & (zero_point <= high)).all().item() if size else True
    if zero_point.dtype == taeda.int32:
        _check_zero_point(bool(inside))
    if not 0 <= axis <= x.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    _check_input(x, "fake_quantize_channel_cachemask_cpu_type_handling")
    scale, zero_point = (_along(v, x, axis) for v in (scale, zero_point))
    return _rounded(x, scale, zero_point, low, high)


def _word(x: Tensor) -> str:
    """A dtype as C++ names it."""
    names = {taeda.float64: "Double", taeda.float16: "Half", taeda.int64: "Long"}
    return names.get(x.dtype, str(x.dtype).removeprefix("torch.").title())


@_C._overridable
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, each index of a dimension with its own numbers.

    Args:
        scale: float32 or bfloat16, one dimension.
        zero_point: int32, float32 or float16, one dimension.

    >>> x = torch.tensor([[0.26, 0.26]])
    >>> scale, zero_point = torch.tensor([0.1, 0.5]), torch.zeros(2, dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, 0, 255)
    tensor([[0.3000, 0.5000]])
    """
    return _per_channel(input, scale, zero_point, axis, quant_min, quant_max)[0]


# --- with an observer ---

_LEAST_SCALE = 6.1e-5
_NO_POINT = -(1 << 31)  # the zero point of a range that has none


def _single(number: float) -> float:
    """The float32 nearest to it, which the scale is: 2 / 255 puts the zero point of -1 to 1 below
    127.5."""
    from ctypes import c_float

    return c_float(number).value


def choose_parameters(least: float, most: float, low: int, high: int, symmetric: bool) -> tuple:
    """The scale and zero point by which numbers from `least` to `most`, and 0, fit the range."""
    least, most = min(least, 0.0), max(most, 0.0)
    is_centered = symmetric and least < 0 < most
    if is_centered:
        half = (high - low) // 2
        widest = max(abs(least / -(half + 1)), abs(most / half))
        least, most = -widest * (half + 1), widest * half
    scale = _single((most - least) / (high - low))
    if scale == 0 or math.isinf(_single(1 / scale)):
        scale = 0.1
    if scale < _LEAST_SCALE:
        if least == 0:
            most = _LEAST_SCALE * (high - low)
        elif most == 0:
            least = -_LEAST_SCALE * (high - low)
        else:
            least, most = (end * _LEAST_SCALE / scale for end in (least, most))
        scale = _LEAST_SCALE
    errors = abs(low) - abs(least / scale), abs(high) - abs(most / scale)
    start = low - least / scale if errors[0] < errors[1] else high - most / scale
    if is_centered:
        start = (low + high) / 2
    if math.isnan(start):  # of values that were infinite or NaN, as the results are too
        return scale, _NO_POINT
    return scale, low if start < low else high if start > high else round(start)


def _move(running: Tensor, value: Tensor, constant: float) -> None:
    """A running minimum or maximum moves towards a new one; infinity means that there is none."""
    moved = running + constant * (value - running)
    running.copy_(taeda.where(running.isinf(), value, moved))


def _make_room(count: int, least: Tensor, most: Tensor, scale: Tensor, zero_point: Tensor) -> None:
    """One number a channel, where there are none yet."""
    starts = ((least, math.inf), (most, -math.inf), (scale, 1), (zero_point, 0))
    for target, start in starts:
        if target.numel() != count:
            target.resize_(count).fill_(start)


def _set_parameters(
    least: Tensor, most: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int, sym: bool
) -> None:
    pairs = zip(least.reshape(-1).tolist(), most.reshape(-1).tolist())
    found = [choose_parameters(a, b, low, high, sym) for a, b in pairs]
    for target, values in zip((scale, zero_point), zip(*found)):
        target.copy_(taeda.tensor(values, dtype=target.dtype).reshape(target.shape))


def _fused_moving_avg_obs_fq_helper(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[Tensor, Tensor]:
    """`fused_moving_avg_obs_fake_quant`, and where the input is within the range."""
    if per_row_fake_quant and not 0 <= ch_axis < input.dim():
        raise RuntimeError(
            "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
        )
    with taeda.no_grad():
        x = input.detach()
        if per_row_fake_quant:
            _make_room(x.size(ch_axis), running_min, running_max, scale, zero_point)
        if observer_on.item():
            if per_row_fake_quant:
                rows = x.transpose(0, ch_axis).flatten(1) if x.dim() > 1 else x.unsqueeze(1)
                ends = taeda.aminmax(rows, dim=1)
            else:
                ends = taeda.aminmax(x)
            for running, end in zip((running_min, running_max), ends):
                _move(running, end.reshape(running.shape), averaging_const)
    if not fake_quant_on.item():
        return input.clone(), taeda.ones_like(x, dtype=taeda.bool)
    with taeda.no_grad():
        _set_parameters(
            running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant
        )
    if per_row_fake_quant:
        points = zero_point.to(taeda.int32)
        return _per_channel(input, scale, points, ch_axis, quant_min, quant_max)
    _check_range(quant_min, quant_max)
    _check_input(input, "fake_quantize_tensor_cachemask_kernel_type_handling")
    return _rounded(input, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)


@_C._overridable
def fused_moving_avg_obs_fake_quant(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Observes a tensor's range, chooses a scale and a zero point for it, and fake quantizes it.

    Args:
        observer_on, fake_quant_on: tensors of one number, 0 or 1: which of the two is done.
        running_min, running_max: moving averages of the range, written; infinite at first.
        scale, zero_point: written.
        averaging_const: how far the averages move towards each new range.
        quant_min, quant_max: the integers' range.
        ch_axis, per_row_fake_quant: whether each index of a dimension has its own numbers.
        symmetric_quant: whether 0 is the middle of the range.
    """
    return _fused_moving_avg_obs_fq_helper(input, *args, **kwargs)[0]


# --- learned scales and zero points ---


class _Learnable(Function):
    """The gradients of scales and zero points beside the input's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None,
                low: int, high: int, factor: float) -> Tensor:  # type: ignore  # fmt: skip
        point = taeda.clamp(taeda.round(zero_point), low, high)
        ctx.save_for_backward(x, scale, point)
        ctx.settings = axis, low, high, factor
        scales, points = (v if axis is None else _along(v, x, axis) for v in (scale, point))
        at = taeda.round(x * (1.0 / scales) + points)
        return (_clamped(at, low, high) - points) * scales

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple:  # type: ignore[override]
        x, scale, point = ctx.saved_tensors
        axis, low, high, factor = ctx.settings
        scales, points = (v if axis is None else _along(v, x, axis) for v in (scale, point))
        at = taeda.round(x * (1.0 / scales) + points)
        inside = (at >= low) & (at <= high)
        clamped = _clamped(at, low, high)
        of_scale = taeda.where(inside, (clamped - points) - x / scales, clamped - points)
        g_scale = gy * of_scale * factor
        g_point = taeda.where(inside, 0, -gy * scales) * factor
        dims = list(range(x.dim()))
        if axis is not None:
            dims.remove(axis % x.dim())
        sums = [g.sum(dims).reshape(scale.shape) if dims else g for g in (g_scale, g_point)]
        return gy * inside, *sums, None, None, None, None


def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """Fake quantization with gradients of the scale and the zero point (learned step sizes)."""
    _check_range(quant_min, quant_max)
    args = (None, quant_min, quant_max, grad_factor)
    return _Learnable.apply(input, scale, zero_point, *args)


def _fake_quantize_learnable_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """The same with a scale and a zero point for each index of a dimension."""
    _check_range(quant_min, quant_max)
    args = (axis, quant_min, quant_max, grad_factor)
    return _Learnable.apply(input, scale, zero_point, *args)
