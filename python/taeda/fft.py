"""Discrete Fourier transforms, of CPU tensors by NumPy's pocketfft, with gradients.

>>> import taeda as torch
>>> torch.fft.rfft(torch.tensor([1.0, 0.0, 0.0, 0.0]))
tensor([1.+0.j, 1.+0.j, 1.+0.j])

``norm`` says which direction divides by the number of points: "backward" (the inverse, as without
`norm`), "forward", or "ortho" (both, by its square root).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda as torch
from taeda import Tensor
from taeda._fourier import to_complex, to_half, to_real

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Dims = Sequence[int] | int | None


def _scale(norm: str | None, points: int, forward: bool) -> float:
    """What a transform of so many points is multiplied by."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(points)
    divides = norm == "forward" if forward else norm != "forward"
    return 1 / points if divides else 1.0


def _scaled(result: Tensor, norm: str | None, points: int, forward: bool) -> Tensor:
    factor = _scale(norm, points, forward)
    return result if factor == 1.0 else result * factor


def _real(name: str, input: Tensor) -> Tensor:
    if input.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype}")
    if input.dtype in (torch.float16, torch.bfloat16):
        raise RuntimeError(f"Unsupported dtype {input.dtype}")
    return input if input.is_floating_point() else input.to(torch.get_default_dtype())


def _complex(input: Tensor) -> Tensor:
    """Complex, of the precision of the input."""
    if input.is_complex():
        return input
    return input.to(torch.promote_types(_real("fft", input).dtype, torch.complex64))


def _resized(input: Tensor, size: int, dim: int) -> Tensor:
    """Cut off or filled with zeros to a size."""
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    missing = size - input.shape[dim]
    if missing <= 0:
        return input.narrow(dim, 0, size)
    shape = list(input.shape)
    shape[dim] = missing
    return torch.cat([input, input.new_zeros(shape)], dim)


def _dims(input: Tensor, s: Sequence[int] | int | None, dim: Dims) -> tuple[list[int], list[int]]:
    """The sizes of a transform of several dimensions, -1 where not given, and these, negative."""
    rank = input.dim()
    sizes = [s] if isinstance(s, int) else None if s is None else list(s)
    if dim is None:
        count = rank if sizes is None else len(sizes)
        if count > rank:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {rank} dimensions."
            )
        dims = list(range(-count, 0))
    else:
        dims = [_negative(input, each) for each in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if sizes is not None and len(sizes) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return ([-1] * len(dims) if sizes is None else sizes), dims


def _negative(input: Tensor, dim: int) -> int:
    rank = input.dim()
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], "
            f"but got {dim})"
        )
    return dim if dim < 0 else dim - rank


def _to_sizes(input: Tensor, sizes: list[int], dims: list[int]) -> tuple[Tensor, int]:
    """The input with the sizes that are given, and their product over `dims`."""
    for size, dim in zip(sizes, dims, strict=True):
        input = _resized(input, input.shape[dim] if size == -1 else size, dim)
    return input, math.prod(input.shape[dim] for dim in dims)


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def _c2c(
    input: Tensor, s: Any, dim: Dims, norm: str | None, forward: bool, out: Tensor | None
) -> Tensor:
    """Complex to complex, over several dimensions."""
    sizes, dims = _dims(input, s, dim)
    input, points = _to_sizes(_complex(input), sizes, dims)
    if not dims:
        return _into(out, input.clone())
    return _into(out, _scaled(to_complex(input, dims, forward), norm, points, forward))


