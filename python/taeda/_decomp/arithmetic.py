"""Elementwise arithmetic, sums and products."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from .registry import new, of, wide


@of("addcmul")
@wide
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value a b"""
    return x + value * a * b


@of("addcdiv")
@wide
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value a / b"""
    return x + value * (a / b)


@of("lerp.Scalar", "lerp.Tensor")
@wide
def lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    """start + weight (end - start), from the nearer end"""
    if isinstance(weight, Tensor):
        near = weight.abs() >= 0.5
        base = taeda.where(near, end, start)
        return taeda.where(near, weight - 1, weight) * (end - start) + base
    far = abs(weight) >= 0.5
    return (weight - 1 if far else weight) * (end - start) + (end if far else start)


@of("rsub.Tensor", "rsub.Scalar")
def rsub(x: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """other - alpha x"""
    if isinstance(other, Tensor):
        return taeda.sub(other, x, alpha=alpha)
    return taeda.add(x.neg() if alpha == 1 else x * -alpha, other)  # a number in front is rsub


@of("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
@wide
def xlogy(x: Any, y: Any) -> Tensor:
    """x log(y), 0 where x is, NaN where y is"""
    return _product_or_zero(x, y, taeda.log)


@new("special_xlog1py(Tensor self, Tensor other) -> Tensor")
@new("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor")
@new("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor")
@wide
def xlog1py(x: Any, y: Any) -> Tensor:
    """x log(1 + y), 0 where x is, NaN where y is"""
    return _product_or_zero(x, y, taeda.log1p)


def _product_or_zero(x: Any, y: Any, function: Any) -> Tensor:
    x, y = (_float_tensor(v, like) for v, like in ((x, y), (y, x)))
    result = taeda.where(x == 0, 0, x * function(y))
    return taeda.where(taeda.isnan(y), math.nan, result)


def _float_tensor(value: Any, other: Any) -> Tensor:
    """A tensor of floating-point numbers; one of no dimensions for a number."""
    if isinstance(value, Tensor):
        return value if value.is_floating_point() else value.to(taeda.get_default_dtype())
    return taeda.scalar_tensor(float(value), device=other.device)


@of("frac")
def frac(x: Tensor) -> Tensor:
    """x - trunc(x)"""
    return x - taeda.trunc(x)


@of("sinc")
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0"""
    scaled = math.pi * x
    return taeda.where(scaled == 0, 1, taeda.sin(scaled) / scaled)


@of("floor_divide", "floor_divide.Scalar")
def floor_divide(x: Tensor, other: Any) -> Tensor:
    """floor(x / other)"""
    return taeda.div(x, other, rounding_mode="floor")


@of("heaviside")
def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, `values` at it"""
    step = taeda.where(taeda.logical_or(x < 0, taeda.isnan(x)), 0, taeda.ones_like(x))
    return taeda.where(x == 0, values, step)


@of("sgn")
def sgn(x: Tensor) -> Tensor:
    """x / |x|, 0 at 0"""
    if not x.is_complex():
        return taeda.sign(x)
    size = x.abs()
    return taeda.where(size == 0, 0, x / size)


@of("isfinite")
def isfinite(x: Tensor) -> Tensor:
    """Neither infinite nor NaN."""
    if x.is_floating_point() or x.is_complex():
        return taeda.logical_not(taeda.logical_or(taeda.isnan(x), taeda.isinf(x)))
    return taeda.ones_like(x, dtype=taeda.bool)


@of("isposinf")
def isposinf(x: Tensor) -> Tensor:
    """x is inf"""
    return x == math.inf


@of("isneginf")
def isneginf(x: Tensor) -> Tensor:
    """x is -inf"""
    return x == -math.inf


@of("nan_to_num")
def nan_to_num(x: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Numbers in the place of NaN and infinities: 0 and the largest."""
    if not x.is_floating_point():
        return x.clone()
    limit = taeda.finfo(x.dtype)
    posinf = limit.max if posinf is None else posinf
    neginf = limit.min if neginf is None else neginf
    y = taeda.where(taeda.isnan(x), 0.0 if nan is None else nan, x)
    y = taeda.where(y == -math.inf, neginf, y)
    return taeda.where(y == math.inf, posinf, y)


def _log_of_sum(a: Tensor, b: Tensor, exp: Any, log: Any) -> Tensor:
    most = taeda.maximum(a, b)
    least = taeda.minimum(a, b)
    same = taeda.logical_and(taeda.isinf(most), most == least)
    return taeda.where(same, a, most + log(exp(least - most)))


