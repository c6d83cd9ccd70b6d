"""torch.fft and stft."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import Run, kernel


def transform(name: str, sizes: tuple[int, ...], dtype: str = "complex64", **options: Any) -> None:
    """torch.fft.NAME of random numbers of these sizes."""

    def make(torch: Any) -> Run:
        x = torch.randn(*sizes, dtype=getattr(torch, dtype))
        call = getattr(torch.fft, name)
        return lambda: call(x, **options)

    title = f"fft.{name} of {' x '.join(str(n) for n in sizes)}"
    if dtype in ("float64", "complex128"):
        title += " doubles"
    elif dtype == "float32" and name == "fft":
        title += " real numbers"
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
transform("fft", (4096, 16), "complex128")
transform("fft", (4096, 64))
transform("fft", (4096, 64), "complex128")
transform("fft", (16, 4096), "complex128", dim=0)
transform("fft", (256, 1024), "float32")
transform("fft", (4096, 15), "complex128")
transform("rfft", (4096, 32), "float32")
transform("rfft", (2048, 64), "float64")
transform("fftn", (64, 64, 64), "complex128")
transform("hfft", (256, 513))
transform("ifft", (64, 4096))
transform("fft2", (8, 256, 256))
transform("rfft2", (8, 3, 224, 224), "float32")
transform("irfft2", (8, 3, 224, 113))
transform("rfftn", (64, 64, 64), "float32")


def spectrum(torch: Any) -> Run:
    x, window = torch.randn(4, 16000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, window=window, return_complex=True)


kernel("stft of 4 x 16000")(spectrum)


def signal(torch: Any) -> Run:
    window = torch.hann_window(400)
    z = torch.stft(torch.randn(4, 16000), 400, 160, window=window, return_complex=True)
    return lambda: torch.istft(z, 400, 160, window=window, length=16000)


kernel("istft of 4 x 16000")(signal)
