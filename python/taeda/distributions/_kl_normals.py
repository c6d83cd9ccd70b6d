"""Divergences between multivariate normal distributions, dense and of low rank."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .kl import register_kl
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, log_det_half


def _batch_trace_XXT(bmat: Tensor) -> Tensor:
    """The squared Frobenius norms of matrices."""
    return bmat.reshape((*bmat.shape[:-2], -1)).pow(2).sum(-1)


def _check_events(p: Any, q: Any, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind}Multivariate Normals with "
            "different event shapes cannot be computed"
        )


def _solved_traces(q: MultivariateNormal, *factors: Tensor) -> Any:
    """The sum of ``tr(Q^-1 F F^T)``, Q = L L^T the covariance of q."""
    L = q._unbroadcasted_scale_tril
    total: Any = 0
    for factor in factors:
        batch = taeda.broadcast_shapes(L.shape[:-2], factor.shape[:-2])
        n, m = factor.shape[-2:]
        solved = taeda.linalg.solve_triangular(
            L.expand((*batch, n, n)), factor.expand((*batch, n, m)), upper=False
        )
        total = total + _batch_trace_XXT(solved)
    return total


def _of_lowrank(q: LowRankMultivariateNormal) -> tuple[Tensor, Tensor]:
    """D^-1 and A with ``Q^-1 = D^-1 - A^T A``."""
    W, D, tril = q._factors()
    return D, taeda.linalg.solve_triangular(tril, W.mT / D.unsqueeze(-2), upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "")
    Lp, Lq = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = _solved_traces(q, Lp)
    distance = _batch_mahalanobis(Lq, q.loc - p.loc)
    half_log_ratio = log_det_half(Lq) - log_det_half(Lp)
    return half_log_ratio + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "Low Rank ")
    log_ratio = _batch_lowrank_logdet(*q._factors()) - _batch_lowrank_logdet(*p._factors())
    W, D, _ = p._factors()
    Dq, A = _of_lowrank(q)
    trace = (
        (D / Dq).sum(-1)
        + _batch_trace_XXT(W * Dq.rsqrt().unsqueeze(-1))
        - _batch_trace_XXT(A * D.sqrt().unsqueeze(-2))
        - _batch_trace_XXT(A.matmul(W))
    )
    return 0.5 * (log_ratio + trace + _lowrank_distance(p, q) - p.event_shape[0])


def _lowrank_distance(p: Any, q: LowRankMultivariateNormal) -> Tensor:
    W, D, tril = q._factors()
    return _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, tril)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "(Low Rank) ")
    L = p._unbroadcasted_scale_tril
    log_ratio = _batch_lowrank_logdet(*q._factors()) - 2 * log_det_half(L)
    Dq, A = _of_lowrank(q)
    trace = _batch_trace_XXT(L * Dq.rsqrt().unsqueeze(-1)) - _batch_trace_XXT(A.matmul(L))
    return 0.5 * (log_ratio + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "(Low Rank) ")
    W, D, _ = p._factors()
    L = q._unbroadcasted_scale_tril
    log_ratio = 2 * log_det_half(L) - _batch_lowrank_logdet(*p._factors())
    trace = _solved_traces(q, W, taeda.diag_embed(D.sqrt()))
    distance = _batch_mahalanobis(L, q.loc - p.loc)
    return 0.5 * (log_ratio + trace + distance - p.event_shape[0])
