"""The gradient of a registered operator, from Python functions for backward and its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _C
from taeda.utils import _pytree as pytree


def autograd_kernel(
    op: Any, backward: Callable | None, setup_context: Callable | None
) -> Callable[..., Any]:
    """What runs for calls on tensors that require grad: an autograd.Function around the operator.

    Tensors in lists are arguments of the function one by one, so each gets its gradient. What the
    operator writes keeps its history, as in PyTorch: only its version counter goes up.
    """
    from taeda.autograd.function import Function

    names = [argument.name for argument in op._schema.arguments]
    keyword_only = [a.name for a in op._schema.arguments if a.kwarg_only]

    def complete(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """All arguments, those with defaults too: setup_context is given every one."""
        values = dict(zip(names, args))
        values.update(kwargs)
        for argument in op._schema.arguments:
            if argument.name not in values:
                values[argument.name] = argument.default_value
        positional = tuple(values[n] for n in names if n not in keyword_only)
        return positional, {n: values[n] for n in keyword_only}

    def kernel(*args: Any, **kwargs: Any) -> Any:
        inputs, keywords = complete(args, kwargs)
        leaves, spec = pytree.tree_flatten((inputs, keywords))
        result_spec: Any = None

        class Generated(Function):
            @staticmethod
            def forward(ctx: Any, *flat: Any) -> Any:
                nonlocal result_spec
                positional, named = pytree.tree_unflatten(list(flat), spec)
                result = op._redispatch_below("Autograd", tuple(positional), dict(named))
                if setup_context is not None:
                    given = {"ctx": ctx, "inputs": positional, "output": result}
                    if keyword_only:
                        given["keyword_only_inputs"] = named
                    setup_context(**given)
                flat_result, result_spec = pytree.tree_flatten(result)
                return tuple(flat_result)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {op} but no autograd formula was registered. "
                        "Please use register_autograd to add one."
                    )
                count = result_spec.num_leaves
                given = pytree.tree_unflatten(list(grads[:count]), result_spec)
                if len(op._schema.returns) <= 1:
                    given = (given,)
                found = backward(ctx, *given)
                if not isinstance(found, tuple):
                    found = (found,)
                return _spread(op, found, inputs, keywords)

        Generated.__name__ = Generated.__qualname__ = f"GeneratedBackwardFor_{op._opname}"
        results = Generated.apply(*leaves)
        if not isinstance(results, tuple):
            results = (results,)
        return pytree.tree_unflatten(list(results[: result_spec.num_leaves]), result_spec)

    kernel._where_recorded = True  # type: ignore[attr-defined]
    return kernel


def _spread(op: Any, found: tuple, inputs: tuple, keywords: dict) -> tuple:
    """The gradients of the arguments, one a leaf of the call."""
    if len(found) != len(inputs):
        raise RuntimeError(
            f"{op}: backward returned {len(found)} gradients for {len(inputs)} arguments"
        )
    flat: list[Any] = []
    for grad, given in zip(found, inputs):
        leaves = pytree.tree_leaves(given)
        if isinstance(given, (list, tuple)) and isinstance(grad, (list, tuple)):
            if len(grad) != len(leaves):
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs: "
                    f"{len(leaves)} tensors, but got {len(grad)}"
                )
            flat += grad
        else:
            flat += (
                [grad]
                if len(leaves) == 1 and not isinstance(given, (list, tuple))
                else [None] * len(leaves)
            )
    return (*flat, *(None for _ in pytree.tree_leaves(keywords)))


def tensors_in(tree: Any) -> list[_C.Tensor]:
    """The tensors among the leaves of containers."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, _C.Tensor)]
