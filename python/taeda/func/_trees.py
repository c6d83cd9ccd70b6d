"""Arguments and results of transforms: the tensors in them, which of them are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import Tensor
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["Chosen", "only_tensors", "output_tensors", "split_aux"]


class Chosen:
    """The arguments that ``argnums`` names, as a list of tensors."""

    def __init__(self, args: tuple, argnums: Any) -> None:
        _check_argnums(argnums, len(args))
        self.args, self.argnums = args, argnums
        tree = args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in argnums)
        self.tensors, self.spec = tree_flatten(tree)
        check_inputs(self.tensors)

    def call(self, func: Callable, tensors: list, kwargs: dict) -> Any:
        """``func`` with these tensors in the place of those chosen."""
        return func(*self.replaced(tensors), **kwargs)

    def replaced(self, tensors: list) -> list:
        """All arguments, with these tensors in the place of those chosen."""
        tree, args = self.tree(tensors), list(self.args)
        if isinstance(self.argnums, int):
            args[self.argnums] = tree
        else:
            for n, value in zip(self.argnums, tree):
                args[n] = value
        return args

    def tree(self, values: list) -> Any:
        """Values, one a tensor, in the structure of the arguments chosen."""
        return tree_unflatten(values, self.spec)


def _check_argnums(argnums: Any, count: int) -> None:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if len(set(argnums)) != len(argnums):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for n in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")


def check_inputs(leaves: list) -> None:
    """ValueError for an input that is no tensor."""
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")


def only_tensors(tree: Any) -> Any:
    """The tree, of which each leaf must be a tensor: what ``has_aux`` returns beside the value."""

    def check(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
        return leaf

    return tree_map(check, tree)


def output_tensors(tree: Any, call: str) -> tuple[list, Any]:
    """The tensors that a function returned, and their structure."""
    leaves, spec = tree_flatten(tree)
    if not leaves or tree is None:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves, spec


def split_aux(result: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    """A function's result as (value, aux); aux is None without ``has_aux``."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result
