"""Kernels of torch.fft, torch.linalg, torch.special, torch.signal and torch.masked, of statistics,
distributions and lists of tensors, for the suite `kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases import MEGA, Run, binary, kernel, unary


def transform(name: str, sizes: tuple[int, ...], dtype: str = "complex64", **options: Any) -> None:
    """torch.fft.NAME of random numbers of these sizes."""

    def make(torch: Any) -> Run:
        x = torch.randn(*sizes, dtype=getattr(torch, dtype))
        call = getattr(torch.fft, name)
        return lambda: call(x, **options)

    title = f"fft.{name} of {' x '.join(str(n) for n in sizes)}"
    if dtype in ("float64", "complex128"):
        title += " doubles"
    kernel(title + "".join(f", {name}={value}" for name, value in options.items()))(make)


transform("fft", (256, 1024))
transform("fft", (64, 1000))
transform("fft", (16, 1009))  # a prime
transform("fft", (1024,))
transform("fft", (1 << 16,))
transform("fft", (1 << 20,))
transform("fft", (256, 1024), dim=0)
transform("fft", (256, 1024), "complex128")
transform("rfft", (256, 1024), "float32")
transform("rfft", (64, 999), "float32")
transform("irfft", (256, 513))
transform("fft", (4096, 16))
transform("ifft", (64, 4096))
transform("fft2", (8, 256, 256))
transform("rfft2", (8, 3, 224, 224), "float32")
transform("irfft2", (8, 3, 224, 113))
transform("rfftn", (64, 64, 64), "float32")


def spectrum(torch: Any) -> Run:
    x, window = torch.randn(4, 16000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, window=window, return_complex=True)


kernel("stft of 4 x 16000")(spectrum)


def decomposition(name: str, n: int, batch: int = 0, dtype: str = "float32") -> None:
    """DECOMPOSITIONS[name] of a positive-definite matrix, or of a batch of them."""

    def make(torch: Any) -> Run:
        a = torch.randn(*([batch] if batch else []), n, n, dtype=getattr(torch, dtype))
        a = a @ a.mH / n + torch.eye(n, dtype=a.dtype)
        call = DECOMPOSITIONS[name]
        return lambda: call(torch, a)

    title = f"linalg.{name} of {f'{batch} x ' if batch else ''}{n} x {n}"
    kernel(title + ("" if dtype == "float32" else f" {dtype}"))(make)


DECOMPOSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda torch, a: torch.linalg.inv(a),
    "solve": lambda torch, a: torch.linalg.solve(a, a),
    "cholesky": lambda torch, a: torch.linalg.cholesky(a),
    "lu_factor": lambda torch, a: torch.linalg.lu_factor(a),
    "qr": lambda torch, a: torch.linalg.qr(a),
    "det": lambda torch, a: torch.linalg.det(a),
    "lstsq": lambda torch, a: torch.linalg.lstsq(a, a),
    "ldl_factor": lambda torch, a: torch.linalg.ldl_factor(a),
    "matrix_exp": lambda torch, a: torch.linalg.matrix_exp(a),
    "solve_triangular": lambda torch, a: torch.linalg.solve_triangular(a, a, upper=True),
    "eigh": lambda torch, a: torch.linalg.eigh(a),
    "svd": lambda torch, a: torch.linalg.svd(a, False),
}
# Those of n^3 / 3 to 4 n^3 multiplications, up to 512 rows; then what takes ten times as long.
for name in DECOMPOSITIONS:
    long = name in ("eigh", "svd")
    decomposition(name, 256 if long else 512)
    decomposition(name, 64)
    decomposition(name, 16, 64 if long else 256)
for name in ("inv", "det", "cholesky", "lu_factor", "qr"):
    decomposition(name, 4, 4096)
    decomposition(name, 4)
for name in ("inv", "cholesky", "qr", "lstsq", "eigh", "matrix_exp"):
    decomposition(name, 256, dtype="float64")
    decomposition(name, 64, dtype="complex64")


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


def window(name: str, **options: Any) -> None:
    def make(torch: Any) -> Run:
        call = getattr(torch.signal.windows, name)
        return lambda: call(4096, **options)

    kernel(f"windows.{name} of 4096")(make)


for shape in ("bartlett", "blackman", "cosine", "hann", "kaiser", "nuttall"):
    window(shape)
for shape in ("hann", "kaiser"):
    unary(
        f"windows: {shape}_window(400)",
        None,
        lambda torch, n, name=shape: getattr(torch, f"{name}_window")(n),
        of=lambda torch: 400,
    )
window("gaussian", std=7.0)
window("general_hamming", alpha=0.54)

for view, call in {
    "t_copy": lambda torch, x: torch.t_copy(x),
    "view_copy": lambda torch, x: torch.view_copy(x, (-1,)),
    "slice_scatter": lambda torch, x: torch.slice_scatter(x, x[:1024], 0, 512, 1536),
    "diagonal_scatter": lambda torch, x: torch.diagonal_scatter(x, x[0]),
    "unfold_copy": lambda torch, x: torch.unfold_copy(x, 1, 8, 8),
}.items():
    unary(f"{view} of 2048 x 2048", 2 * 4 * 2048 * 2048, call)

# --- statistics, torch.masked, indices, distributions, lists of tensors --------------------------

for statistic, call, sizes in (
    ("cov", lambda torch, x: torch.cov(x), (256, 4096)),
    ("corrcoef", lambda torch, x: torch.corrcoef(x), (256, 4096)),
    ("gradient", lambda torch, x: torch.gradient(x), (1024, 1024)),
    ("renorm", lambda torch, x: torch.renorm(x, 2, 0, 1.0), (1024, 1024)),
    ("histogram", lambda torch, x: torch.histogram(x, 64), (MEGA,)),
    ("histogramdd", lambda torch, x: torch.histogramdd(x, [16, 16]), (MEGA >> 3, 2)),
    ("logcumsumexp", lambda torch, x: torch.logcumsumexp(x, 1), (1024, 1024)),
    ("quantile", lambda torch, x: torch.quantile(x, 0.9, 1), (1024, 1024)),
    ("nanquantile", lambda torch, x: torch.nanquantile(x, 0.9), (MEGA,)),
):
    unary(
        f"{statistic} of {' x '.join(str(n) for n in sizes)}",
        None,
        call,
        of=lambda torch, sizes=sizes: torch.randn(*sizes),
    )

for reduction in ("sum", "amax", "var", "softmax"):
    binary(
        f"masked.{reduction}(1) of 1024 x 1024",
        None,
        lambda torch, x, m, name=reduction: getattr(torch.masked, name)(x, 1, mask=m),
        lambda torch: (torch.randn(1024, 1024), torch.rand(1024, 1024) > 0.3),
    )

binary(
    "index_reduce(0, i, y, 'amax')",
    None,
    lambda torch, x, i: x.index_reduce(0, i, x, "amax"),
    lambda torch: (torch.randn(2048, 512), torch.randint(0, 2048, (2048,))),
)
for reduction in ("amax", "mean", "prod"):
    binary(
        f"scatter_reduce(0, i, y, '{reduction}')",
        None,
        lambda torch, x, i, how=reduction: x.scatter_reduce(0, i, x, how),
        lambda torch: (torch.randn(2048, 512), torch.randint(0, 2048, (2048, 512))),
    )
binary(
    "segment_reduce of 2048 x 512",
    None,
    lambda torch, x, lengths: torch.segment_reduce(x, "sum", lengths=lengths),
    lambda torch: (torch.randn(2048, 512), torch.full((256,), 8)),
)
unary(
    "unravel_index, 1M",
    None,
    lambda torch, i: torch.unravel_index(i, (1024, 1024)),
    of=lambda torch: torch.randint(0, MEGA, (MEGA,)),
)
unary(
    "nonzero_static of 1024 x 1024",
    None,
    lambda torch, x: torch.nonzero_static(x, size=MEGA >> 3),
    of=lambda torch: torch.rand(1024, 1024) > 0.9,
)

for draw, call in {
    "_standard_gamma": lambda torch, x: torch._standard_gamma(x),
    "_sample_dirichlet": lambda torch, x: torch._sample_dirichlet(x),
    "poisson": lambda torch, x: torch.poisson(x),
    "binomial": lambda torch, x: torch.binomial(x.round(), x / 8),
}.items():
    unary(f"{draw}, 64K", None, call, of=lambda torch: torch.rand(1 << 13, 8) * 7 + 0.5)

for listed, call in {
    "_foreach_add": lambda torch, x: torch._foreach_add(x, 1.0),
    "_foreach_mul_": lambda torch, x: torch._foreach_mul_(x, 0.999),
    "_foreach_zero_": lambda torch, x: torch._foreach_zero_(x),
    "_foreach_lerp_": lambda torch, x: torch._foreach_lerp_(x, x, 0.5),
    "_foreach_norm": lambda torch, x: torch._foreach_norm(x),
    "_foreach_addcdiv_": lambda torch, x: torch._foreach_addcdiv_(x, x, x, 1e-9),
}.items():
    unary(
        f"{listed} of 100 x 4096",
        None,
        call,
        of=lambda torch: [torch.rand(4096) + 0.5 for _ in range(100)],
    )

for wide, narrow in (
    ("float", "float8_e4m3fn"),
    ("float", "float8_e5m2"),
    ("float", "uint16"),
    ("uint16", "float"),
    ("uint32", "uint8"),
    ("int32", "bfloat16"),
):
    unary(
        f"{wide} to {narrow}",
        None,
        lambda torch, x, dtype=narrow: x.to(getattr(torch, dtype)),
        of=lambda torch, dtype=wide: (torch.rand(1024, 1024) * 100).to(getattr(torch, dtype)),
    )
