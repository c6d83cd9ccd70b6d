"""jvp: derivatives along a direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd import forward_ad
from taeda.autograd.grad_mode import outside_inference
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._trees import only_tensors, output_tensors, split_aux

__all__ = ["jvp", "push", "recordable"]

NAME = "jvp(f, primals, tangents)"


def jvp(
    func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple:
    """``func(*primals)`` and the product of its Jacobian with the tangents, in forward mode.

    >>> import taeda as torch
    >>> torch.func.jvp(lambda x: x ** 2, (torch.tensor(3.),), (torch.tensor(1.),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{NAME}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    xs, spec = tree_flatten(primals)
    ts, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{NAME}: Expected primals and tangents to have the same python "
            f"structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {tangent_spec}"
        )
    for leaves, what in ((xs, "primals"), (ts, "tangents")):
        if not leaves:
            raise RuntimeError(f"{NAME}: Expected {what} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"{NAME}: Expected {what} to only contain Tensors, got {type(leaf)}"
                )
    return push(lambda *duals: func(*tree_unflatten(list(duals), spec)), xs, ts, strict, has_aux)


def push(func: Callable, xs: list, ts: list, strict: bool = False, has_aux: bool = False) -> tuple:
    """``func(*xs)`` and its derivative along ``ts``, for lists of tensors."""
    with outside_inference(), forward_ad.dual_level() as number:
        xs, ts = [recordable(x) for x in xs], [recordable(t) for t in ts]
        xs = [_C._lift(x) for x in xs]
        duals = [forward_ad.make_dual(x, t, level=number) for x, t in zip(xs, ts)]
        value, aux = split_aux(func(*duals), has_aux, NAME)
        outputs, out_spec = output_tensors(value, NAME)
        pairs = [forward_ad.unpack_dual(y, level=number) for y in outputs]
        if strict and any(pair.tangent is None for pair in pairs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        values = [pair.primal for pair in pairs]
        derivatives = [
            taeda.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs
        ]
        if any(_has_history(x) for x in xs):
            derivatives = [_connected(t, y) for t, y in zip(derivatives, values)]
        if has_aux:
            aux = tree_map(
                lambda x: forward_ad.unpack_dual(x, level=number).primal, only_tensors(aux)
            )
    done = (tree_unflatten(values, out_spec), tree_unflatten(derivatives, out_spec))
    return (*done, aux) if has_aux else done


def _has_history(x: Tensor) -> bool:
    return x.requires_grad or _C._is_differentiated_below(x)


def _connected(tangent: Tensor, value: Tensor) -> Tensor:
    """The tangent, recorded where the value is: a constant one (of x * 3, of the gradient of x * x)
    has the gradient zero, as in PyTorch. Without a history backward through it would raise."""
    if _has_history(tangent) or not _has_history(value):
        return tangent
    return taeda.where(taeda.zeros((), dtype=taeda.bool, device=value.device), value, tangent)


def recordable(x: Tensor) -> Tensor:
    """The tensor, or one with its elements that autograd may record."""
    return _C._fresh_leaf(x) if x.is_inference() else x
