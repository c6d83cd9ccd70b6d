"""Whole-group updates in C++.

The functions take lists of parameters, gradients and state and update parameters and state in
place; ``state_steps`` are advanced by them. They are written in ops/optim.yaml:

    _fused_sgd_(params, grads, momentum_buffers, *, lr, momentum, dampening, weight_decay,
                nesterov, maximize)
    _fused_adam_(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1,
                 beta2, weight_decay, eps, amsgrad, maximize)
    _fused_adamw_(the same)
    _fused_rmsprop_(params, grads, square_avgs, grad_avgs, momentum_buffers, state_steps, *, lr,
                    alpha, eps, weight_decay, momentum, centered, maximize)

Lists of state that an option turns off are empty. A group with complex or mixed types, or of a
device without these functions, takes the tensor implementation in the optimizer's own file, which
also is the definition that the tests compare with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor

_TYPES = (taeda.float32, taeda.float64)


def fused(name: str) -> Callable[..., Any] | None:
    """The operator of that name, if the core has it."""
    return _C._functions.get("torch", {}).get(name)


def usable(params: list[Tensor], group: dict[str, Any]) -> bool:
    """Whether all of a group is of a kind that the fused functions take."""
    if group.get("fused") is False or group.get("foreach"):
        return False
    dtype = params[0].dtype
    if dtype not in _TYPES:
        return False
    for p in params:
        grad = p.grad
        if p.dtype is not dtype or grad.dtype is not dtype or not p.is_cpu or grad.is_sparse:
            return False
    return True
