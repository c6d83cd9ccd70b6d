"""The three Fourier transforms of which torch.fft is made, unnormalized, with their gradients.

``F`` is the matrix of the transform over `dims` (negative numbers, so that a dimension that vmap
adds in front moves none). NumPy computes it on the CPU, in the precision of its argument.
"""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda import Tensor
from taeda.autograd import Function

_FLOATS = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _by_numpy(transform: Any, input: Tensor, dtype: Any) -> Tensor:
    if input.dtype not in _FLOATS:
        raise RuntimeError(f"Unsupported dtype {input.dtype}")
    array = transform(input.detach().cpu().resolve_conj().numpy())
    return torch.from_numpy(array).to(device=input.device, dtype=dtype)


def _numpy() -> Any:
    import numpy

    return numpy.fft


class _Complex(Function):
    """y = F x, or the conjugate of F where not `forward`."""

    @staticmethod
    def forward(input: Tensor, dims: tuple[int, ...], forward: bool) -> Tensor:  # type: ignore[override]
        if forward:
            return _by_numpy(lambda x: _numpy().fftn(x, axes=dims), input, input.dtype)
        return _by_numpy(lambda x: _numpy().ifftn(x, axes=dims, norm="forward"), input, input.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.dims, ctx.is_forward = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        return _Complex.apply(grad, ctx.dims, not ctx.is_forward), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, input: Tensor, *numbers: Any) -> Any:
        return _Complex.apply(input.movedim(in_dims[0], 0), *numbers), 0


class _Half(Function):
    """y = the first half of F x along the last of `dims`, for real x."""

    @staticmethod
    def forward(input: Tensor, dims: tuple[int, ...]) -> Tensor:  # type: ignore[override]
        dtype = torch.promote_types(input.dtype, torch.complex64)
        return _by_numpy(lambda x: _numpy().rfftn(x, axes=dims), input, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.dims, ctx.size = inputs[1], inputs[0].shape[inputs[1][-1]]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        last = ctx.dims[-1]
        shape = list(grad.shape)
        shape[last] = ctx.size - shape[last]
        whole = torch.cat([grad, grad.new_zeros(shape)], last)
        return _Complex.apply(whole, ctx.dims, False).real, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, input: Tensor, *numbers: Any) -> Any:
        return _Half.apply(input.movedim(in_dims[0], 0), *numbers), 0


class _Real(Function):
    """y = the conjugate of F times the spectrum of whose last dimension x is the first half."""

    @staticmethod
    def forward(input: Tensor, dims: tuple[int, ...], size: int) -> Tensor:  # type: ignore[override]
        def transform(array: Any) -> Any:
            if len(dims) > 1:
                array = _numpy().ifftn(array, axes=dims[:-1], norm="forward")
            return _numpy().irfft(array, n=size, axis=dims[-1], norm="forward")

        return _by_numpy(transform, input, input.real.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.dims, ctx.size = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        half = _Half.apply(grad, ctx.dims)
        last, twice = ctx.dims[-1], ctx.size - (ctx.size // 2 + 1)
        parts = half.split([1, twice, half.shape[last] - 1 - twice], last)
        return torch.cat([parts[0], parts[1] * 2, parts[2]], last), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, input: Tensor, *numbers: Any) -> Any:
        return _Real.apply(input.movedim(in_dims[0], 0), *numbers), 0


def to_complex(input: Tensor, dims: list[int], forward: bool) -> Tensor:
    return _Complex.apply(input, tuple(dims), forward)


def to_half(input: Tensor, dims: list[int]) -> Tensor:
    return _Half.apply(input, tuple(dims))


def to_real(input: Tensor, dims: list[int], size: int) -> Tensor:
    return _Real.apply(input, tuple(dims), size)
