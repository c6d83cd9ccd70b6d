"""Operators of one's own by PyTorch's first interface; ``torch.library`` is the one that stays.

>>> @torch._custom_ops.custom_op("notes::cube")
... def cube(x: torch.Tensor) -> torch.Tensor: ...
>>> @torch._custom_ops.impl("notes::cube")
... def cube_of(x):
...     return x**3
>>> torch.ops.notes.cube(torch.tensor([2.0]))
tensor([8.])
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor, _missing, library
from taeda.library import get_ctx, register_fake

__all__ = [
    "custom_op",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """What an operator gives on tensors without values; a decorator without `func`."""
    return register_fake(qualname, func)


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Defines an operator, "namespace::name", which writes none of its arguments.

    Args:
        qualname: of the operator.
        func_or_schema: a function of its name, whose annotations say what it takes and returns and
            which is not called, or the schema: "(Tensor x) -> Tensor". A decorator without.
    """
    if "::" not in qualname:
        raise ValueError(f"Expected qualname to be 'namespace::name', got {qualname!r}")

    def define(function: Any) -> Any:
        if not inspect.isfunction(function):
            raise ValueError(
                "custom_op(...)(func): Expected `func` to be a Python function, got: "
                f"{type(function)}"
            )
        name = qualname.split("::")[1]
        if function.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name "
                f"'{name}' but got '{function.__name__}'"
            )
        library.define(qualname, library.infer_schema(function, mutates_args=()))
        return function

    if func_or_schema is None:
        return define
    if isinstance(func_or_schema, str):
        return library.define(qualname, func_or_schema)
    return define(func_or_schema)


def impl(
    qualname: str,
    *,
    device_types: str | tuple[str, ...] = ("cpu", "cuda"),
    func: Callable | None = None,
) -> Any:
    """What computes an operator on devices; a decorator without `func`."""
    return library.register_kernel(qualname, device_types, func)


_parts: dict[str, dict[str, Callable]] = {}  # of operators' gradients: "save" and "backward"


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """What is kept for the gradient: func(inputs, output), `inputs` a named tuple of arguments,
    gives tensors and numbers in any containers."""
    return _part_of_gradient(qualname, "save", func)


def impl_backward(
    qualname: str,
    output_differentiability: list[bool] | None = None,
    *,
    func: Callable | None = None,
) -> Any:
    """The gradient: func(ctx, saved, *grads) gives those of the arguments, a dictionary by name."""
    if output_differentiability is not None:
        raise NotImplementedError(
            "impl_backward: all results are differentiated; leave output_differentiability out, or "
            "call ctx.mark_non_differentiable in torch.library.register_autograd"
        )
    return _part_of_gradient(qualname, "backward", func)


def _part_of_gradient(qualname: str, kind: str, func: Callable | None) -> Any:
    def register(function: Callable) -> Callable:
        parts = _parts.setdefault(qualname, {})
        parts[kind] = function
        if len(parts) == 2:
            _register_gradient(qualname, parts)
        return function

    return register if func is None else register(func)


def _register_gradient(qualname: str, parts: dict[str, Callable]) -> None:
    from taeda.utils._pytree import tree_flatten, tree_unflatten

    space, name = qualname.split("::")
    operator = getattr(getattr(taeda.ops, space), name).default
    names = [a.name for a in operator._schema.arguments]
    kind = namedtuple(f"{name}_inputs", names)  # type: ignore[misc]

    def setup(ctx: Any, inputs: tuple, output: Any) -> None:
        leaves, ctx.spec = tree_flatten(parts["save"](kind(*inputs), output))
        ctx.save_for_backward(*(x for x in leaves if isinstance(x, Tensor)))
        ctx.others = [None if isinstance(x, Tensor) else (x,) for x in leaves]

    def backward(ctx: Any, *grads: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        leaves = [next(tensors) if other is None else other[0] for other in ctx.others]
        found = parts["backward"](ctx, tree_unflatten(leaves, ctx.spec), *grads)
        if not isinstance(found, dict):
            raise RuntimeError(f"the backward of {qualname} must give a dict, got {type(found)}")
        return tuple(found.get(name) for name in names)

    library.register_autograd(qualname, backward, setup_context=setup)


__getattr__, __dir__ = _missing.attributes(__name__)
