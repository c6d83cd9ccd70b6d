"""Window functions of `M` points, float32 or float64, between 0 and 1.

``sym=True`` gives the symmetric window, for the design of filters; ``sym=False`` the periodic one,
which is the symmetric one of M + 1 points without its last, for spectral analysis. No points are
an empty tensor, one point is 1. ValueError for a negative `M`, another dtype, another layout.

>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

from collections.abc import Iterable
from math import pi
from typing import Any

import taeda
from taeda import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]
__path__: list[str] = []  # modules in it: taeda/_missing/aliases.py


def _options(
    name: str,
    M: int,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> dict[str, Any]:
    """The factories' keywords, checked."""
    dtype = taeda.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not taeda.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (taeda.float32, taeda.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}


def _steps(M: int, sym: bool) -> int:
    """From the first point to the window's end, which for the periodic is a step after its last."""
    return M - 1 if sym or M <= 1 else M


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **factory: Any
) -> Tensor:
    """exp(-|n - center| / tau); `center` is the middle, another only for ``sym=False``.

    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    options = _options("exponential", M, **factory)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return taeda.empty((0,), **options)
    center = _steps(M, sym) / 2.0 if center is None else center
    scale = 1 / tau
    k = taeda.linspace(-center * scale, (-center + (M - 1)) * scale, M, **options)
    return taeda.exp(-taeda.abs(k))


def cosine(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """sin(pi (n + 1/2) / M).

    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    options = _options("cosine", M, **factory)
    if M == 0:
        return taeda.empty((0,), **options)
    scale = pi / (_steps(M, sym) + 1)
    return taeda.sin(taeda.linspace(0.5 * scale, (0.5 + (M - 1)) * scale, M, **options))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **factory: Any) -> Tensor:
    """exp(-n^2 / (2 std^2)), n counted from the middle.

    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    options = _options("gaussian", M, **factory)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return taeda.empty((0,), **options)
    first, scale = -_steps(M, sym) / 2.0, 1 / (std * 2**0.5)
    k = taeda.linspace(first * scale, (first + (M - 1)) * scale, M, **options)
    return taeda.exp(-(k**2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **factory: Any) -> Tensor:
    """I0(beta sqrt(1 - n^2)) / I0(beta), n from -1 to 1; I0 is `torch.i0`.

    >>> torch.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    options = _options("kaiser", M, **factory)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return taeda.ones((M,), **options)
    # In the window's dtype, so that rounding takes no point past the end, where I0 is of NaN.
    end = taeda.tensor(beta, dtype=options["dtype"], device="cpu")
    last = taeda.minimum(end, -end + (M - 1) * (2.0 * beta / _steps(M, sym)))
    k = taeda.linspace(-end.item(), last.item(), M, **options)
    return taeda.i0(taeda.sqrt(end * end - taeda.pow(k, 2))) / taeda.i0(end)


def bartlett(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """The triangle 1 - |n|, n from -1 to 1.

    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _options("bartlett", M, **factory)
    if M <= 1:
        return taeda.ones((M,), **options)
    last = -1 + (M - 1) * (2 / _steps(M, sym))
    return 1 - taeda.abs(taeda.linspace(-1, last, M, **options))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **factory: Any) -> Tensor:
    """The sum of (-1)^i a[i] cos(2 pi i n / (M - 1)).

    >>> torch.signal.windows.general_cosine(3, a=[0.46, 0.23, 0.31])
    tensor([0.5400, 1.0000, 0.5400])
    """
    options = _options("general_cosine", M, **factory)
    if M == 0:
        return taeda.empty((0,), **options)
    if M == 1:
        return taeda.ones((1,), **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    a = [(-1) ** i * weight for i, weight in enumerate(a)]
    if not a:
        raise ValueError("Coefficients cannot be empty")
    k = taeda.linspace(0, (M - 1) * (2 * pi / _steps(M, sym)), M, **options)
    total = taeda.cos(k * 0) * a[0] if len(a) == 1 else taeda.cos(k) * a[1] + a[0]
    for i, weight in enumerate(a[2:], 2):
        total = total + taeda.cos(k * i) * weight
    return total


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **factory: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / (M - 1)).

    >>> torch.signal.windows.general_hamming(3, alpha=0.6)
    tensor([0.2000, 1.0000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **factory)


def hamming(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_hamming` with alpha 0.54.

    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, **factory)


def hann(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_hamming` with alpha 0.5: it is 0 at its ends.

    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **factory)


def blackman(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """Three cosines, with weights 0.42, 0.5 and 0.08.

    >>> torch.signal.windows.blackman(5, sym=False)[1:]
    tensor([0.2008, 0.8492, 0.8492, 0.2008])
    """
    _options("blackman", M, **factory)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **factory)


def nuttall(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """Four cosines, of which the side lobes fall fastest (Nuttall, 1981).

    >>> torch.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **factory)
