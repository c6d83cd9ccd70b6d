"""Functions of functions: derivatives, and calling a module with other parameters."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.nn.modules.module import Module
from taeda.nn.utils.stateless import functional_call

from ._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def stack_module_state(models: list[Module]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Parameters and buffers of equal models, each stacked along a new first dimension."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = {}
    for name, first in models[0].named_parameters():
        stacked = taeda.stack([m.get_parameter(name).detach() for m in models])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: taeda.stack([m.get_buffer(name) for m in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers
