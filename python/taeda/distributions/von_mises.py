"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Broadcast, Distribution
from .utils import lazy_property

__all__ = ["VonMises"]

# Polynomials for I0 and I1 (Abramowitz & Stegun 9.8.1 to 9.8.4): below 3.75 in (x / 3.75)^2 (I1
# divided by x), above in 3.75 / x, of I(x) sqrt(x) exp(-x).
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228,
        0.01328592,
        0.00225319,
        -0.00157565,
        0.00916281,
        -0.02057706,
        0.02635537,
        -0.01647633,
        0.00392377,
    ),
    (
        0.39894228,
        -0.03988024,
        -0.00362018,
        0.00163801,
        -0.01031555,
        0.02282967,
        -0.02895312,
        0.01787654,
        -0.00420059,
    ),
)


def _eval_poly(y: Tensor, coefficients: tuple[float, ...]) -> Any:
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """log I_order(x) for x > 0 and order 0 or 1."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    y = x / 3.75
    small = _eval_poly(y * y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _eval_poly(3.75 / x, _LARGE[order]).log()
    return taeda.where(x < 3.75, small.log(), large)


def _rejection_sample(loc: Tensor, concentration: Tensor, proposal_r: Tensor, x: Tensor) -> Tensor:
    """Best & Fisher, Efficient simulation of the von Mises distribution, 1979."""
    done = taeda.zeros(x.shape, dtype=taeda.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = taeda.rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = taeda.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = taeda.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Broadcast, Distribution):
    """Angles: density ``exp(concentration cos(x - loc)) / (2 pi I0(concentration))``.

    >>> from taeda.distributions import VonMises
    >>> VonMises(torch.tensor(0.), torch.tensor(1.)).log_prob(torch.tensor(0.))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._broadcast(validate_args, loc=loc, concentration=concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        log_prob = self.concentration * taeda.cos(value - self.loc)
        log_bessel = _log_modified_bessel_fn(self.concentration, order=0)
        return log_prob - math.log(2 * math.pi) - log_bessel

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(taeda.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(taeda.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return taeda.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    @taeda.no_grad()
    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Draws in double precision: the acceptance test cancels where kappa is small."""
        shape = self._extended_shape(sample_shape)
        x = taeda.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        draws = _rejection_sample(self._loc, self._concentration, self._proposal_r, x)
        return draws.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, ``1 - I1 / I0``."""
        log_i1 = _log_modified_bessel_fn(self.concentration, order=1)
        return 1 - (log_i1 - _log_modified_bessel_fn(self.concentration, order=0)).exp()
