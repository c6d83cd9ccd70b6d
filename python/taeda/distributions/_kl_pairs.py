"""Divergences between distributions of different families."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant as _EULER

_LOG_2PI = math.log(2 * math.pi)


def _infinite(parameter: str) -> Any:
    return lambda p, q: taeda.full_like(getattr(p, parameter), math.inf)


# p takes values that q does not. By p: a parameter, whose shape the result has, and the q.
_INFINITE: dict[type, tuple[str, tuple[type, ...]]] = {
    Beta: ("concentration1", (Pareto,)),
    ContinuousBernoulli: ("probs", (Pareto,)),
    Exponential: ("rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gamma: ("concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gumbel: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Laplace: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Normal: ("loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Pareto: ("scale", (Beta, ContinuousBernoulli, Uniform)),
    Poisson: ("rate", (Bernoulli, Binomial)),
}
for _p, (_parameter, _qs) in _INFINITE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite(_parameter))


def _log_gamma_normalizer(q: Gamma) -> Tensor:
    """lgamma(a) - a log(rate)"""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _kl_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    kl = -p.entropy() - p.mean * q.logits - taeda.log1p(-q.probs) - q._cont_bern_log_norm()
    if isinstance(p, Uniform):
        kl = kl.masked_fill((p.high >= 1) | (p.low <= 0), math.inf)
    return kl


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Tensor:
    total = p.concentration1 + p.concentration0
    mean_log = p.concentration1.digamma() - total.digamma()
    kl = -p.entropy() + _log_gamma_normalizer(q) - (q.concentration - 1) * mean_log
    return kl + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
def _kl_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    square = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (_LOG_2PI + variance.log()) + square / (2 * variance)


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Any, q: Any) -> Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    """As PyTorch's, infinite also where q is just [0, 1]."""
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low >= 0) | (q.high <= 1), math.inf)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio, a = q.rate / p.rate, q.concentration
    return -a * ratio.log() + ratio + a.lgamma() + a * _EULER - (1 + _EULER)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Tensor:
    product, offset = p.rate * q.scale, q.loc / q.scale
    tail = taeda.exp(offset) * product / (product + 1)
    return product.log() - 1 - offset + tail + product.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Any, q: Any) -> Tensor:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    log_ratio = 0.5 * taeda.log(rate_squared * variance * 2 * math.pi)
    square = rate_squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return log_ratio - 1 + square / variance


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Tensor:
    a, product, offset = p.concentration, p.rate * q.scale, q.loc / q.scale
    t1 = (a - 1) * a.digamma() - a.lgamma() - a
    t2 = product.log() + a / product
    return t1 + t2 + taeda.exp(offset) * (1 + product.reciprocal()).pow(-a) - offset


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Any, q: Any) -> Tensor:
    a, variance, rate_squared = p.concentration, q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * taeda.log(rate_squared * variance * 2 * math.pi) - a - a.lgamma()
    square = 0.5 * (a.pow(2) + a) / rate_squared - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return t1 + (a - 1) * a.digamma() + square / variance


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * _EULER - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (_EULER + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    square = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * taeda.log(2 * ratio / math.pi) + ratio + square / variance - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Tensor:
    mean, offset = p.loc / q.scale, q.loc / q.scale
    ratio = (p.scale / q.scale).pow(2)
    tail = taeda.exp(-mean + 0.5 * ratio + offset)
    return -ratio.log() * 0.5 + mean - offset + tail - 0.5 * (1 + _LOG_2PI)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Tensor:
    distance = p.loc - q.loc
    z = distance / p.scale
    t1 = math.sqrt(2 / math.pi) * p.scale * taeda.exp(-0.5 * z.pow(2))
    t2 = distance * taeda.erf(math.sqrt(0.5) * z)
    log_ratio = taeda.log(p.scale / q.scale)
    return -log_ratio + (t1 + t2) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Tensor:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    return kl.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    t1 = p.alpha.log() - mean_log
    t2 = _log_gamma_normalizer(q) + (1 - q.concentration) * mean_log
    kl = t1 + t2 + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return kl.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Tensor:
    common = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    square = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    kl = t1 + square / (2 * q.scale.pow(2)) - 1
    return kl.masked_fill(p.alpha <= 2, math.inf)


def _mean_log(p: Uniform) -> Tensor:
    """E[log x] under a uniform distribution."""
    width = p.high - p.low
    return (taeda.xlogy(p.high, p.high) - taeda.xlogy(p.low, p.low) - width) / width


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    a, b = q.concentration1, q.concentration0
    low, high = 1 - p.low, 1 - p.high
    mean_log_rest = (taeda.xlogy(high, high) - taeda.xlogy(low, low) + width) / width
    kl = (b - 1) * mean_log_rest + a.lgamma() + b.lgamma() - (a + b).lgamma()
    kl = kl - width.log() - (a - 1) * _mean_log(p)
    return kl.masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p: Any, q: Any) -> Tensor:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return kl.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Tensor:
    kl = -(p.high - p.low).log() + _log_gamma_normalizer(q)
    kl = kl + (1 - q.concentration) * _mean_log(p) + q.rate * (p.high + p.low) / 2
    return kl.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (taeda.exp(-high) - taeda.exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    square = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * square / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Tensor:
    log_normalizer = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    kl = _mean_log(p) * (q.alpha + 1) - log_normalizer
    return kl.masked_fill(p.low < q.scale, math.inf)
