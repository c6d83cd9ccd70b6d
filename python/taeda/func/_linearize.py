"""linearize: the derivative at a point as a program, which is worked out once.

Forward mode computes tangents beside values. A trace of it at the point (``_C._trace``) is a list
of operators, of which some depend on the tangents and the others do not. The others run once; what
the tangents need of their results is kept. A tangent then costs its own operators, and no call of
the function.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd.grad_mode import outside_inference
from taeda.utils._pytree import tree_flatten, tree_unflatten

from ._forward import push, recordable
from ._trees import check_inputs, output_tensors

__all__ = ["linearize"]

Number = _C._ValueNumber


def linearize(func: Callable, *primals: Any) -> tuple:
    """``func(*primals)`` and the function of tangents that ``jvp`` is there.

    ``func`` runs twice, for its value and in forward mode for the derivative; the function that is
    returned does not call it. What ``func`` read and drew is as it was at the point.

    Where that cannot be written down as a program (random numbers that depend on the tangent, a
    tensor from outside that ``func`` writes, ``functionalize`` or forward mode around it) each call
    runs ``func`` again, at a copy of the primals, with the generators as they were.

    >>> import taeda as torch
    >>> y, push = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> push(torch.ones(2))
    tensor([1., 1.])
    """
    given, spec = tree_flatten(primals)
    check_inputs(given)
    random = _RandomState()
    with outside_inference():
        inputs = [_C._lift(recordable(x)) for x in given]
        point = [x.clone() for x in inputs]
        value = func(*tree_unflatten(inputs, spec))
        output_tensors(value, "linearize(f, *primals)")

        def along(tangents: list) -> Any:
            """The derivative along `tangents`, by a call of the function."""
            xs = [x.clone() for x in point]  # `func` may write both
            ts = [t.clone() for t in tangents]
            return push(lambda *duals: func(*tree_unflatten(list(duals), spec)), xs, ts)[1]

        derivative = _Derivative.at(point, along, random)

    def jvp_fn(*tangents: Any) -> Any:
        ts = _checked_tangents(tangents, given, spec)
        with outside_inference():
            if derivative is not None:
                return derivative(ts)
            with random.again():
                return along(ts)

    return value, jvp_fn


class _RandomState:
    """The default generators' states when it is made."""

    def __init__(self) -> None:
        self.state = taeda.get_rng_state()
        self.devices = taeda.cuda.get_rng_state_all() if taeda.cuda.is_initialized() else []

    @contextmanager
    def again(self) -> Iterator[None]:
        """A block that draws the same numbers again, and leaves the generators as they are."""
        with taeda.random.fork_rng():
            taeda.set_rng_state(self.state)
            if self.devices:
                taeda.cuda.set_rng_state_all(self.devices)
            yield


class _NotLinear(Exception):
    """The derivative cannot be kept as a program."""


class _Derivative:
    """A program of tangents, with what it reads of the point.

    Attributes:
        steps: its calls, (operator, args, kwargs, outputs), with tensors of the point, or numbers
            for what depends on the tangents.
        inputs, outputs: numbers; of outputs that do not depend on the tangents the tensors.
    """

    @classmethod
    def at(cls, point: list, along: Callable, random: _RandomState) -> _Derivative | None:
        """The derivative at a point; None where there is no such program."""
        if _C._is_tracing() or _C._dual_level() or _C._level_is_active():
            return None
        found: list = []

        def traced(*tangents: Tensor) -> list:
            leaves, spec = tree_flatten(along([*tangents]))
            found.append(spec)
            return leaves

        try:
            with random.again(), warnings.catch_warnings():
                warnings.simplefilter("ignore", taeda.jit.TracerWarning)
                program = _C._trace(traced, [_differentiable(x) for x in point])
            program.remove_dead_code()
            with random.again():
                return cls(program, found[0])
        except Exception:  # whatever a program cannot say, a call of the function can
            return None

    def __init__(self, program: Any, spec: Any) -> None:
        self.spec, self.inputs, self.steps = spec, program.inputs, []
        memory = [row[2] for row in program.values]
        varying = _varying_memory(program, memory)
        fixed = [node for node in program.nodes if not _varies(node, varying, memory)]
        written = {m for node in fixed for m in _written(node, memory)}
        values: dict[int, Tensor] = {int(n): t for n, t in program.constants.items()}
        if any(not 0 <= _C._batch_level(t) <= _C._vmap_level() for t in values.values()):
            raise _NotLinear  # of a call of vmap in the function, which has ended

        def kept(number: int) -> Any:
            """What a call reads: a number that varies, or the tensor as it is now."""
            if memory[number] in varying:
                return Number(number)
            return values[number].clone() if memory[number] in written else values[number]

        for node in program.nodes:
            op, args, kwargs, outputs, records = node
            if not records and taeda.is_grad_enabled() and _any_recorded(values):
                raise _NotLinear  # a custom Function's: its own gradient would be lost
            if _varies(node, varying, memory):
                if not records and _in_one_pass(op):
                    raise _NotLinear
                self.steps.append((op, *_filled((args, kwargs), kept), outputs))
            else:
                _run(op, args, kwargs, outputs, values)
        self.outputs = [n if memory[n] in varying else values[n] for n in program.outputs]

    def __call__(self, tangents: list) -> Any:
        values = {int(n): t.clone() for n, t in zip(self.inputs, tangents)}
        for op, args, kwargs, outputs in self.steps:
            _run(op, args, kwargs, outputs, values)
        results = [n.clone() if isinstance(n, Tensor) else values[n] for n in self.outputs]
        return tree_unflatten(results, self.spec)


