"""Functions by other functions of PyTorch: what a derivative is where PyTorch's own formula errs.

Some are compositions, whose derivatives are those of their parts; some are functions of one number
with the chain of their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from tests.parity.sides import Side

Chain = tuple[Callable[[torch.Tensor], torch.Tensor], ...]


class Chained(torch.autograd.Function):
    """The first function of a chain, each of which is the derivative of the one before it."""

    @staticmethod
    def forward(x: torch.Tensor, chain: Chain) -> torch.Tensor:
        return chain[0](x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.chain = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        return cotangent * Chained.apply(ctx.saved_tensors[0], ctx.chain[1:]), None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, _: Any) -> torch.Tensor:
        return tangent * Chained.apply(ctx.saved_tensors[0], ctx.chain[1:])


def _chained(chain: Chain) -> Callable[..., Any]:
    return lambda x: Chained.apply(x, chain)


def _zeta(times: float, s: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: times * torch.special.zeta(torch.full_like(x, s), x)


def _grown(f: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """exp(|x|) f(x, i0e(x), i1e(x)): what overflows does so at last."""
    return lambda x: x.abs().exp() * f(x, torch.special.i0e(x), torch.special.i1e(x))


_I1 = (
    torch.special.i1,
    _grown(lambda x, i0, i1: torch.where(x == 0, 0.5, i0 - i1 / x)),
    _grown(lambda x, i0, i1: torch.where(x == 0, 0.0, (1 + 2 / x.square()) * i1 - i0 / x)),
)


def _powers(r: torch.Tensor, *factors: float) -> torch.Tensor:
    """The polynomial of r with these coefficients, that of 1 first."""
    total = torch.zeros_like(r)
    for factor in reversed(factors):
        total = total * r + factor
    return total


_DENSITY = 2 / math.sqrt(math.pi)


def _erfcx_slope(x: torch.Tensor) -> torch.Tensor:
    """2 x y - 2 / sqrt(pi), for large x by the asymptotic series of y = erfcx(x) [A&S 7.1.23]."""
    far = x > 20
    r = 0.5 / torch.where(far, x, 20.0).square()
    series = -_DENSITY * r * _powers(r, 1, -3, 15, -105, 945, -10395, 135135, -2027025)
    return torch.where(far, series, 2 * x * torch.special.erfcx(x) - _DENSITY)


def _erfcx_bend(x: torch.Tensor) -> torch.Tensor:
    far = x > 20
    t = torch.where(far, x, 20.0)
    r = 0.5 / t.square()
    series = 2 * _DENSITY / t * r * _powers(r, 1, -6, 45, -420, 4725, -62370, 945945, -16216200)
    return torch.where(far, series, 2 * torch.special.erfcx(x) + 2 * x * _erfcx_slope(x))


def _log_ndtr_slope(x: torch.Tensor) -> torch.Tensor:
    """The normal density over the distribution function."""
    return _DENSITY / math.sqrt(2) / torch.special.erfcx(-x / math.sqrt(2))


def _log_ndtr_bend(x: torch.Tensor) -> torch.Tensor:
    """-h (x + h) with h the slope, for large -x by the asymptotic series of h."""
    far, h = x < -20, _log_ndtr_slope(x)
    r = torch.where(far, x, -20.0).square().reciprocal()
    series = _powers(r, -1, 1, -6, 50, -518, 6354, -89782)
    return torch.where(far, series, -h * (x + h))


def _logcumsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    """log of the sum of exp(x_i) for i <= k, each time from the largest real part."""
    if x.dim() == 0:
        return x.exp().log()
    rows = x.movedim(dim, -1)
    largest = torch.cummax(rows.detach().real, -1)[0].unsqueeze(-1)
    largest = torch.where(largest.isfinite(), largest, 0.0)
    n = rows.shape[-1]
    among = torch.ones(n, n, dtype=torch.bool).tril()
    terms = torch.where(among, rows.unsqueeze(-2) - largest, -1e4).exp()
    return (terms.sum(-1).log() + largest.squeeze(-1)).movedim(-1, dim)


def _cholesky_inverse(x: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """By the inverse of the triangle, whose derivatives are solutions of triangular systems."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype).expand_as(x)
    inverse = torch.linalg.solve_triangular(x, eye, upper=upper)
    return inverse @ inverse.mH if upper else inverse.mH @ inverse


def _masked_logaddexp(
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> torch.Tensor:
    """Of what is not masked; -inf without a derivative where both are."""
    a, b = (torch.tensor(True) if mask is None else mask for mask in (input_mask, other_mask))
    sums = torch.logaddexp(torch.where(a & b, x, 0.0), torch.where(a & b, y, 0.0))
    return torch.where(a & b, sums, torch.where(a, x, torch.where(b, y, -torch.inf)))


def _elu(x: torch.Tensor, alpha: float = 1, scale: float = 1, slope: float = 1) -> torch.Tensor:
    """With the derivatives of both branches, at NaN those of the exponential: which PyTorch takes
    there depends on where in a vector the element lies."""
    below = torch.where(x > 0, 0.0, x)
    return torch.where(x > 0, scale * x, scale * alpha * torch.expm1(slope * below))


def _selu(x: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    return _elu(x, 1.6732632423543772, 1.0507009873554805)


def _celu(x: torch.Tensor, alpha: float = 1, inplace: bool = False) -> torch.Tensor:
    return _elu(x, alpha, slope=1 / alpha)


def _hardswish(x: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """At NaN as in the middle, for the same reason."""
    middle = torch.where((x <= -3) | (x >= 3), 0.0, x)
    return torch.where(x <= -3, x * 0, torch.where(x >= 3, x, middle * (middle + 3) / 6))


CHAINS: dict[str, Chain] = {
    # trigamma(x) = zeta(2, x), infinite at the poles [DLMF 25.11.12]
    "digamma": (torch.digamma, _zeta(1, 2), _zeta(-2, 3), _zeta(6, 4)),
    "lgamma": (torch.lgamma, torch.digamma, _zeta(1, 2), _zeta(-2, 3)),
    "special.erfcx": (torch.special.erfcx, _erfcx_slope, _erfcx_bend),
    "special.i1": _I1,
    "special.log_ndtr": (torch.special.log_ndtr, _log_ndtr_slope, _log_ndtr_bend),
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    **{name: _chained(chain) for name, chain in CHAINS.items()},
    "cholesky_inverse": _cholesky_inverse,
    "logcumsumexp": _logcumsumexp,
    "masked.logaddexp": _masked_logaddexp,
    "nn.functional.celu": _celu,
    "nn.functional.elu": _elu,
    "nn.functional.hardswish": _hardswish,
    "nn.functional.selu": _selu,
}


class DefinedSide(Side):
    """PyTorch, with an operator's definition in its place."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        return None if given is None else DEFINITIONS[self.info.name]
