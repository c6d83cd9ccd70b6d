"""Batch norm and the ReLU after it as one call.

``Sequential`` computes a batch norm in training that is followed by a ReLU in one pass over memory,
and its gradients without passes for ReLU's. The values between the two then exist nowhere, so this
is done only where nobody can ask for them: both modules are of the library's own classes, without
hooks.
"""

from __future__ import annotations

import math

from ._hooks import global_call_hooks
from .activation import ReLU, ReLU6
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm
from .module import Module

# What each activation clamps to, from 0.
CEILINGS: dict[type, float] = {ReLU: math.inf, ReLU6: 6.0}
NORMS: set[type] = {BatchNorm1d, BatchNorm2d, BatchNorm3d}


def is_plain(module: Module) -> bool:
    """Whether a call of the module is a call of its class's ``forward`` and nothing else."""
    return not (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or global_call_hooks
        or "forward" in module.__dict__
    )


def can_fuse(norm: Module, activation: Module) -> bool:
    """Whether a norm (any module) and a member of CEILINGS can be one call."""
    return (
        type(norm) in NORMS
        and isinstance(norm, _BatchNorm)
        and norm.training
        and is_plain(norm)
        and is_plain(activation)
    )
