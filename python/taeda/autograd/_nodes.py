"""Steps of the graph that programs make themselves: what ``torch._C._functions`` has.

>>> x = torch.ones(2, requires_grad=True)
>>> y = torch._C._functions.DelayedError("not this way", 1)(x)
>>> y.sum().backward()
Traceback (most recent call last):
    ...
RuntimeError: not this way
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.autograd.function import BackwardCFunction, Function

AccumulateGrad = _C._node_type("AccumulateGrad")


class _Step(Function):
    """Tensors as they are, with a history that `_Step.backward` of a subclass answers."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(t.view_as(t) for t in tensors)


class _Error(_Step):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        ctx.message, *tensors = arguments
        return _Step.forward(ctx, *tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


class _Undefined(_Step):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def fails_in_backward(message: str, values: tuple) -> tuple:
    """The values; through the tensors among them that may require grad, backward raises."""

    def leaf(value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            return taeda.zeros(())  # an edge that leads nowhere
        inexact = value.is_floating_point() or value.is_complex()
        return value.detach().requires_grad_(inexact)

    marked = _Error.apply(message, *map(leaf, values))
    return tuple(m if isinstance(v, Tensor) else v for v, m in zip(values, marked))


class _NotImplemented(Function):
    @staticmethod
    def forward(ctx: Any, name: str, compute: Callable[[], Any], *tensors: Any) -> Any:
        ctx.name = name
        return compute()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{ctx.name} is not implemented")


def not_differentiable(name: str, compute: Callable[[], Any], *tensors: Any) -> Any:
    """``compute()``, whose results are recorded as of `tensors`: backward through them raises."""
    return _NotImplemented.apply(name, compute, *tensors)


for _cls, _name in (
    (_Error, "Error"),
    (_Undefined, "UndefinedGradBackward"),
    (_NotImplemented, "NotImplemented"),
):
    _cls._backward_cls = type(_name, (BackwardCFunction,), {"_forward_cls": _cls})


def _only(results: tuple) -> Any:
    return results[0] if len(results) == 1 else results


class DelayedError:
    """``DelayedError(message, n)(*tensors)``: n tensors through which backward raises."""

    def __init__(self, message: str, num_inputs: int) -> None:
        self._message, self._count = message, num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        if len(tensors) != self._count:
            raise RuntimeError(f"DelayedError: expected {self._count} tensors, got {len(tensors)}")
        return _only(_Error.apply(self._message, *tensors))


class UndefinedGrad:
    """``UndefinedGrad()(*tensors)``: the tensors, whose gradients backward takes for undefined."""

    def __call__(self, *tensors: Tensor) -> Any:
        return _only(_Undefined.apply(*tensors))
