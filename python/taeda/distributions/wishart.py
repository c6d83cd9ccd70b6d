"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .chi2 import Chi2
from .distribution import Expandable
from .exp_family import ExponentialFamily
from .multivariate_normal import FromMatrix, log_det_half
from .utils import _Number, lazy_property

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of mvlgamma."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    shifts = taeda.arange(p, dtype=x.dtype, device=x.device).div(2)
    return taeda.digamma(x.unsqueeze(-1) - shifts).sum(-1)


def _clamp_above_eps(x: Tensor) -> Tensor:
    return x.clamp(min=taeda.finfo(x.dtype).eps)


class Wishart(FromMatrix, Expandable, ExponentialFamily):
    """Sums of `df` products ``x x^T``, x normal with a covariance V: p x p matrices, df > p - 1.

    V, its inverse `precision_matrix` or its Cholesky factor `scale_tril`. Draws are made by
    Bartlett's decomposition; singular ones are drawn again, at most `max_try_correction` times.

    >>> from taeda.distributions import Wishart
    >>> Wishart(torch.tensor(3.), torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    df: Tensor

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        (param,) = given
        if param.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, _Number):
            batch_shape = param.shape[:-2]
            self.df = taeda.tensor(df, dtype=param.dtype, device=param.device)
        else:
            batch_shape = Size(taeda.broadcast_shapes(param.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        event_shape = param.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        self._set_matrix(
            batch_shape,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._set_factor(covariance_matrix, precision_matrix, scale_tril)

    def _expand_attributes(self, new: Any, batch_shape: Size) -> None:
        super()._expand_attributes(new, batch_shape)
        shape = batch_shape + self._event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)

    @lazy_property
    def _dist_chi2(self) -> Chi2:
        """The squares on the diagonal of Bartlett's factor: df, df - 1, ... degrees of freedom."""
        like = self._unbroadcasted_scale_tril
        steps = taeda.arange(self._event_shape[-1], dtype=like.dtype, device=like.device)
        return Chi2(self.df.unsqueeze(-1) - steps.expand((*self._batch_shape, -1)))

    @property
    def _batch_dims(self) -> list[int]:
        return [-(i + 1) for i in range(len(self._batch_shape))]

    @lazy_property
    def precision_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        identity = taeda.eye(self._event_shape[-1], device=factor.device, dtype=factor.dtype)
        return self._broadcasted(taeda.cholesky_solve(identity, factor))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.view((*self._batch_shape, 1, 1)) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._times(factor.masked_fill(factor <= 0, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, V.pow(2) + taeda.einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape: Any = Size()) -> Tensor:
        p = self._event_shape[-1]
        roots = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt())
        noise = roots.diag_embed(dim1=-2, dim2=-1)
        i, j = taeda.tril_indices(p, p, offset=-1)
        noise[..., i, j] = taeda.randn(
            (*sample_shape, *self._batch_shape, p * (p - 1) // 2),
            dtype=noise.dtype,
            device=noise.device,
        )
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _any_of_batch(self, of_matrix: Tensor) -> Tensor:
        return of_matrix.amax(self._batch_dims) if self._batch_shape else of_matrix

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Tensor:
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        is_singular = self._any_of_batch(self.support.check(sample))
        if is_singular.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(tries):
                again = self._bartlett_sampling(is_singular[is_singular].shape)
                sample[is_singular] = again
                is_singular[is_singular.clone()] = self._any_of_batch(~self.support.check(again))
                if not is_singular.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = taeda.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (p * _log_2 / 2 + log_det_half(factor))
            - taeda.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * taeda.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _log_2 / 2 + log_det_half(self._unbroadcasted_scale_tril))
            + taeda.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        log_det = taeda.linalg.slogdet(-2 * x).logabsdet
        return half * (-log_det + _log_2 * p) + taeda.mvlgamma(half, p=p)
