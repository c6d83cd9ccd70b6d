"""Functions by other functions of PyTorch: what a derivative is where PyTorch's own formula errs.

Some are compositions, whose derivatives are those of their parts; some are functions of one number
with the chain of their derivatives.
"""

from __future__ import annotations

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


DEFINITIONS: dict[str, Callable[..., Any]] = {
    # trigamma(x) = zeta(2, x), infinite at the poles [DLMF 25.11.12]
    "digamma": _chained((torch.digamma, _zeta(1, 2), _zeta(-2, 3), _zeta(6, 4))),
    "cholesky_inverse": _cholesky_inverse,
    "logcumsumexp": _logcumsumexp,
    "masked.logaddexp": _masked_logaddexp,
    "special.i1": _chained(_I1),
}


class DefinedSide(Side):
    """PyTorch, with an operator's definition in its place."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        return None if given is None else DEFINITIONS[self.info.name]
