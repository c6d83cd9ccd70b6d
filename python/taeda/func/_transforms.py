"""grad, vjp, jvp, jacrev, jacfwd, hessian: functions to functions that compute derivatives.

They run the function under autograd on fresh leaves, or on dual tensors of a level of their own.
Where a transform runs inside another one, or on tensors that are differentiated outside, what it
computes is recorded, and tangents of levels outside are carried along, so that transforms nest in
any order and take part in an ordinary backward; otherwise results have no history.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd import forward_ad
from taeda.autograd.grad_mode import outside_inference, recording
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


class _Levels(threading.local):
    depth = 0


_levels = _C._carry_thread_local(_Levels())


@contextmanager
def _differentiating() -> Iterator[None]:
    """A block that records although vmap, outside of it, has switched that off."""
    excluded = _C._exclude_autograd(taeda.is_inference_mode_enabled())
    try:
        yield
    finally:
        _C._exclude_autograd(excluded)


@contextmanager
def _level() -> Iterator[None]:
    """A transform at work, which records whatever the mode outside."""
    _levels.depth += 1
    try:
        with recording(), _differentiating():
            yield
    finally:
        _levels.depth -= 1


def _tensors(tree: Any, what: str) -> tuple[list, Any]:
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{what}: expected tensors, got {type(leaf).__name__}")
    return leaves, spec


def _start(x: Tensor) -> Tensor:
    """The tensor to differentiate by: connected to x where x is differentiated outside."""
    return x.view_as(x) if x.requires_grad else _C._fresh_leaf(x).requires_grad_()


def _recordable(x: Tensor) -> Tensor:
    return _C._fresh_leaf(x) if x.is_inference() else x


def _with_tangents(tensors: list) -> Iterator[Tensor]:
    """The tensors, their tangents at the levels outside, the tangents of those."""
    for x in tensors:
        yield x
        yield from _with_tangents(_C._tangents(x))


def _reaches_others(outputs: list, own: list) -> bool:
    """Whether the outputs depend on leaves, outside of the transform, that require grad."""
    known = {id(x) for x in own}
    if any(y.is_leaf and y.requires_grad and id(y) not in known for y in outputs):
        return True
    nodes = [y.grad_fn for y in outputs if y.grad_fn is not None]
    seen = set()
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in known:
            return True
        nodes.extend(below for below, _ in node.next_functions if below is not None)
    return False


class _Run:
    """One call of a function whose inputs (a list of tensors) are differentiated."""

    def __init__(self, given: list) -> None:
        self.recording = taeda.is_grad_enabled()  # outside of the transform
        self.nested = _levels.depth > 0
        self.given = given
        self.inputs = [_start(x) for x in given]

    def keep_history(self, outputs: list) -> bool:
        """Whether gradients are recorded. Before they are known, a tangent may yet lead to what is
        differentiated outside."""
        return self.recording and (_C._dual_level() != 0 or self.leads_outside(outputs))

    def leads_outside(self, outputs: list) -> bool:
        own = [x for x, y in zip(self.inputs, self.given) if not y.requires_grad]
        outside = any(x.requires_grad for x in self.given)
        below = any(_C._is_differentiated_below(y) for y in outputs)
        return self.nested or outside or below or _reaches_others(outputs, own)

    def finish(self, tree: Any, history: bool) -> Any:
        """Results for the caller: without history where it leads nowhere."""
        if not history or _C._dual_level() == 0:
            return _finish(tree, history)
        return tree_map(lambda x: self._settled(x) if isinstance(x, Tensor) else x, tree)

    def _settled(self, x: Tensor) -> Tensor:
        if self.leads_outside([x]):
            return x
        tangents = list(_with_tangents(_C._tangents(x)))
        return _C._fresh_leaf(x) if self.leads_outside(tangents) else _C._cut_history(x)

    def gradients(self, outputs: list, cotangents: Any, history: bool, keep: bool = False) -> list:
        pairs = [(y, c) for y, c in zip(outputs, cotangents) if y.requires_grad]
        if not pairs:
            return [taeda.zeros_like(x) for x in self.inputs]
        ys, cs = zip(*pairs)
        with _differentiating():
            grads = taeda.autograd.grad(
                ys, self.inputs, cs, create_graph=history, retain_graph=keep or history,
                allow_unused=True,
            )  # fmt: skip
        return [taeda.zeros_like(x) if g is None else g for g, x in zip(grads, self.inputs)]


def _finish(tree: Any, history: bool) -> Any:
    if history:
        return tree
    return tree_map(lambda x: _C._cut_history(x) if isinstance(x, Tensor) else x, tree)


def _chosen(args: tuple, argnums: Any) -> tuple[list, Any]:
    """The tensors of the arguments that argnums names, and their structure."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    chosen = [args[n] for n in numbers]
    return _tensors(chosen[0] if isinstance(argnums, int) else tuple(chosen), "argnums")


