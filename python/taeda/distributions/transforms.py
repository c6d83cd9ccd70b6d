"""Differentiable functions of tensors with their inverses and Jacobians."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn import functional as F

from . import constraints
from ._transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,  # noqa: F401
    _widened,
    identity_transform,
)
from ._transform_parts import CatTransform, CumulativeDistributionTransform, StackTransform
from .utils import (
    _Number,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]


class _Monotone(Transform):
    """Increasing bijections of numbers without parameters."""

    domain = constraints.real
    codomain: Any = constraints.positive
    bijective = True
    sign = +1
    _all_equal = True


class ExpTransform(_Monotone):
    """y = exp(x)"""

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _clipped(taeda.sigmoid(x))


def _clipped(y: Tensor) -> Tensor:
    finfo = taeda.finfo(y.dtype)
    return y.clamp(min=finfo.tiny, max=1.0 - finfo.eps)


class SigmoidTransform(_Monotone):
    """y = 1 / (1 + exp(-x)), kept inside of (0, 1)."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _clipped(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Monotone):
    """y = log(1 + exp(x)), and x where x > 20."""

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Monotone):
    """y = tanh(x), for whose inverse a cache is more exact than atanh near the ends."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return taeda.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|, not bijective: the inverse is the positive one."""

    domain = constraints.real
    codomain = constraints.positive
    _all_equal = True

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """y = x ** exponent, for positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _parameters = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return taeda.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, _Number) and isinstance(b, _Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """y = loc + scale * x, of events with `event_dim` dimensions."""

    bijective = True
    _parameters = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _widened(constraints.real, self.event_dim, "domain")

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _equal(self.loc, other.loc)
            and _equal(self.scale, other.scale)
        )

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, _Number):
            return (float(self.scale) > 0) - (float(self.scale) < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape, scale = x.shape, self.scale
        if isinstance(scale, _Number):
            result = taeda.full_like(x, math.log(abs(scale)))
        else:
            result = taeda.abs(scale).log()
        if self.event_dim:
            result = result.view((*result.size()[: -self.event_dim], -1)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        parameters = [getattr(p, "shape", ()) for p in (self.loc, self.scale)]
        return taeda.broadcast_shapes(shape, *parameters)

    inverse_shape = forward_shape


def _at_least(shape: Any, n: int) -> Any:
    if len(shape) < n:
        raise ValueError("Too few dimensions on input")
    return shape


class CorrCholeskyTransform(Transform):
    """Vectors of D (D - 1) / 2 numbers to Cholesky factors of D x D correlation matrices.

    tanh of the numbers are the partial correlations; row i is a point of the unit hemisphere in
    i + 1 dimensions, whose coordinates they set by stick breaking (Lewandowski et al. 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = taeda.tanh(x)
        eps = taeda.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)  # of each row's length, after the columns so far
        r = r + taeda.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - taeda.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        n = _at_least(shape, 1)[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Any:
        if _at_least(shape, 2)[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return Size((*shape[:-2], d * (d - 1) // 2))


class SoftmaxTransform(Transform):
    """y = exp(x) / sum(exp(x)), not bijective: the inverse is log(y)."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _all_equal = True

    def _call(self, x: Tensor) -> Tensor:
        exps = (x - x.max(-1, True)[0]).exp()
        return exps / exps.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _at_least(shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of K - 1 numbers to points of the simplex of K: each takes a share of what is left.

    The shares are sigmoid(x - log(K - 1), x - log(K - 2), ...), so that zeros give equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _all_equal = True

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        """log of K - 1, K - 2, ..., 1."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._offset(x))
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y[..., :-1]
        left = taeda.clamp(1 - y.cumsum(-1), min=taeda.finfo(y.dtype).tiny)
        return y.log() - left.log() + self._offset(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return Size((*_at_least(shape, 1)[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*_at_least(shape, 1)[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Any square matrix to a lower triangular one, exp of the diagonal on its diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain: Any = constraints.lower_cholesky
    _all_equal = True

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Any square matrix to L L^T, L what LowerCholeskyTransform makes of it."""

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(taeda.linalg.cholesky(y))
