"""vmap, grad and grad_and_value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.func import grad as grad
from taeda.func import grad_and_value as grad_and_value
from taeda.func import vmap as vmap


def chunk_vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable:
    """`torch.vmap` that runs a batch in `chunks` parts of it, one after the other.

    >>> from torch._functorch.apis import chunk_vmap
    >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    from taeda.utils._pytree import _broadcast_to_and_flatten, tree_flatten

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, spec) or []
        sizes = (x.size(dim) for x, dim in zip(leaves, dims) if dim is not None)
        size = -(-next(sizes, 1) // max(chunks, 1))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(size, 1))(*args, **kwargs)

    return wrapped