def _replaced(args: tuple, argnums: Any, tree: Any) -> list:
    result = list(args)
    if isinstance(argnums, int):
        result[argnums] = tree
    else:
        for n, value in zip(argnums, tree):
            result[n] = value
    return result


def _split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of ``func`` and its value (with has_aux, and the rest).

    >>> import taeda as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, spec = _chosen(args, argnums)
        run = _Run(given)
        with _level():
            tree = tree_unflatten(run.inputs, spec)
            result = func(*_replaced(args, argnums, tree), **kwargs)
            value, aux = _split_aux(result, has_aux, "grad")
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    "Expected f(*args) to return a tensor, got object of type "
                    f"{type(value).__name__}."
                )
            if value.dim() != 0:
                raise RuntimeError(
                    "Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you'd like to use the vjp or jacrev APIs instead?"
                )
            history = run.keep_history([value])
            grads = run.gradients([value], [None], history)
            gradient = run.finish(tree_unflatten(grads, spec), history)
            value, aux = run.finish(value, history), run.finish(aux, history)
        return gradient, (value, aux) if has_aux else value

    return wrapped


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of ``func`` by the arguments that argnums names.

    Arguments may be tensors or dicts, lists and tuples of them; ``func`` returns one number, or
    with has_aux a pair of that and anything.

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
    given, spec = _tensors(primals, "vjp")
    run = _Run(given)
    with _level():
        result = func(*tree_unflatten(run.inputs, spec))
        value, aux = _split_aux(result, has_aux, "vjp")
        outputs, out_spec = _tensors(value, "vjp")
        history = run.keep_history(outputs)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given_cotangents, cotangent_spec = _tensors(cotangents, "vjp")
        if cotangent_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {cotangent_spec}, output: {out_spec}"
            )
        record = history if create_graph is None else create_graph
        outside = _C._dual_level() != 0 or any(c.requires_grad for c in given_cotangents)
        record = record or (run.recording and outside)
        grads = run.gradients(outputs, given_cotangents, record, keep=retain_graph)
        tree = tree_unflatten(grads, spec)
        return _finish(tree, record) if create_graph else run.finish(tree, record)

    shown = run.finish(value, history)
    return (shown, vjp_fn, run.finish(aux, history)) if has_aux else (shown, vjp_fn)


