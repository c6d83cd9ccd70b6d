"""vmap: a function of one sample, applied to all samples of a batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import taeda
from taeda import _C, Tensor
from taeda.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_,
    tree_unflatten,
)

__all__ = ["vmap"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
RANDOMNESS = ("error", "different", "same")


@contextmanager
def level(batch_size: int, randomness: str) -> Iterator[int]:
    """A level of vmap: yields its depth."""
    depth = _C._vmap_enter(batch_size, randomness)
    try:
        yield depth
    finally:
        _C._vmap_exit()


def vmap(
    func: Callable[_P, _R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[_P, _R]:
    """A function that applies ``func``, written for one sample, to all samples of a batch.

    ``in_dims`` says along which dimension the samples of each argument lie (None: all samples are
    given the whole argument), ``out_dims`` along which the results shall: an int for all, or a tree
    like that of the arguments or results. Operators run once for the batch. In ``func`` the batch
    cannot be seen: shapes are those of a sample, and what depends on values (``if x > 0``,
    ``x.item()``, ``torch.nonzero``) raises. Random operators raise too, unless ``randomness`` is
    'different' or 'same': for each sample, other numbers or those of the first. With ``chunk_size``
    that many samples at a time are computed.

    >>> import taeda as torch
    >>> dot = torch.vmap(torch.dot)
    >>> dot(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[1., 0.], [1., 1.]]))
    tensor([1., 7.])
    >>> per_sample = torch.vmap(torch.func.grad(lambda w, x: (w * x).sum() ** 2))
    >>> per_sample(torch.ones(2, 2), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[ 6., 12.],
            [42., 56.]])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _Call(func, in_dims, out_dims, randomness, args).run(kwargs, chunk_size)

    return wrapped


def name_of(func: Callable) -> str:
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


def broadcast_dims(dims: Any, spec: TreeSpec, what: str) -> list:
    """One dimension, or None, for each leaf; ValueError where the trees do not agree."""
    flat = _broadcast_to_and_flatten(dims, spec)
    if flat is None:
        raise ValueError(
            f"{what}: dimensions of structure {tree_flatten(dims)[1]} are not compatible with "
            f"tensors of structure {spec}"
        )
    return flat


class _Call:
    """One call of a vmapped function: its arguments, checked and flattened."""

    def __init__(
        self, func: Callable, in_dims: Any, out_dims: Any, randomness: str, args: tuple
    ) -> None:
        self.func, self.out_dims, self.randomness = func, out_dims, randomness
        self.name = name_of(func)
        self._check_out_dims()
        self.leaves, self.spec, self.dims = self._flatten(in_dims, args)
        self.size = self._batch_size()

    def _check_out_dims(self) -> None:
        def check(x: Any) -> None:
            if x is not None and not isinstance(x, int):
                raise ValueError(
                    f"vmap({self.name}, ..., out_dims={self.out_dims}): `out_dims` must be an int, "
                    "None or a python collection of ints representing where in the outputs the "
                    "vmapped dimension should appear."
                )

        if not isinstance(self.out_dims, int):
            tree_map_(check, self.out_dims)

    def _flatten(self, in_dims: Any, args: tuple) -> tuple[list, TreeSpec, list]:
        call = f"vmap({self.name}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported."
            )
        leaves, spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, spec)
        if dims is None:
            raise ValueError(
                f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
            )
        return leaves, spec, [_checked_dim(call, x, dim) for x, dim in zip(leaves, dims)]

    def _batch_size(self) -> int:
        size = common_size(self.leaves, self.dims)
        if size is None:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        return size

    def run(self, kwargs: dict, chunk_size: int | None) -> Any:
        if chunk_size is None or chunk_size >= self.size:
            results, spec, dims = self._run(self.leaves, self.size, kwargs)
            return tree_unflatten(results, spec)
        chunks = []
        for start in range(0, self.size, chunk_size):
            length = min(chunk_size, self.size - start)
            leaves = [
                x if dim is None else x.narrow(dim, start, length)
                for x, dim in zip(self.leaves, self.dims)
            ]
            results, spec, dims = self._run(leaves, length, kwargs)
            chunks.append(results)
        joined = [
            parts[0] if dim is None else taeda.cat(parts, dim)
            for parts, dim in zip(zip(*chunks), dims)
        ]
        return tree_unflatten(joined, spec)

    def _run(self, leaves: list, size: int, kwargs: dict) -> tuple[list, TreeSpec, list]:
        """The results for these samples, their structure, and where the batch lies in each."""
        with level(size, self.randomness) as depth:
            batched = [
                x if dim is None else _C._add_batch_dim(x, dim, depth)
                for x, dim in zip(leaves, self.dims)
            ]
            outputs = self.func(*tree_unflatten(batched, self.spec), **kwargs)
            flat, spec = tree_flatten(outputs)
            dims = self._flat_out_dims(outputs, spec)
            return [self._result(y, dim, depth) for y, dim in zip(flat, dims)], spec, dims

    def _flat_out_dims(self, outputs: Any, spec: TreeSpec) -> list:
        return flat_out_dims(self.name, self.out_dims, outputs, spec)

    def _result(self, y: Any, dim: int | None, depth: int) -> Any:
        if dim is None:
            if not isinstance(y, Tensor):
                return y
            value, batch = _C._batch_value(y, depth)
            if batch is not None:
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when "
                    "out_dim is None"
                )
            return value
        if not isinstance(y, Tensor):
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                f"{type(y)}. Did you mean to set out_dims= to None for output?"
            )
        return _C._remove_batch_dim(y, depth, dim)


def common_size(leaves: list, dims: list) -> int | None:
    """The size that all mapped dimensions have, None where there is none; ValueError where they
    differ."""
    sizes = [x.size(dim) for x, dim in zip(leaves, dims) if dim is not None]
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0] if sizes else None


def flat_out_dims(name: str, out_dims: Any, outputs: Any, spec: TreeSpec) -> list:
    """A dimension for each leaf of the results; ValueError where `out_dims` does not fit them."""
    alone = isinstance(outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = _broadcast_to_and_flatten(out_dims[0] if alone else out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            f"compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _checked_dim(call: str, x: Any, dim: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -x.dim() <= dim < x.dim():
        raise ValueError(
            f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {x.dim()} so expected in_dim to satisfy -{x.dim()} <= in_dim < "
            f"{x.dim()}."
        )
    return dim % x.dim()
