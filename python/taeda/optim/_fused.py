"""Whole-group updates in C++: the operators of ops/optim.yaml.

They take lists of parameters, gradients and state and update parameters and state in place. A group
with complex or mixed types, or on several devices, takes the tensor implementation in the
optimizer's own file, which also is the definition that the tests compare with; ``foreach=True`` or
``fused=False`` ask for it.
"""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._C import (  # type: ignore[attr-defined]
    _gradients_to_step,
    _has_torch_dispatch,
    _torch_dispatch_stack,
)

_TYPES = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)


def fused(name: str) -> Any:
    """The operator of that name, if the core has it."""
    return _C._by_owner.get("torch", {}).get(name)


def gradients(params: list[Tensor], group: dict[str, Any]) -> list[Any] | None:
    """The gradients, where all of a group is of a kind that the fused functions take. A
    TorchDispatchMode sees the operators of the tensor implementation, as in PyTorch, unless they
    were asked for."""
    fused = group.get("fused")
    if fused is False or (fused is None and _torch_dispatch_stack()):
        return None
    if group["foreach"] or group["differentiable"]:
        return None
    grads = _gradients_to_step(params)
    if grads is None and _alike(params):
        grads = [p.grad for p in params]
    return grads


def with_rate(function: Any, lr: Any) -> tuple[Any, float]:
    """The function and the learning rate for it; one in a tensor is left where it is."""
    if isinstance(lr, Tensor):
        return functools.partial(function, lr_tensor=lr), 0.0
    return function, float(lr)


def _alike(params: list[Tensor]) -> bool:
    """What `_gradients_to_step` finds, asked of tensors of any class as a program would."""
    dtype, on_cpu = params[0].dtype, params[0].is_cpu
    device = None if on_cpu else params[0].get_device()
    if dtype not in _TYPES or not (on_cpu or params[0].is_cuda):
        return False
    for p in params:
        grad: Any = p.grad
        if p.dtype is not dtype or grad.dtype is not dtype or grad.is_sparse:
            return False
        if p.is_cpu is not on_cpu or (not on_cpu and p.get_device() != device):
            return False
        if _has_torch_dispatch(p):
            return False
    return True


def overflowed(optimizer: Any) -> bool:
    """Whether a GradScaler has found a gradient that is not finite; asks the device."""
    return optimizer.found_inf is not None and bool(optimizer.found_inf)