def jvp(
    func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False
) -> tuple:
    """``func(*primals)`` and the product of its Jacobian with the tangents, in forward mode.

    >>> import taeda as torch
    >>> torch.func.jvp(lambda x: x ** 2, (torch.tensor(3.),), (torch.tensor(1.),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple, got {type(primals)}"
        )
    xs, spec = _tensors(primals, "jvp")
    ts, tangent_spec = _tensors(tangents, "jvp")
    if spec != tangent_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            f"structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {tangent_spec}"
        )
    with outside_inference(), forward_ad.dual_level() as level:
        xs, ts = [_recordable(x) for x in xs], [_recordable(t) for t in ts]
        duals = [forward_ad.make_dual(x, t, level=level) for x, t in zip(xs, ts)]
        result = func(*tree_unflatten(duals, spec))
        value, aux = _split_aux(result, has_aux, "jvp")
        outputs, out_spec = _tensors(value, "jvp")
        pairs = [forward_ad.unpack_dual(y, level=level) for y in outputs]
        if strict and any(pair.tangent is None for pair in pairs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): an output does not depend on the primals"
            )
        values = [pair.primal for pair in pairs]
        derivatives = [
            taeda.zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs
        ]
        if has_aux:
            aux = tree_map(
                lambda x: (
                    forward_ad.unpack_dual(x, level=level).primal if isinstance(x, Tensor) else x
                ),
                aux,
            )
    done = (tree_unflatten(values, out_spec), tree_unflatten(derivatives, out_spec))
    return (*done, aux) if has_aux else done


def linearize(func: Callable, *primals: Any) -> tuple:
    """``func(*primals)`` and the function of tangents that ``jvp`` is there.

    >>> import taeda as torch
    >>> y, push = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> push(torch.ones(2))
    tensor([1., 1.])
    """
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


def jacrev(
    func: Callable,
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that returns the Jacobian of ``func``, one backward pass an element of its result.

    For a result of shape S and an argument of shape T it has shape S + T. ``chunk_size`` changes
    nothing.

    >>> import taeda as torch
    >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, spec = _chosen(args, argnums)
        run = _Run(given)
        with _level():
            tree = tree_unflatten(run.inputs, spec)
            result = func(*_replaced(args, argnums, tree), **kwargs)
            value, aux = _split_aux(result, has_aux, "jacrev")
            outputs, out_spec = _tensors(value, "jacrev")
            history = run.keep_history(outputs)
            blocks = [_rows(run, y, history) for y in outputs]
            trees = [tree_unflatten(block, spec) for block in blocks]
            jacobian = run.finish(tree_unflatten(trees, out_spec), history)
            aux = run.finish(aux, history)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def _rows(run: _Run, y: Tensor, history: bool) -> list:
    """The Jacobian of one output by each input."""
    rows = []
    for i in range(y.numel()):
        unit = taeda.zeros(y.numel(), dtype=y.dtype, device=y.device)
        unit[i] = 1
        rows.append(run.gradients([y], [unit.reshape(y.shape)], history, keep=True))
    if not rows:
        return [taeda.zeros((*y.shape, *x.shape), dtype=x.dtype) for x in run.inputs]
    return [taeda.stack(column).reshape((*y.shape, *column[0].shape)) for column in zip(*rows)]


def jacfwd(
    func: Callable,
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable:
    """A function that returns the Jacobian of ``func``, a forward pass for each argument element.

    >>> import taeda as torch
    >>> torch.func.jacfwd(lambda x: x.sin())(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, spec = _chosen(args, argnums)
        columns: list[list] = []  # by element of all inputs: the tangents of all outputs
        value_spec = aux = None
        for position, x in enumerate(given):
            for i in range(x.numel()):
                tangents = [taeda.zeros_like(other) for other in given]
                tangents[position].reshape(-1)[i] = 1

                def on_chosen(*xs: Tensor) -> Any:
                    tree = tree_unflatten(list(xs), spec)
                    return func(*_replaced(args, argnums, tree), **kwargs)

                done = jvp(on_chosen, tuple(given), tuple(tangents), has_aux=has_aux)
                aux = done[2] if has_aux else None
                outputs, value_spec = tree_flatten(done[1])
                columns.append(outputs)
        if value_spec is None:
            raise RuntimeError("jacfwd: expected an argument with at least one element")
        blocks = []
        for k in range(len(columns[0])):
            parts, at = [], 0
            for x in given:
                part = taeda.stack([c[k] for c in columns[at : at + x.numel()]], dim=-1)
                parts.append(part.reshape((*columns[0][k].shape, *x.shape)))
                at += x.numel()
            blocks.append(tree_unflatten(parts, spec))
        jacobian = tree_unflatten(blocks, value_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """A function that returns the second derivatives of ``func``.

    >>> import taeda as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
