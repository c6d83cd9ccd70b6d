"""grad, grad_and_value, vjp: derivatives by running a function backward.

They run the function under autograd on fresh leaves. Where a transform runs inside another one, or
on tensors that are differentiated outside, what it computes is recorded, and tangents of levels
outside are carried along, so that transforms nest in any order and take part in an ordinary
backward; otherwise results have no history.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import Tensor
from taeda.utils._pytree import tree_flatten, tree_unflatten

from ._run import Run, level
from ._trees import Chosen, check_inputs, only_tensors, output_tensors, split_aux

__all__ = ["grad", "grad_and_value", "vjp"]


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of ``func`` and its value (with has_aux, and the rest).

    >>> import taeda as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(args, argnums)
        run = Run(chosen.tensors)
        with level():
            value, aux = split_aux(chosen.call(func, run.inputs, kwargs), has_aux, name)
            _check_scalar(value, name)
            history = run.keep_history([value])
            grads = run.gradients([value], [None], history)
            gradient = run.finish(chosen.tree(grads), history)
            value = run.finish(value, history)
            if has_aux:
                value = value, run.finish(only_tensors(aux), history)
        return gradient, value

    return wrapped


def _check_scalar(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(value)}")
    if value.dim() != 0:
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} "
            "dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of ``func`` by the arguments that argnums names.

    Arguments may be tensors or dicts, lists and tuples of them; ``func`` returns one number, or
    with has_aux a pair of that and further tensors.

    >>> import taeda as torch
    >>> cube = lambda x: x ** 3
    >>> torch.func.grad(cube)(torch.tensor(3.))
    tensor(27.)
    >>> torch.func.grad(torch.func.grad(cube))(torch.tensor(3.))
    tensor(18.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """``func(*primals)`` and a function from cotangents to the gradients of all primals.

    >>> import taeda as torch
    >>> y, back = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> back(torch.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    given, spec = tree_flatten(primals)
    check_inputs(given)
    shown, vjp_fn, aux = pullback(
        lambda *xs: func(*tree_unflatten(list(xs), spec)),
        given,
        lambda grads: tree_unflatten(grads, spec),
        has_aux,
    )[:3]
    return (shown, vjp_fn, aux) if has_aux else (shown, vjp_fn)


def pullback(
    func: Callable, given: list, build: Callable, has_aux: bool
) -> tuple[Any, Callable, Any, list, Callable]:
    """``func(*given)``, the function from cotangents to gradients, aux, the outputs as they were
    recorded, and what finishes results that are made of gradients; ``build`` makes a tree of
    gradients."""
    name = "vjp(f, *primals)"
    run = Run(given)
    with level():
        value, aux = split_aux(func(*run.inputs), has_aux, name)
        if has_aux:
            only_tensors(aux)
        outputs, out_spec = output_tensors(value, name)
        history = run.keep_history(outputs)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        leaves, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {spec}, primal output: {out_spec}"
            )
        record = history if create_graph is None else create_graph
        record = record or run.follows(leaves)
        grads = run.gradients(outputs, leaves, record, keep=retain_graph)
        tree = build(grads)
        return tree if create_graph else run.finish(tree, record)

    shown = run.finish(value, history)
    return shown, vjp_fn, run.finish(aux, history), outputs, lambda x: run.finish(x, history)
