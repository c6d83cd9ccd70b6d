"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Distribution, Expandable
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(k: Tensor) -> Tensor:
    """Square matrices with 1 added to their diagonals."""
    n = k.size(-1)
    k = k.contiguous()
    k.view(-1, n * n)[:, :: n + 1] += 1
    return k


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of ``I + W^T D^-1 W``, for W (..., n, m) and D (..., n)."""
    return taeda.linalg.cholesky(_plus_identity(taeda.matmul(W.mT / D.unsqueeze(-2), W)))


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``log det(W W^T + D)`` by the matrix determinant lemma."""
    of_capacitance = 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return of_capacitance + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``x^T (W W^T + D)^-1 x`` by the Woodbury formula."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Expandable, Distribution):
    """Vectors of covariance ``W W^T + diag(D)``, W `cov_factor` (n, m) and D `cov_diag` (n).

    For m much smaller than n what costs n^3 otherwise costs n m^2.

    >>> from taeda.distributions import LowRankMultivariateNormal
    >>> d = LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            loc_, self.cov_factor, diag_ = taeda.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = loc_[..., 0], diag_[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    def _broadcasted(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        W, D, _ = self._factors()
        return (W.pow(2).sum(-1) + D).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """With V = D^-1/2 W the covariance is ``D^1/2 (I + V V^T) D^1/2``."""
        W, D, _ = self._factors()
        root = D.sqrt().unsqueeze(-1)
        V = W / root
        factor = taeda.linalg.cholesky(_plus_identity(taeda.matmul(V, V.mT)))
        return self._broadcasted(root * factor)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        W, D, _ = self._factors()
        return self._broadcasted(taeda.matmul(W, W.mT) + taeda.diag_embed(D))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        W, D, tril = self._factors()
        A = taeda.linalg.solve_triangular(tril, W.mT / D.unsqueeze(-2), upper=False)
        return self._broadcasted(taeda.diag_embed(D.reciprocal()) - A.mT @ A)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        eps_w = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), **options)
        eps_d = _standard_normal(shape, **options)
        W, D, _ = self._factors()
        return self.loc + _batch_mv(W, eps_w) + D.sqrt() * eps_d

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        W, D, tril = self._factors()
        distance = _batch_lowrank_mahalanobis(W, D, value - self.loc, tril)
        log_det = _batch_lowrank_logdet(W, D, tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = _batch_lowrank_logdet(*self._factors())
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape)
