"""Functions of torch that are composed of operators: finite differences, the older LU."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import Tensor


def _spread(input: Tensor, dims: list[int], given: bool, spacing: Any) -> list[Any]:
    """The spacing of each of `dims`: a number, or the coordinates of its elements."""
    if not isinstance(spacing, (list, tuple)):
        return [spacing] * len(dims)
    if len(spacing) != len(dims):
        expected = (
            f"equal to the number of dimensions {len(dims)} of dim"
            if given
            else f"equal to 'self.dim() = {input.dim()}', since dim argument was not given"
        )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"{expected}, but got a list of length {len(spacing)}"
        )
    return list(spacing)


def _check(input: Tensor, dims: list[int], spacings: list[Any], edge_order: int) -> None:
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype == taeda.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if len(set(dims)) < len(dims):
        twice = next(d for d in dims if dims.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    for dim, spacing in zip(dims, spacings, strict=True):
        if input.size(dim) < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
        if not isinstance(spacing, Tensor):
            continue
        if spacing.dim() != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got "
                f"an element with {spacing.dim()} dimensions!"
            )
        if spacing.numel() != input.size(dim):
            raise RuntimeError(
                f"torch.gradient expected {input.size(dim)} coordinates for dimension {dim}, but "
                f"got {spacing.numel()}"
            )


def _along(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """Second-order differences inside, first or second-order ones at the ends.

    With steps a before and b after an element: b f' = ... of the parabola through three elements.
    """
    n = x.size(dim)
    slope = x.diff(dim=dim)
    if isinstance(spacing, Tensor):
        shape = [1] * x.dim()
        shape[dim] = n - 1
        step = spacing.diff().view(shape)
        slope = slope / step
    else:
        slope = slope / spacing
        step = taeda.ones([1] * x.dim(), dtype=slope.dtype, device=x.device)
        step = step.expand([n - 1 if d == dim else 1 for d in range(x.dim())])
    first, last = slope.narrow(dim, 0, 1), slope.narrow(dim, n - 2, 1)
    if n == 2:
        return taeda.cat([first, last], dim)
    before, after = slope.narrow(dim, 0, n - 2), slope.narrow(dim, 1, n - 2)
    a, b = step.narrow(dim, 0, n - 2), step.narrow(dim, 1, n - 2)
    if edge_order == 2:
        bend = (after - before) / (a + b)
        first = first - bend.narrow(dim, 0, 1) * a.narrow(dim, 0, 1)
        last = last + bend.narrow(dim, n - 3, 1) * b.narrow(dim, n - 3, 1)
    inner = (before * b + after * a) / (a + b)
    return taeda.cat([first, inner, last], dim)


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Derivatives of a function by its values on a grid, one for each dimension of `dim`.

    `spacing` is the distance of the grid's points, or for each dimension its distance or its
    coordinates. Differences are of second order inside, of order `edge_order` at the ends.

    >>> import taeda as torch
    >>> torch.gradient(torch.tensor([0., 1., 4., 9.]))
    (tensor([1., 2., 4., 5.]),)
    """
    if isinstance(spacing, (Tensor, str)):
        raise TypeError(
            "gradient(): argument 'spacing' must be a number or a list of numbers or of tensors, "
            f"not {type(spacing).__name__}"
        )
    given = dim is not None
    wanted = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    for d in wanted:
        if not -input.dim() <= d < input.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.dim()}, "
                f"{input.dim() - 1}], but got {d})"
            )
    dims = [d % input.dim() for d in wanted]
    spacings = _spread(input, dims, given, spacing)
    _check(input, dims, spacings, edge_order)
    pairs = zip(dims, spacings, strict=True)
    return tuple(_along(input, d, distance, edge_order) for d, distance in pairs)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple:
    """LU factors as `linalg.lu_factor`, or `linalg.lu_factor_ex` if `get_infos`; deprecated.

    >>> import taeda as torch
    >>> A_LU, pivots = torch.lu(torch.tensor([[0., 2.], [4., 6.]]))
    >>> A_LU
    tensor([[4., 6.],
            [0., 2.]])
    """
    name = "lu_factor_ex" if get_infos else "lu_factor"
    warnings.warn(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and "
        "will be removed in a future PyTorch release.",
        stacklevel=2,
    )
    factors = getattr(taeda.linalg, name)(A, pivot=pivot)
    if out is None:
        return factors if get_infos else tuple(factors)
    for into, factor in zip(out, factors, strict=True):
        into.resize_(factor.shape).copy_(factor)
    return out
