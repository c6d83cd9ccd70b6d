"""Kernels of torch.fft, torch.linalg, torch.special and torch.signal, for the suite `kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases import MEGA, Run, kernel, unary


def transform(
    name: str, sizes: tuple[int, ...], *, complex_input: bool = True, **options: Any
) -> None:
    """torch.fft.NAME of random numbers of these sizes."""

    def make(torch: Any) -> Run:
        x = torch.randn(*sizes, dtype=torch.complex64 if complex_input else torch.float32)
        call = getattr(torch.fft, name)
        return lambda: call(x, **options)

    shape = " x ".join(str(n) for n in sizes)
    kernel(f"fft.{name} of {shape}")(make)


transform("fft", (256, 1024))
transform("fft", (64, 1000))
transform("fft", (16, 1009))  # a prime
transform("rfft", (256, 1024), complex_input=False)
transform("irfft", (256, 513))
transform("fft2", (8, 256, 256))
transform("rfftn", (64, 64, 64), complex_input=False)


def spectrum(torch: Any) -> Run:
    x, window = torch.randn(4, 16000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, window=window, return_complex=True)


kernel("stft of 4 x 16000")(spectrum)


def decomposition(name: str, n: int, call: Callable[[Any, Any], Any], batch: int = 0) -> None:
    """call(torch, A) of a positive-definite matrix, or of a batch of them."""

    def make(torch: Any) -> Run:
        a = torch.randn(*([batch] if batch else []), n, n)
        a = a @ a.mT / n + torch.eye(n)
        return lambda: call(torch, a)

    kernel(f"linalg.{name} of {f'{batch} x ' if batch else ''}{n} x {n}")(make)


for size, count in ((512, 0), (16, 256)):
    decomposition("inv", size, lambda torch, a: torch.linalg.inv(a), count)
    decomposition("solve", size, lambda torch, a: torch.linalg.solve(a, a), count)
    decomposition("cholesky", size, lambda torch, a: torch.linalg.cholesky(a), count)
    decomposition("lu_factor", size, lambda torch, a: torch.linalg.lu_factor(a), count)
    decomposition("qr", size, lambda torch, a: torch.linalg.qr(a), count)
    decomposition("det", size, lambda torch, a: torch.linalg.det(a), count)
for size, count in ((256, 0), (16, 64)):
    decomposition("eigh", size, lambda torch, a: torch.linalg.eigh(a), count)
    decomposition("svd", size, lambda torch, a: torch.linalg.svd(a, False), count)
decomposition(
    "solve_triangular", 512, lambda torch, a: torch.linalg.solve_triangular(a, a, upper=True)
)

for function in (
    "bessel_j0",
    "bessel_y1",
    "erfcx",
    "expit",
    "i0e",
    "i1",
    "log_ndtr",
    "ndtri",
    "scaled_modified_bessel_k0",
):
    unary(
        f"special.{function} of {MEGA >> 2}",
        None,
        lambda torch, x, name=function: getattr(torch.special, name)(x),
        of=lambda torch: torch.rand(MEGA >> 2) * 0.9 + 0.05,
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


def window(name: str, **options: Any) -> None:
    def make(torch: Any) -> Run:
        call = getattr(torch.signal.windows, name)
        return lambda: call(4096, **options)

    kernel(f"windows.{name} of 4096")(make)


for shape in ("bartlett", "blackman", "cosine", "hann", "kaiser", "nuttall"):
    window(shape)
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