def _differentiable(x: Tensor) -> Tensor:
    """A tangent of x that is differentiated: then no gradient is computed in one pass, for the
    operators that do have no derivative of their own."""
    tangent = taeda.ones_like(x).detach()
    return tangent.requires_grad_() if tangent.dtype.is_floating_point else tangent


def _in_one_pass(op: Any) -> bool:
    return re.search(r"_grad\d+$|_backward$", op._opname) is not None


def _any_recorded(values: dict[int, Tensor]) -> bool:
    return any(isinstance(t, Tensor) and t.requires_grad for t in values.values())


def _run(op: Any, args: Any, kwargs: Any, outputs: list, values: dict[int, Tensor]) -> None:
    """One call on the values of the numbers; its results get theirs."""
    given, named = _filled((args, kwargs), values.__getitem__)
    result = op(*given, **named)
    for output, made in zip(outputs, [result] if len(outputs) == 1 else result):
        values.update(zip(_numbers(output), made if isinstance(output, list) else [made]))


def _filled(tree: Any, value_of: Callable[[int], Any]) -> Any:
    """Arguments with `value_of` each number in their place."""
    if isinstance(tree, Number):
        return value_of(int(tree))
    if isinstance(tree, list | tuple):
        return type(tree)(_filled(item, value_of) for item in tree)
    if isinstance(tree, dict):
        return {name: _filled(item, value_of) for name, item in tree.items()}
    return tree


def _numbers(tree: Any) -> Iterator[int]:
    if isinstance(tree, Number):
        yield int(tree)
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from _numbers(item)
    elif isinstance(tree, dict):
        yield from _numbers([*tree.values()])


def _written(node: tuple, memory: list) -> set[int]:
    """The memory that a call writes."""
    op, args, kwargs = node[:3]
    schema = op._schema
    given = {a.name: value for a, value in zip(schema.arguments, args)} | kwargs
    names = [a.name for a in schema.arguments if a.is_write]
    return {memory[n] for name in names for n in _numbers(given.get(name))}


def _varies(node: tuple, varying: set[int], memory: list) -> bool:
    """Whether a call depends on the tangents, or makes what a call that does writes."""
    return any(memory[n] in varying for n in _numbers(node[1:4]))


def _varying_memory(program: Any, memory: list) -> set[int]:
    """The memory of what depends on the tangents. _NotLinear where a call writes a tensor from
    outside, or draws random numbers that depend on the tangents."""
    nodes = program.nodes
    varying = {memory[n] for n in program.inputs}
    count = -1
    while count != len(varying):
        count = len(varying)
        for node in nodes:
            if any(memory[n] in varying for n in _numbers(node[1:3])):
                varying |= {memory[n] for n in _numbers(node[3])} | _written(node, memory)
    outside = {memory[n] for n in program.constants}
    drawn = any(_is_random(node[0]) and _varies(node, varying, memory) for node in nodes)
    if drawn or outside & varying.union(*(_written(node, memory) for node in nodes)):
        raise _NotLinear
    return varying


def _is_random(op: Any) -> bool:
    name = op._opname
    drawn = any(a.name == "generator" for a in op._schema.arguments)
    return drawn or re.search(r"dropout_?$|^_?rand", name) is not None


def _checked_tangents(tangents: tuple, primals: list, spec: Any) -> list:
    leaves, tangent_spec = tree_flatten(tangents)
    if tangent_spec != spec:
        raise RuntimeError(
            f"Expected the tangents {tangent_spec} to have the same argspec as the primals {spec}"
        )
    for i, (x, t) in enumerate(zip(primals, leaves)):
        for what in ("shape", "dtype"):
            if getattr(t, what) != getattr(x, what):
                raise RuntimeError(
                    f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't match "
                    f"the {what} {getattr(x, what)} of the corresponding primal."
                )
    return leaves
