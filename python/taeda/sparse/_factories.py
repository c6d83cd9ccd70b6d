"""Factories with ``layout=``: zeros, empty and their like in sparse layouts.

The bindings of factories hand calls for another layout than their tensor's here (`make`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda._sparse_methods import _BY_ROWS, _LAYOUT_NAMES, _WORDS

_BLOCKS = (taeda.sparse_bsr, taeda.sparse_bsc)


def make(name: str, *args: Any, **options: Any) -> Any:
    """What a factory, "torch.zeros" or "Tensor.new_zeros", gives of a call with a layout.

    Raises:
        NotImplementedError: what it fills the tensor with is no pattern: use to_sparse().
        ValueError: a window of signal processing, which is strided.
    """
    own_name = name.rpartition(".")[2]
    if options.pop("out", None) is not None:
        raise RuntimeError(f"{own_name}: out= takes no layout")
    layout = options.pop("layout")
    if own_name in ("zeros_like", "empty_like") and args[0]._is_any_sparse():
        return _other_layout(own_name, args[0], layout, options)
    if layout is taeda.strided:  # of other tensors like a sparse one
        return getattr(taeda, own_name)(_shape_of(args[0]), *args[1:], **options)
    if "signal.windows" in name:
        raise ValueError(f"{own_name} is implemented for strided tensors only, got: {layout}")
    maker = _MAKERS.get(own_name)
    if maker is None:
        if layout is taeda.sparse_coo and own_name in ("ones", "full"):
            raise RuntimeError("full(...) is not implemented for sparse layout")
        raise NotImplementedError(
            f"{own_name}(layout={layout}): a tensor without zeros has no sparse pattern; make a "
            "strided one and call to_sparse()"
        )
    return maker(layout, *args, **options)


def _shape_of(like: Any) -> Any:
    """A strided tensor of the sizes, dtype and device of a sparse one; its values are not read."""
    return taeda.empty(like.shape, dtype=like.dtype, device=like.device)


def _size(args: tuple) -> tuple[int, ...]:
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], Sequence) else args


def _zeros(layout: Any, *args: Any, size: Any = None, **options: Any) -> Any:
    return empty_pattern(layout, tuple(size) if size is not None else _size(args), **options)


def _zeros_like(layout: Any, input: Any, *, memory_format: Any = None, **options: Any) -> Any:
    return _new_zeros(layout, input, input.shape, **options)


def _new_zeros(layout: Any, like: Any, *args: Any, size: Any = None, **options: Any) -> Any:
    for name in ("dtype", "device"):
        if options.get(name) is None:
            options[name] = getattr(like, name)
    return _zeros(layout, *args, size=size, **options)


_MAKERS: dict[str, Callable[..., Any]] = {
    "empty": _zeros,
    "zeros": _zeros,
    "zeros_like": _zeros_like,
    "new_empty": _new_zeros,
    "new_zeros": _new_zeros,
}


def _other_layout(name: str, like: Any, layout: Any, options: dict[str, Any]) -> Any:
    """zeros_like and empty_like of a sparse tensor; RuntimeError where a compressed one is to
    change its layout."""
    if layout is like.layout:
        return getattr(taeda, name)(like, **options)
    if like.layout is not taeda.sparse_coo:
        raise RuntimeError(
            "empty_like with different sparse layout is not supported (self is "
            f"{_LAYOUT_NAMES[like.layout]} but you requested {_LAYOUT_NAMES[layout]})"
        )
    if layout is taeda.strided:
        return getattr(taeda, name)(_shape_of(like), **options)
    options.pop("memory_format", None)
    return _new_zeros(layout, like, like.shape, **options)


def empty_pattern(
    layout: Any,
    size: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A tensor of zeros, of which none is held.

    Args:
        layout: torch.sparse_coo, sparse_csr or sparse_csc.
        size: of the tensor; compressed ones have at least two dimensions.

    >>> torch.zeros(2, 3, layout=torch.sparse_csr).crow_indices()
    tensor([0, 0, 0])
    """
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(size)}")
    if layout in _BLOCKS:
        raise RuntimeError(
            "zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{_LAYOUT_NAMES[layout]}"
        )
    made: Any
    where = {"dtype": taeda.int64, "device": device}
    values = taeda.empty(0, dtype=dtype, device=device)
    functions = taeda._C._by_owner["torch"]
    if layout is taeda.sparse_coo:
        indices = taeda.empty(len(size), 0, **where)
        made = functions["_sparse_make_coo"](indices, values, size, len(size) > 0)
        return made.requires_grad_(requires_grad)
    if len(size) < 2:
        raise RuntimeError(
            "torch.zeros: Expected layout to be used with a size of at least 2 dimensions, got "
            f"{len(size)}"
        )
    *batch, rows, columns = size
    lines = taeda.zeros(*batch, (rows if layout in _BY_ROWS else columns) + 1, **where)
    others = taeda.empty(*batch, 0, **where)
    values = values.expand(*batch, 0)
    made = functions["_sparse_make_compressed"](lines, others, values, size, _WORDS[layout])
    return made.requires_grad_(requires_grad)
