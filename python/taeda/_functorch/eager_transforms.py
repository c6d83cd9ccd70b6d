"""The transforms that differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import Tensor
from taeda.func import functionalize as functionalize
from taeda.func import grad as grad
from taeda.func import grad_and_value as grad_and_value
from taeda.func import hessian as hessian
from taeda.func import jacfwd as jacfwd
from taeda.func import jacrev as jacrev
from taeda.func import jvp as jvp
from taeda.func import linearize as linearize
from taeda.func import vjp as vjp
from taeda.utils._pytree import tree_map_only

argnums_t = int | tuple[int, ...]


def grad_impl(
    func: Callable, argnums: Any, has_aux: bool, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """One call of ``grad(func, argnums, has_aux)``."""
    return grad(func, argnums, has_aux)(*args, **kwargs)


def grad_and_value_impl(
    func: Callable, argnums: Any, has_aux: bool, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """One call of ``grad_and_value(func, argnums, has_aux)``."""
    return grad_and_value(func, argnums, has_aux)(*args, **kwargs)


def _slice_argnums(args: tuple, argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that `argnums` names, a number or a tuple of them."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    if len({number % len(args) for number in numbers}) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    if isinstance(argnums, int):
        return (args[argnums],) if as_tuple else args[argnums]
    return tuple(args[number] for number in argnums)


def _create_differentiable(inps: Any, level: Any = None) -> Any:
    """The tensors of a tree with requires_grad set."""
    return tree_map_only(Tensor, lambda x: x.requires_grad_(), inps)


def _set_tensor_requires_grad(x: Tensor) -> Tensor:
    return x.requires_grad_()
