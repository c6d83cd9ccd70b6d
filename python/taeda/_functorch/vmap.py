"""vmap, and the steps of a call that libraries take one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import Tensor
from taeda.func._vmap import RANDOMNESS, _Call, common_size, flat_out_dims, level, name_of
from taeda.func._vmap import vmap as vmap
from taeda.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_unflatten,
)

from ._levels import _add_batch_dim, _remove_batch_dim
from ._levels import _unwrap_batched as _open

in_dims_t = int | tuple
out_dims_t = int | tuple[int, ...]

_get_name = name_of


def _check_randomness_arg(randomness: str) -> None:
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )


def _validate_and_get_batch_size(flat_in_dims: list, flat_args: list) -> int:
    """The size that all mapped dimensions have; ValueError where they differ."""
    return common_size(flat_args, flat_in_dims) or 0


def _process_batched_inputs(
    in_dims: Any, args: tuple, func: Callable
) -> tuple[int, list, list, TreeSpec]:
    """(batch size, dimension of each leaf, the leaves, their structure), checked."""
    call = _Call(func, in_dims, 0, "error", args)
    return call.size, call.dims, call.leaves, call.spec


def _create_batched_inputs(
    flat_in_dims: list, flat_args: list, vmap_level: int, args_spec: TreeSpec
) -> Any:
    """The arguments with what is mapped batched at a level."""
    batched = [
        x if dim is None else _add_batch_dim(x, dim, vmap_level)
        for dim, x in zip(flat_in_dims, flat_args)
    ]
    return tree_unflatten(batched, args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable
) -> Any:
    """The results of all samples, along `out_dims`."""
    flat, spec = tree_flatten(batched_outputs)
    dims = flat_out_dims(name_of(func), out_dims, batched_outputs, spec)
    opened = [
        y if dim is None else _remove_batch_dim(y, vmap_level, batch_size, dim)
        for y, dim in zip(flat, dims)
    ]
    return tree_unflatten(opened, spec)


def wrap_batched(args: tuple, bdims: Any, level: int) -> Any:
    """The arguments batched along `bdims`, None for those of all samples."""
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(bdims, spec)
    if dims is None:
        raise AssertionError(f"bdims {bdims} do not fit the structure of the arguments")
    return _create_batched_inputs(dims, flat, level, spec)


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """(the tensors of all samples, where the batch lies in each: None in others)."""
    flat, spec = tree_flatten(args)
    pairs = [_open(x, level) if isinstance(x, Tensor) else (x, None) for x in flat]
    values, dims = ([pair[i] for pair in pairs] for i in (0, 1))
    return tree_unflatten(values, spec), tree_unflatten(dims, spec)


def restore_vmap(
    func: Callable, in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """A function that runs `func` under vmap and gives (results, where the batch lies in each)."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with level(batch_size, randomness) as depth:
            return unwrap_batched(func(*wrap_batched(args, in_dims, depth), **kwargs), depth)

    return inner
