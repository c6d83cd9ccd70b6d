"""Whole-group updates in C++: the operators of ops/optim.yaml.

They take lists of parameters, gradients and state and update parameters and state in place. A group
with complex or mixed types, or of another device, takes the tensor implementation in the
optimizer's own file, which also is the definition that the tests compare with; ``foreach=True`` or
``fused=False`` ask for it.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._C import _has_torch_dispatch, _torch_dispatch_stack  # type: ignore[attr-defined]

_TYPES = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)


def fused(name: str) -> Any:
    """The operator of that name, if the core has it."""
    return _C._by_owner.get("torch", {}).get(name)


def usable(params: list[Tensor], group: dict[str, Any]) -> bool:
    """Whether all of a group is of a kind that the fused functions take. A TorchDispatchMode sees
    the operators of the tensor implementation, as in PyTorch, unless they were asked for."""
    if group.get("fused") is None and _torch_dispatch_stack():
        return False
    if group.get("fused") is False or group.get("foreach") or group.get("differentiable"):
        return False
    dtype = params[0].dtype
    if dtype not in _TYPES:
        return False
    for p in params:
        grad: Any = p.grad
        if p.dtype is not dtype or grad.dtype is not dtype or not p.is_cpu or grad.is_sparse:
            return False
        if _has_torch_dispatch(p):
            return False
    return True