def _r2c(
    name: str, input: Tensor, s: Any, dim: Dims, norm: str | None, forward: bool, out: Tensor | None
) -> Tensor:
    """Real to the half of the spectrum that determines the rest."""
    sizes, dims = _dims(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    input, points = _to_sizes(_real(name, input), sizes, dims)
    half = to_half(input, dims)
    return _into(out, _scaled(half if forward else half.conj(), norm, points, forward))


def _c2r(
    name: str, input: Tensor, s: Any, dim: Dims, norm: str | None, forward: bool, out: Tensor | None
) -> Tensor:
    """Half of a spectrum to the real signal that has it."""
    sizes, dims = _dims(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    input = _complex(input)
    last = 2 * (input.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    input, points = _to_sizes(input, [*sizes[:-1], last // 2 + 1], dims)
    points = points // (last // 2 + 1) * last
    real = to_real(input.conj() if forward else input, dims, last)
    return _into(out, _scaled(real, norm, points, forward))


def fft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The transform of one dimension, cut off or filled with zeros to `n` points."""
    return _c2c(input, n, dim, norm, True, out)


def ifft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of fft."""
    return _c2c(input, n, dim, norm, False, out)


def rfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The first ``n // 2 + 1`` values of the fft of a real tensor."""
    return _r2c("rfft", input, n, dim, norm, True, out)


def irfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of rfft: real, of `n` points (an even number without)."""
    return _c2r("irfft", input, n, dim, norm, False, out)


def hfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The real transform of a signal of which half is given, as it is Hermitian."""
    return _c2r("hfft", input, n, dim, norm, True, out)


def ihfft(
    input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of hfft."""
    return _r2c("ihfft", input, n, dim, norm, False, out)


def fftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The transform of several dimensions: of all without `s` and `dim`."""
    return _c2c(input, s, dim, norm, True, out)


def ifftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of fftn."""
    return _c2c(input, s, dim, norm, False, out)


def rfftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The fftn of a real tensor, the last dimension's second half left out."""
    return _r2c("rfftn", input, s, dim, norm, True, out)


def irfftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of rfftn."""
    return _c2r("irfftn", input, s, dim, norm, False, out)


def hfftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """hfft of the last dimension, fft of the others."""
    return _c2r("hfftn", input, s, dim, norm, True, out)


def ihfftn(
    input: Tensor, s: Any = None, dim: Dims = None, norm: str | None = None, *, out: Any = None
) -> Tensor:
    """The inverse of hfftn."""
    return _r2c("ihfftn", input, s, dim, norm, False, out)


def _of_two_dimensions(function: Any) -> Any:
    def transform(
        input: Tensor, s: Any = None, dim: Dims = (-2, -1), norm: Any = None, *, out: Any = None
    ) -> Tensor:
        return function(input, s, dim, norm, out=out)

    name = function.__name__.removesuffix("n") + "2"
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{function.__name__} of the last two dimensions."
    return transform


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = map(
    _of_two_dimensions, (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn)
)


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The transform with frequency zero moved to the middle."""
    return _shifted(input, dim, lambda size: size // 2)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted(input, dim, lambda size: (size + 1) // 2)


def _shifted(input: Tensor, dim: Dims, steps: Any) -> Tensor:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if not dims:
        return input.clone()
    return torch.roll(input, [steps(input.shape[each]) for each in dims], list(dims))


def fftfreq(n: int, d: float = 1.0, *, out: Any = None, **options: Any) -> Tensor:
    """The frequencies of the values of an fft of `n` points that are `d` apart.

    >>> import taeda as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    steps = torch.cat([torch.arange((n + 1) // 2), torch.arange(-(n // 2), 0)])
    return _frequencies(steps, n, d, out, options)


def rfftfreq(n: int, d: float = 1.0, *, out: Any = None, **options: Any) -> Tensor:
    """The frequencies of the values of an rfft of `n` points that are `d` apart."""
    return _frequencies(torch.arange(n // 2 + 1), n, d, out, options)


def _frequencies(steps: Tensor, n: int, d: float, out: Any, options: dict[str, Any]) -> Tensor:
    dtype = options.get("dtype") or (torch.get_default_dtype() if out is None else out.dtype)
    gradient = options.get("requires_grad", False)
    found = steps.to(device=options.get("device"), dtype=dtype) * (1.0 / (n * d))
    return _into(out, found.requires_grad_(gradient))
