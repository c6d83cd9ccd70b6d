"""Functions whose number of results depends on their arguments: unique and its like."""

from __future__ import annotations

from taeda import _C
from taeda._arguments import require_bool
from taeda._C import Tensor, _overridable

TYPE_CHECKING = False  # as typing's, which `import taeda` does not load
if TYPE_CHECKING:
    from typing import Any

_functions = _C._by_owner["torch"] | _C._by_owner["_C._VariableFunctions"]


def _chosen(results: tuple, return_inverse: bool, return_counts: bool) -> Any:
    wanted = (True, return_inverse, return_counts)
    chosen = tuple(r for r, keep in zip(results, wanted, strict=True) if keep)
    return chosen if len(chosen) > 1 else chosen[0]


@_overridable
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along `dim`.

    With `return_inverse`, also where each element went; with `return_counts`, how often each
    occurs.

    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        results = _functions["_unique2"](input, sorted, return_inverse, return_counts)
    else:
        results = _functions["unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _chosen(results, return_inverse, return_counts)


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple:
    """The distinct elements, and where each went: PyTorch's operator from before `_unique2`."""
    return _functions["_unique2"](input, sorted, return_inverse, False)[:2]


@_overridable
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """As :func:`unique`, of neighbours only: each run of equal elements becomes one.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    results = _functions["_unique_consecutive"](input, return_inverse, return_counts, dim)
    return _chosen(results, return_inverse, return_counts)


@_overridable
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero, one row each in row-major order.

    With `as_tuple`, one vector a dimension: ``x[x.nonzero(as_tuple=True)]`` are those elements.

    >>> torch.nonzero(torch.tensor([0, 7, 8]))
    tensor([[1],
            [2]])
    """
    require_bool("nonzero", "as_tuple", as_tuple)
    if not isinstance(out, Tensor | None):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(_functions["nonzero_numpy"](input))
    if out is not None:
        if out.dtype is not _C.int64:
            raise RuntimeError(
                f"nonzero: Expected out tensor to have scalar type Long, got {out.dtype}"
            )
        return _functions["_nonzero"](input, out=out)
    return _functions["_nonzero"](input)


_ours: list[Any] = [unique, unique_consecutive, nonzero]
for _f in _ours:
    setattr(Tensor, _f.__name__, _overridable(_f.__wrapped__))

__all__ = ["unique", "unique_consecutive", "nonzero"]
