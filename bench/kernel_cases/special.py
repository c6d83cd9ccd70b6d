"""exp, erf and their like, torch.special, igamma."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel, unary


def of_millions(function: str, dtype: str, item: int) -> None:
    """A function of a million numbers between 0 and 1."""

    def make(torch: Any) -> Run:
        x = torch.rand(MEGA, dtype=getattr(torch, dtype)) * 0.98 + 0.01
        call = getattr(torch, function)
        return lambda: call(x)

    kernel(f"{function}, 1M {'doubles' if item == 8 else 'floats'}", bytes=2 * item * MEGA)(make)


for _function in ("exp", "tanh", "erf", "erfc", "erfinv", "lgamma", "digamma"):
    of_millions(_function, "float64", 8)
for _function in ("lgamma", "digamma", "erfinv", "erfc"):
    of_millions(_function, "float32", 4)
unary(
    "x ** 2.5, 1M doubles",
    16 * MEGA,
    lambda torch, x: x**2.5,
    of=lambda torch: torch.rand(MEGA, dtype=torch.float64),
)


def special(function: str, count: int, dtype: str = "float32") -> None:
    unary(
        f"special.{function} of {count}" + ("" if dtype == "float32" else f" {dtype}s"),
        None,
        lambda torch, x: getattr(torch.special, function)(x),
        of=lambda torch: (torch.rand(count) * 0.9 + 0.05).to(getattr(torch, dtype)),
    )


for function in (
    "bessel_j0",
    "bessel_y1",
    "erfcx",
    "expit",
    "i0e",
    "i1",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "scaled_modified_bessel_k0",
    "spherical_bessel_j0",
):
    special(function, MEGA >> 2)
for function in ("airy_ai", "bessel_j1", "i0e", "modified_bessel_k0", "ndtr", "ndtri"):
    special(function, MEGA >> 4, "float64")
special("gammaln", MEGA >> 2, "float16")
for polynomial in (
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "hermite_polynomial_h",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
):
    for degree in (5, 20):
        unary(
            f"special.{polynomial} of {MEGA >> 4}, degree {degree}",
            None,
            lambda torch, x, name=polynomial, n=degree: getattr(torch.special, name)(x, n),
            of=lambda torch: torch.rand(MEGA >> 4) * 0.9 + 0.05,
        )
unary(
    f"special.zeta of {MEGA >> 2}",
    None,
    lambda torch, x: torch.special.zeta(x, 1.5),
    of=lambda torch: torch.rand(MEGA >> 2) * 5 + 1.5,
)
unary(
    f"igamma of {MEGA >> 2}",
    None,
    lambda torch, x: torch.igamma(x, x),
    of=lambda torch: torch.rand(MEGA >> 2) * 5 + 0.5,
)
unary(
    f"igammac of {MEGA >> 4} doubles",
    None,
    lambda torch, x: torch.igammac(x, x),
    of=lambda torch: torch.rand(MEGA >> 4, dtype=torch.float64) * 5 + 0.5,
)
unary(
    f"special.polygamma(1) of {MEGA >> 2}",
    None,
    lambda torch, x: torch.polygamma(1, x),
    of=lambda torch: torch.rand(MEGA >> 2) * 5 + 0.5,
)
