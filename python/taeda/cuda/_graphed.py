"""What `make_graphed_callables` makes: a pair of graphs for each function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda.autograd import Function
from taeda.autograd.function import once_differentiable
from taeda.cuda import graphs, streams
from taeda.utils import _pytree


class _Graphed:
    """One function: its tensors at fixed addresses, and the graphs that work on them."""

    def __init__(self, function: Callable[..., Any], sample: Any) -> None:
        self.function, self.sample = function, sample
        arguments = _pytree.tree_leaves(tuple(sample))
        if not all(isinstance(a, taeda.Tensor) for a in arguments):
            raise AssertionError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other "
                "types are not allowed."
            )
        self.parameters: tuple[Any, ...] = ()
        if isinstance(function, taeda.nn.Module):
            _check_module(function)
            self.parameters = tuple(function.parameters())
        self.arguments = len(arguments)
        # All that gradients may be asked for.
        self.inputs = (*arguments, *self.parameters)
        self.forward, self.backward = graphs.CUDAGraph(), graphs.CUDAGraph()
        self.outputs: tuple[Any, ...] = ()
        self.gradients_of_outputs: tuple[Any, ...] = ()
        self.gradients_of_inputs: tuple[Any, ...] = ()
        self.structure: Any = None

    def _gradients(self, outputs: Any, given: Any, allow_unused: bool) -> Any:
        return taeda.autograd.grad(
            outputs=tuple(o for o in outputs if o.requires_grad),
            inputs=tuple(i for i in self.inputs if i.requires_grad),
            grad_outputs=tuple(g for g in given if g is not None),
            only_inputs=True,
            allow_unused=allow_unused,
        )

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            outputs = _pytree.tree_leaves(self.function(*self.sample))
            if any(o.requires_grad for o in outputs):
                given = [taeda.empty_like(o) for o in outputs if o.requires_grad]
                self._gradients(outputs, given, allow_unused)

    def capture_forward(self, pool: Any) -> None:
        with graphs.graph(self.forward, pool=pool):
            result = self.function(*self.sample)
        leaves, self.structure = _pytree.tree_flatten(result)
        self.outputs = tuple(leaves)

    def capture_backward(self, pool: Any, allow_unused: bool) -> None:
        self.gradients_of_outputs = tuple(
            taeda.empty_like(o) if o.requires_grad else None for o in self.outputs
        )
        found: Any = iter(())
        if any(o.requires_grad for o in self.outputs):
            with graphs.graph(self.backward, pool=pool):
                found = self._gradients(self.outputs, self.gradients_of_outputs, allow_unused)
            found = iter(found)
        self.gradients_of_inputs = tuple(
            next(found, None) if i.requires_grad else None for i in self.inputs
        )

    def call(self) -> Callable[..., Any]:
        """The function that replays."""
        this = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for static, given in zip(this.inputs[: this.arguments], inputs, strict=False):
                    _copy(static, given)
                this.forward.replay()
                return tuple(o.detach() for o in this.outputs)

            @staticmethod
            @once_differentiable
            def backward(ctx: Any, *gradients: Any) -> Any:
                for static, given in zip(this.gradients_of_outputs, gradients, strict=True):
                    if static is not None:
                        _copy(static, given)
                this.backward.replay()
                return tuple(g if g is None else g.detach() for g in this.gradients_of_inputs)

        def function(*args: Any) -> Any:
            leaves = _pytree.tree_leaves(tuple(args))
            outputs = Graphed.apply(*leaves, *this.parameters)
            return _pytree.tree_unflatten(list(outputs), this.structure)

        return function


def _copy(static: Any, given: Any) -> None:
    if static.data_ptr() != given.data_ptr():
        with taeda.no_grad():
            static.copy_(given)


def _check_module(module: Any) -> None:
    if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
        raise AssertionError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    if any(b.requires_grad for b in module.buffers()):
        raise AssertionError(
            "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only "
            "parameters may be trainable. All buffers must have ``requires_grad=False``."
        )


def _graphed_module(module: Any, graphed: Callable[..., Any]) -> Any:
    """The module, which replays while it is in the mode that was captured."""
    eager, training = module.forward, module.training

    def forward(*args: Any, **kwargs: Any) -> Any:
        return (graphed if module.training == training else eager)(*args, **kwargs)

    module.forward = forward
    return module


def make_graphed(
    functions: tuple[Callable[..., Any], ...],
    samples: Any,
    warmups: int,
    allow_unused: bool,
    pool: Any,
) -> tuple[Any, ...]:
    """Warms up and captures: all forward passes in order, then the backward ones in reverse, since
    they share memory in the order in which they will run."""
    all_ = [_Graphed(f, s) for f, s in zip(functions, samples, strict=True)]
    taeda.cuda.synchronize()
    with streams.stream(streams.Stream()):
        for one in all_:
            one.warm_up(warmups, allow_unused)
    taeda.cuda.synchronize()
    for one in all_:
        one.capture_forward(pool)
    for one in reversed(all_):
        one.capture_backward(pool, allow_unused)
    return tuple(
        _graphed_module(one.function, one.call())
        if isinstance(one.function, taeda.nn.Module)
        else one.call()
        for one in all_
    )
