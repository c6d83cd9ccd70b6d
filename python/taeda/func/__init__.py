"""Functions of functions: derivatives, batches, and calling a module with other parameters."""

from __future__ import annotations

from taeda import _C, Tensor, _missing

from ._forward import jvp
from ._functionalize import functionalize
from ._jacobians import hessian, jacfwd, jacrev
from ._linearize import linearize
from ._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._reverse import grad, grad_and_value, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside of vmap stands for: the tensor of all samples, the samples first.

    For looking at values while debugging; nothing computed from it belongs to the transform. With
    ``recurse``, through all levels. Other tensors come back as they are.
    """
    while (depth := _C._batch_level(tensor)) > 0:
        tensor = _C._batch_value(tensor, depth)[0]
        if not recurse:
            break
    return tensor


__getattr__, __dir__ = _missing.attributes(__name__)
