"""Automatic differentiation.

Operators on tensors that require grad record a graph; ``backward`` and ``grad`` walk it. The rest:
``Function`` for gradients of one's own, ``functional`` for Jacobians and Hessians, ``forward_ad``
for forward mode, ``graph`` for hooks on the graph, ``gradcheck`` against finite differences.
"""

from __future__ import annotations

import importlib as _importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taeda import _C, _missing
from taeda._C import Tensor
from taeda.autograd.function import Function
from taeda.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _as_tuple(value: Any) -> tuple:
    # A GradientEdge is a tuple too, but stands for one tensor.
    if isinstance(value, Tensor) or hasattr(value, "output_nr"):
        return (value,)
    return tuple(value)


@_C._overridable
def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulates the gradients of ``tensors`` into the ``.grad`` of the leaves they come from.

    Args:
        tensors: where to start.
        grad_tensors: the gradient of each; None for one-element tensors stands for 1.
        retain_graph: keep what the graph saved, for another backward (default: create_graph).
        create_graph: record the backward too, for higher derivatives.
        inputs: accumulate into these tensors only.
    """
    tensors = _as_tuple(tensors)
    if grad_tensors is None:
        grad_tensors = grad_variables
    if grad_tensors is not None:
        grad_tensors = (grad_tensors,) if isinstance(grad_tensors, Tensor) else tuple(grad_tensors)
    if inputs is not None:
        inputs = _as_tuple(_inputs(inputs, "backward"))
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else bool(retain_graph)
    _C._backward(tensors, grad_tensors, keep, bool(create_graph), inputs)


@_C._overridable
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` changes.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what; a dict gives a dict of gradients.
        grad_outputs: the gradient of each output (default: 1 for one-element outputs).
        retain_graph: keep what the graph saved (default: create_graph).
        create_graph: record the computation of the gradients too.
        allow_unused: None for inputs that the outputs do not depend on, instead of an error.
        is_grads_batched: each of ``grad_outputs`` is a stack of gradients along a first dimension,
            and so is each result: a loop of as many backwards, which saves no time.
        materialize_grads: zeros instead of None for those.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.grad(x ** 3, x)
    (tensor(27.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but "
            "got: allow_unused=False."
        )
    if not only_inputs:
        raise ValueError("only_inputs argument is deprecated and is ignored now (defaults to True)")
    if type(inputs) is dict:
        names, inputs = tuple(inputs), tuple(inputs.values())
    else:
        names, inputs = None, _as_tuple(_inputs(inputs, "grad"))
    outputs = _as_tuple(outputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if grad_outputs is not None:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    options = bool(create_graph), bool(allow_unused) or materialize_grads, False
    if is_grads_batched:
        result = _batched_grad(outputs, inputs, grad_outputs, keep, options)
    else:
        result = _C._grad(outputs, inputs, grad_outputs, keep, *options)
    if materialize_grads:
        zeros_like = _C._by_owner["torch"]["zeros_like"]
        result = tuple(
            zeros_like(x, requires_grad=create_graph) if g is None else g
            for g, x in zip(result, inputs, strict=True)
        )
    return result if names is None else dict(zip(names, result, strict=True))


def _inputs(inputs: Any, function: str) -> Any:
    """Tensors, or a dict of them by name; no other mapping."""
    if type(inputs) is dict:
        return inputs.values()
    if isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    return inputs


def _batched_grad(
    outputs: tuple, inputs: tuple, grad_outputs: tuple | None, keep: bool, options: tuple
) -> tuple:
    """One backward a row of the grad_outputs, the results stacked along a new first dimension."""
    rows = [None if g is None else g.unbind() for g in grad_outputs or (None,) * len(outputs)]
    count = next((len(row) for row in rows if row is not None), None)
    if count is None:
        raise ValueError("grad: is_grads_batched=True needs grad_outputs with a batch dimension")
    for output, gradient in zip(outputs, grad_outputs or (), strict=True):
        if gradient is not None and gradient.shape != (count, *output.shape):
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                f"as the batch dimension. The sizes of the remaining dimensions are expected to "
                f"match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output has a shape of {gradient.shape} and output has a shape of "
                f"{output.shape}."
            )
    results = [
        _C._grad(
            outputs,
            inputs,
            tuple(None if row is None else row[i] for row in rows),
            keep or i + 1 < count,
            *options,
        )
        for i in range(count)
    ]
    stack = _C._by_owner["torch"]["stack"]
    return tuple(
        None if any(g is None for g in column) else stack(column)
        for column in zip(*results, strict=True)
    )


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor: ``Variable(x, requires_grad=True)`` gives a tensor."""

    def __new__(
        cls, data: Any = None, requires_grad: bool | None = None, volatile: Any = None
    ) -> Any:
        if data is None:
            data = _C._by_owner["torch"]["empty"](0)
        result = data if requires_grad is None and isinstance(data, Tensor) else data.detach()
        return result if not requires_grad else result.requires_grad_()


def _profiler_enabled() -> bool:
    """Whether somebody profiles in this process."""
    return _importlib.import_module("taeda.autograd.profiler")._is_profiler_enabled()


def _calculate_shape(output: Tensor, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of one gradient of it; of nested tensors those of their parts."""

    def shape(t: Any) -> Any:
        return t._nested_tensor_size() if t.is_nested else t.shape

    if output.is_nested or grad.is_nested:
        return shape(output), shape(grad)
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _is_checkpoint_valid() -> bool:
    return _C._is_checkpoint_valid()


class _ExecutionEngine:
    """What ``Variable._execution_engine`` of old offers to extensions."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        _C._queue_callback(callback)


Variable._execution_engine = _ExecutionEngine  # type: ignore[attr-defined]

_SUBMODULES = frozenset(
    "forward_ad functional gradcheck graph grad_mode function anomaly_mode profiler "
    "profiler_legacy profiler_util variable".split()
)
_LAZY = {
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
    "gradgradcheck": "gradcheck",
    "GradcheckError": "gradcheck",
}


if TYPE_CHECKING:
    from taeda.autograd import anomaly_mode as anomaly_mode
    from taeda.autograd import forward_ad as forward_ad
    from taeda.autograd import function as function
    from taeda.autograd import functional as functional
    from taeda.autograd import grad_mode as grad_mode
    from taeda.autograd import graph as graph
    from taeda.autograd import profiler as profiler
    from taeda.autograd import profiler_legacy as profiler_legacy
    from taeda.autograd import profiler_util as profiler_util
    from taeda.autograd import variable as variable
    from taeda.autograd.anomaly_mode import detect_anomaly as detect_anomaly
    from taeda.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
    from taeda.autograd.gradcheck import GradcheckError as GradcheckError
    from taeda.autograd.gradcheck import gradcheck as gradcheck
    from taeda.autograd.gradcheck import gradgradcheck as gradgradcheck
else:

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            value = getattr(_importlib.import_module(f"taeda.autograd.{_LAZY[name]}"), name)
        elif name in _SUBMODULES:
            return _importlib.import_module(f"taeda.autograd.{name}")
        elif name == "torch":  # programs of old reach it as torch.autograd.torch
            return _importlib.import_module("taeda")
        elif name == "SavedTensor":
            value = _C._SavedTensor
        else:
            return _missing.attribute(__name__, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY, *_missing.names(__name__)})
