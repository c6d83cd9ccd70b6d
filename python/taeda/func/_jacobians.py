"""jacrev, jacfwd, hessian: all rows or all columns of a Jacobian in one pass, by vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._forward import push
from ._reverse import pullback
from ._trees import Chosen
from ._vmap import vmap

__all__ = ["basis_chunks", "hessian", "jacfwd", "jacrev"]


def jacrev(
    func: Callable,
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that returns the Jacobian of ``func``, by running it backward for all elements of
    its result at once.

    For a result of shape S and an argument of shape T it has shape S + T. ``chunk_size`` bounds how
    many elements of the result are worked on at a time, and so the memory; 1 runs without vmap.

    >>> import taeda as torch
    >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(args, argnums)
        value, back, aux, outputs, finish = pullback(
            lambda *xs: chosen.call(func, list(xs), kwargs),
            chosen.tensors,
            lambda grads: grads,
            has_aux,
        )
        _check_differentiable(outputs)
        _, out_spec = tree_flatten(value)
        rows = _by_rows(lambda *cs: back(tree_unflatten(list(cs), out_spec)), outputs, chunk_size)
        rows = rows or [x.new_zeros((0, *x.shape)) for x in chosen.tensors]
        blocks, at = [], 0
        for y in outputs:
            of_output = [r[at : at + y.numel()] for r in rows]
            at += y.numel()
            blocks.append(
                chosen.tree(
                    [r.reshape((*y.shape, *x.shape)) for r, x in zip(of_output, chosen.tensors)]
                )
            )
        jacobian = finish(tree_unflatten(blocks, out_spec))
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def _check_differentiable(outputs: list) -> None:
    for y in outputs:
        if not (y.is_floating_point() or y.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {y.dtype}"
            )


def basis_chunks(like: list, chunk_size: int | None) -> Any:
    """The unit vectors of the space of these tensors, some at a time: lists of tensors whose first
    dimension counts them."""
    numels = [x.numel() for x in like]
    total = sum(numels)
    step = chunk_size or max(total, 1)
    for start in range(0, total, step):
        count = min(step, total - start)
        chunk, before = [], 0
        for x, numel in zip(like, numels):
            units = taeda.zeros((count, numel), dtype=x.dtype, device=x.device)
            low, high = max(start, before), min(start + count, before + numel)
            if low < high:  # some of the chunk's units belong to this tensor
                units[low - start : high - start, low - before : high - before].fill_diagonal_(1)
            chunk.append(units.view((count, *x.shape)))
            before += numel
        yield chunk


def _by_rows(back: Callable, outputs: list, chunk_size: int | None) -> list:
    """Gradients of all elements of the outputs: one tensor an input, elements first; none where
    there are no elements."""
    chunks = []
    for units in basis_chunks(outputs, chunk_size):
        if chunk_size == 1:
            chunks.append([g.unsqueeze(0) for g in back(*(u[0] for u in units))])
        else:
            chunks.append(vmap(back)(*units))
    return [taeda.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*chunks)]


def jacfwd(
    func: Callable,
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable:
    """A function that returns the Jacobian of ``func``, in forward mode for all elements of the
    arguments at once.

    ``randomness`` is vmap's, and so may be ``chunk_size``.

    >>> import taeda as torch
    >>> torch.func.jacfwd(lambda x: x.sin())(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(args, argnums)
        xs = chosen.tensors

        def along(*tangents: Tensor) -> tuple:
            call = lambda *duals: chosen.call(func, list(duals), kwargs)  # noqa: E731
            return push(call, xs, list(tangents), has_aux=has_aux)[1:]

        columns, aux = _by_columns(along, xs, chunk_size, randomness)
        outputs, out_spec = tree_flatten(columns)
        blocks = []
        for y in outputs:
            parts = y.movedim(0, -1).split([x.numel() for x in xs], -1)
            blocks.append(
                chosen.tree([p.reshape((*p.shape[:-1], *x.shape)) for p, x in zip(parts, xs)])
            )
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def _by_columns(along: Callable, xs: list, chunk_size: int | None, randomness: str) -> tuple:
    """Tangents of the outputs for all elements of the inputs, elements first; and aux."""
    chunks = [vmap(along, randomness=randomness)(*units) for units in basis_chunks(xs, chunk_size)]
    if not chunks:
        chunks = [tree_map(lambda t: taeda.stack([t])[:0], along(*xs))]
        aux = along(*xs)[1:]
    else:
        aux = tree_map(lambda t: t[0], chunks[0][1:])
    flat = [tree_flatten(chunk[0])[0] for chunk in chunks]
    spec = tree_flatten(chunks[0][0])[1]
    columns = [taeda.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*flat)]
    return tree_unflatten(columns, spec), aux[0] if aux else None


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """A function that returns the second derivatives of ``func``: forward mode over reverse.

    >>> import taeda as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