@of("logaddexp")
@wide
def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) + exp(b))"""
    return _log_of_sum(a, b, taeda.exp, taeda.log1p)


@of("logaddexp2")
@wide
def logaddexp2(a: Tensor, b: Tensor) -> Tensor:
    """log2(2^a + 2^b)"""
    return _log_of_sum(a, b, taeda.exp2, lambda z: taeda.log1p(z) / math.log(2))


@of("logsumexp")
@wide
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """max + log(sum(exp(x - max)))"""
    most = x.amax(dim, keepdim=True)
    most = taeda.where(most.abs() == math.inf, 0, most)
    total = taeda.log(taeda.exp(x - most).sum(dim, keepdim=keepdim))
    return total + (most if keepdim else most.reshape(total.shape))


@of("clamp_min", "clamp_min.Tensor")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    """max(x, min)"""
    return taeda.clamp(x, min=min)


@of("clamp_max", "clamp_max.Tensor")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    """min(x, max)"""
    return taeda.clamp(x, max=max)


@of("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """value where the mask is True"""
    if not isinstance(value, Tensor):
        value = taeda.scalar_tensor(value, dtype=x.dtype, device=x.device)
    return taeda.where(mask, value.to(x.dtype), x)


@new("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor")
@wide
def logit_backward(g: Tensor, x: Tensor, eps: float | None = None) -> Tensor:
    """g / (x (1 - x)) in [eps, 1 - eps]; NaN outside of [0, 1], 0 beyond eps"""
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    inside = taeda.logical_and(x >= low, x <= 1.0 - low)
    return taeda.where(inside, g / (x * (1.0 - x)), outside)


@of("logit")
@wide
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), x within [eps, 1 - eps]"""
    x = x if eps is None else taeda.clamp(x, eps, 1 - eps)
    return taeda.log(x / (1 - x))


@new("special_entr(Tensor self) -> Tensor")
def special_entr(x: Tensor) -> Tensor:
    """-x log(x), 0 at 0, -inf below"""
    result = taeda.where(x > 0, -x * taeda.log(x), taeda.where(x == 0, 0, -math.inf))
    return taeda.where(taeda.isnan(x), x, result)


@new("special_log_ndtr(Tensor self) -> Tensor")
def special_log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of the normal distribution's area below x."""
    return taeda.special.log_ndtr(x)


def _combined(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta x + alpha product; with beta 0 nothing is read of x"""
    product = product if alpha == 1 else alpha * product
    return product if beta == 0 else product + (x if beta == 1 else beta * x)


@of("addmm")
@wide
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b"""
    return _combined(x, taeda.mm(a, b), beta, alpha)


@of("baddbmm")
@wide
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b, matrix by matrix"""
    return _combined(x, taeda.bmm(a, b), beta, alpha)


@of("addmv")
@wide
def addmv(x: Tensor, a: Tensor, v: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a v"""
    return _combined(x, (a * v).sum(1), beta, alpha)


@of("mv")
def mv(a: Tensor, v: Tensor) -> Tensor:
    """a v"""
    return (a * v).sum(1)


@of("dot")
def dot(a: Tensor, b: Tensor) -> Tensor:
    """sum(a b)"""
    return (a * b).sum(0)


@of("vdot")
def vdot(a: Tensor, b: Tensor) -> Tensor:
    """sum(conj(a) b)"""
    return (a.conj() * b).sum(0)


@of("sum")
def sum_all(x: Tensor, *, dtype: Any = None) -> Tensor:
    """The sum over all dimensions."""
    return x.sum([], dtype=dtype)


def _all(x: Tensor, *args: Any) -> Tensor:
    result = taeda.logical_not(taeda.any(taeda.logical_not(x), *args))
    return result.to(taeda.uint8) if x.dtype == taeda.uint8 else result


@of("all")
def all_elements(x: Tensor) -> Tensor:
    """Whether no element is 0."""
    return _all(x)


@of("all.dim", "all.dims")
def all_along(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether no element along dimensions is 0."""
    return _all(x) if dim is None and not keepdim else _all(x, dim, keepdim)


@of("aminmax")
def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the largest."""
    dims = [] if dim is None else [dim]
    return taeda.amin(x, dims, keepdim), taeda.amax(x, dims, keepdim)


@of("std", "std.dim", "std.correction")
@wide
def std(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """sqrt(var)"""
    return taeda.sqrt(taeda.var(x, *args, **kwargs))


@of("std_mean", "std_mean.dim", "std_mean.correction")
@wide
def std_mean(x: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """sqrt(var) and mean"""
    variance, mean = taeda.var_mean(x, *args, **kwargs)
    return taeda.sqrt(variance), mean


@new("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
def _euclidean_dist(a: Tensor, b: Tensor) -> Tensor:
    """sqrt(|a|^2 + |b|^2 - 2 a b) between rows"""
    norms = [(t * t).sum(-1, keepdim=True) for t in (a, b)]
    ones = [taeda.ones_like(n) for n in norms]
    left = taeda.cat([-2 * a, norms[0], ones[0]], -1)
    right = taeda.cat([b, ones[1], norms[1]], -1)
    return left.matmul(right.mT).clamp_min(0).sqrt()


@of("linalg_vector_norm")
@wide
def linalg_vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """sum(|x|^p)^(1/p); the largest or least of infinite p, how many are not 0 of p = 0"""
    x = (x if dtype is None else x.to(dtype)).abs()
    dims = [] if dim is None else dim
    if ord == math.inf:
        return x.amax(dims, keepdim)
    if ord == -math.inf:
        return x.amin(dims, keepdim)
    if ord == 0:
        return (x != 0).to(x.dtype).sum(dims, keepdim)
    if ord == 1:
        return x.sum(dims, keepdim)
    return (x**ord).sum(dims, keepdim) ** (1.0 / ord)


@of("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(x: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0."""
    return (x != 0).sum([] if dim is None else dim)
