"""The first vmap of PyTorch: the present one serves its names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda._functorch.vmap import in_dims_t as in_dims_t
from taeda._functorch.vmap import out_dims_t as out_dims_t
from taeda.func import vmap as _new


def _in_its_words(mapped: Callable) -> Callable:
    """The function, whose refusal of random numbers says what this vmap said of them."""

    @functools.wraps(mapped)
    def wrapped(*args: Any) -> Any:
        try:
            return mapped(*args)
        except RuntimeError as error:
            if "while in randomness error mode" not in str(error):
                raise
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap. Please "
                "perform random operations outside of vmap, or use torch.func.vmap(randomness=...)"
            ) from error

    return wrapped


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Callable:
    """`torch.vmap`."""
    return _in_its_words(_new(func, in_dims, out_dims))


def _vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable:
    """`torch.vmap`; with `allow_none_pass_through` results may be None."""
    if not allow_none_pass_through:
        return _in_its_words(_new(func, in_dims, out_dims))
    from taeda.utils._pytree import tree_flatten, tree_unflatten

    def wrapped(*args: Any) -> Any:
        seen: list[Any] = []

        def without(*inner: Any) -> tuple:
            leaves, spec = tree_flatten(func(*inner))
            seen[:] = [spec, [leaf is None for leaf in leaves]]
            return tuple(leaf for leaf in leaves if leaf is not None)

        found = iter(_in_its_words(_new(without, in_dims, out_dims))(*args))
        return tree_unflatten([None if none else next(found) for none in seen[1]], seen[0])

    return wrapped
