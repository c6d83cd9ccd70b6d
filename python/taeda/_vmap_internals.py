"""The first vmap of PyTorch: the present one serves its names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._functorch.vmap import in_dims_t as in_dims_t
from taeda._functorch.vmap import out_dims_t as out_dims_t
from taeda.func import vmap as _new


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Callable:
    """`torch.vmap`."""
    return _new(func, in_dims, out_dims)


def _vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable:
    """`torch.vmap`; with `allow_none_pass_through` results may be None."""
    if not allow_none_pass_through:
        return _new(func, in_dims, out_dims)
    from taeda.utils._pytree import tree_flatten, tree_unflatten

    def wrapped(*args: Any) -> Any:
        seen: list[Any] = []

        def without(*inner: Any) -> tuple:
            leaves, spec = tree_flatten(func(*inner))
            seen[:] = [spec, [leaf is None for leaf in leaves]]
            return tuple(leaf for leaf in leaves if leaf is not None)

        found = iter(_new(without, in_dims, out_dims)(*args))
        return tree_unflatten([None if none else next(found) for none in seen[1]], seen[0])

    return wrapped
