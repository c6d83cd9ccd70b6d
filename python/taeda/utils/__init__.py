"""Tools around tensors and modules; submodules load when first used."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["set_module", "swap_tensors"]

_SUBMODULES = frozenset(
    "_cxx_pytree _device _foreach_utils _python_dispatch _pytree _traceback benchmark checkpoint "
    "collect_env cpp_extension data deterministic dlpack file_baton flop_counter hooks "
    "mkldnn mobile_optimizer model_zoo module_tracker serialization tensorboard weak".split()
)


def set_module(obj: Any, mod: str) -> None:
    """Sets ``obj.__module__``, so that ``obj`` shows its public address."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two leaves: values, class, attributes, gradient and whether one is wanted.

    RuntimeError for tensors that were computed with gradients: their histories stay where they are.
    """
    if not (t1.is_leaf and t2.is_leaf):
        raise RuntimeError("swap_tensors: cannot swap tensors that are not leaves of the graph")
    grads, wanted = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    for t in (t1, t2):
        t.grad = None
        t.requires_grad_(False)
    t1.data, t2.data = t2.data, t1.data
    t1.__class__, t2.__class__ = type(t2), type(t1)
    t1.__dict__, t2.__dict__ = dict(t2.__dict__), dict(t1.__dict__)
    for t, other in ((t1, 1), (t2, 0)):
        t.requires_grad_(wanted[other])
        t.grad = grads[other]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
