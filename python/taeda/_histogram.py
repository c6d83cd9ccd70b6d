"""torch.histogram and torch.histogramdd: counts of points in bins with edges."""

from __future__ import annotations

from collections import namedtuple

import taeda as torch
from taeda import _C
from taeda._arguments import require_bool, require_tensors

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taeda import Tensor


class _Result:
    def __repr__(self) -> str:
        name = type(self).__name__
        return f"torch.return_types.{name}(\nhist={self.hist},\nbin_edges={self.bin_edges})"  # type: ignore[attr-defined]


class _HistogramResult(_Result, namedtuple("histogram", "hist bin_edges")):
    __slots__ = ()


class _HistogramddResult(_Result, namedtuple("histogramdd", "hist bin_edges")):
    __slots__ = ()


RESULTS = (_HistogramResult, _HistogramddResult)
for _type in RESULTS:
    _type.__name__ = _type.__qualname__ = _type.__bases__[1].__name__
    _type.__module__ = "torch.return_types"


def _check(points: Tensor, bins: Sequence[Any], weight: Tensor | None) -> None:
    name, dims = "torch.histogramdd", points.shape[-1]
    if points.dtype not in (torch.float32, torch.float64):
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{points.dtype._class_name}'"
        )
    if len(bins) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    for i, given in enumerate(bins):
        if not isinstance(given, torch.Tensor):
            if given <= 0:
                raise RuntimeError(
                    f"torch.histogram(): bins must be > 0, but got {given} for dimension {i}"
                )
        elif given.dtype != points.dtype:
            raise RuntimeError(
                f"{name}: input tensor and bins tensors should have the same dtype, but got input "
                f"with dtype {points.dtype} and bins for dimension {i} with dtype {given.dtype}"
            )
        elif given.dim() != 1:
            raise RuntimeError(
                f"{name}: bins tensor should have one dimension, but got {given.dim()} dimensions "
                f"in the bins tensor for dimension {i}"
            )
        elif given.numel() == 0:
            raise RuntimeError(
                f"{name}: bins tensor should have at least 1 element, but got 0 elements in the "
                f"bins tensor for dimension {i}"
            )
        elif given.numel() == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {i}")
    if weight is None:
        return
    if weight.shape != points.shape[:-1]:
        raise RuntimeError(
            f"{name}: if weight tensor is provided it should have the same shape as the input "
            "tensor excluding its innermost dimension, but got input with shape "
            f"{list(points.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype != points.dtype:
        raise RuntimeError(
            f"{name}: if weight tensor is provided, input tensor and weight tensor should have "
            f"the same dtype, but got input({points.dtype}), and weight({weight.dtype})"
        )


def _bounds(points: Tensor, dim: int, range: Sequence[float] | None) -> tuple[float, float]:
    if range is not None:
        low, high = map(float, range[2 * dim : 2 * dim + 2])
    elif points.numel() == 0:
        low, high = 0.0, 1.0
    else:
        low, high = (float(bound) for bound in points[:, dim].aminmax())
    if not (abs(low) < torch.inf and abs(high) < torch.inf):
        bounds = f"[{low}, {high}]"
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range {bounds} is not finite")
    if low > high:
        raise RuntimeError(
            "torch.histogramdd: min should not exceed max, but got "
            f"min {low:g} max {high:g} for dimension {dim}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _histogram(
    points: Tensor, bins: Sequence[Any], range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The histogram of the rows of `points`, and each dimension's edges; through it no backward."""
    if not torch.is_grad_enabled() or not (
        points.requires_grad or (weight is not None and weight.requires_grad)
    ):
        return _counted(points, bins, range, weight, density)
    from taeda.autograd import _nodes

    def count() -> tuple:
        hist, edges = _counted(points, bins, range, weight, density)
        return hist, *edges

    hist, *edges = _nodes.not_differentiable("histogram", count, points, weight)
    return hist, tuple(edges)


_MANY_BINS = 1 << 16  # with more, rounding may miss a bin by more than one


def _bins(column: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element, which is inside of one; the last one has its right edge."""
    return (torch.searchsorted(edges, column, right=True) - 1).clamp_(0, edges.numel() - 2)


def _counted(
    points: Tensor, bins: Sequence[Any], range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The histogram of the rows of `points`, and each dimension's edges."""
    _check(points, bins, weight)
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(
            f"torch.histogramdd: for a {len(bins)}-dimensional histogram range should have "
            f"{2 * len(bins)} elements, but got {len(range)}"
        )
    dtype, dims = points.dtype, len(bins)
    points = points.detach().reshape(-1, dims)
    edges, equal = [], []
    for i, given in enumerate(bins):
        equal.append(not isinstance(given, torch.Tensor) and given <= _MANY_BINS)
        if isinstance(given, torch.Tensor):
            edges.append(given.detach().clone())
        else:
            low, high = _bounds(points, i, range)
            edges.append(torch.linspace(low, high, given + 1, dtype=dtype, device=points.device))
    shape = [edge.numel() - 1 for edge in edges]
    columns = [column.contiguous() for column in points.unbind(1)]
    weights = None if weight is None else weight.detach().reshape(-1)
    if range is not None or not all(equal):
        inside = torch.ones(points.shape[0], dtype=torch.bool, device=points.device)
        for column, edge in zip(columns, edges):
            inside &= (column >= edge[0]) & (column <= edge[-1])
        columns = [column[inside] for column in columns]
        weights = None if weights is None else weights[inside]
    flat = torch.zeros((), dtype=torch.int64, device=points.device)
    for i, (column, edge, even) in enumerate(zip(columns, edges, equal)):
        index = torch._histogram_bins(column, edge) if even else _bins(column, edge)
        flat = index if i == 0 else flat.mul_(edge.numel() - 1).add_(index)
    length = 1
    for count in shape:
        length *= count
    hist = torch.bincount(flat, weights, minlength=length).to(dtype).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for i, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1] + [1] * (dims - 1 - i))
    return hist, tuple(edges)


def _check_arguments(function: str, input: Any, weight: Any, density: Any) -> None:
    require_tensors(function, input=input)
    if weight is not None and not isinstance(weight, torch.Tensor):
        raise TypeError(
            f"{function}(): argument 'weight' must be Tensor, not {type(weight).__name__}"
        )
    require_bool(function, "density", density)


@_C._overridable
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Counts the elements in each bin: (hist, bin_edges).

    `bins` is a number of equal bins between the bounds `range`, by default the least and the
    greatest element, or a 1-d tensor of increasing edges. A bin has its left edge, the last one
    both; elements outside of all are ignored. `weight`, of input's shape, is summed instead of
    counted; with `density` the integral is 1. float32 and float64. Backward raises.

    >>> torch.histogram(torch.tensor([1., 2., 1.]), bins=4, range=(0., 3.)).hist
    tensor([0., 2., 1., 0.])
    """
    _check_arguments("histogram", input, weight, density)
    if isinstance(bins, torch.Tensor) and range is not None:
        raise TypeError("histogram(): range is for a number of bins, but bins is a tensor of edges")
    if _C._vmap_level():
        from taeda.func import _rules

        batched = (input, bins, weight)
        if _rules.depth_of(batched):

            def one(x: Tensor, bins: Any, weight: Tensor | None) -> tuple[Tensor, Tensor]:
                return histogram(x, bins, range=range, weight=weight, density=density)

            return _HistogramResult(*_rules.by_samples(one, batched))
    points = input.reshape(-1, 1)
    weights = weight
    if weight is not None and weight.shape == input.shape:
        weights = weight.reshape(-1)
    hist, (edges,) = _histogram(points, [bins], range, weights, density)
    if out is not None:
        from taeda._functions.copies import write

        write("histogram", (hist, edges), out)
        hist, edges = out
    return _HistogramResult(hist, edges)


@_C._overridable
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts points of N dimensions, input's last one, in each bin: (hist, bin_edges).

    `bins` is a number of bins, one for each dimension, or a 1-d tensor of edges for each; `range`
    has the bounds of all dimensions, one after the other. `hist` has N dimensions. Otherwise as
    histogram().

    >>> torch.histogramdd(torch.tensor([[0., 1.], [1., 0.], [2., 0.]]), [2, 2]).hist
    tensor([[0., 1.],
            [2., 0.]])
    """
    _check_arguments("histogramdd", input, weight, density)
    if not isinstance(bins, (int, tuple, list)):
        raise TypeError(
            "histogramdd(): argument 'bins' (position 2) must be int, tuple of ints or tuple of "
            f"Tensors, not {type(bins).__name__}"
        )
    for i, count in enumerate(() if isinstance(bins, int) else bins):
        if isinstance(count, int) and not -(1 << 63) <= count < 1 << 63:
            raise TypeError(
                f"histogramdd(): argument 'bins' failed to unpack the object at pos {i + 1} with "
                'error "Overflow when unpacking long long"'
            )
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    return _HistogramddResult(*_histogram(input, list(bins), range, weight, density))
