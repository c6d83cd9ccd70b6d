"""What PyTorch's programs read in ``torch._C`` and taeda's core does not hold: written in Python.

``taeda._C`` looks here for the names that it lacks, then in the tables of names that are missing.
"""

from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any

import taeda
from taeda import _C, _missing
from taeda._C import Tensor


class _WeakTensorRef:
    """A reference that keeps no tensor alive; ``expired()`` says whether it has gone.

    >>> x = torch.ones(1)
    >>> ref = torch._C._WeakTensorRef(x)
    >>> ref.expired()
    False
    >>> del x
    >>> ref.expired()
    True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"_WeakTensorRef: expected Tensor, got {type(tensor).__name__}")
        self._ref = weakref.ref(tensor)  # what C++ keeps keeps its Python object too

    def expired(self) -> bool:
        return self._ref() is None


def _are_functorch_transforms_active() -> bool:
    """Whether a call runs inside of vmap, grad, vjp, jvp or another transform of torch.func."""
    run = sys.modules.get("taeda.func._run")
    return bool(_C._vmap_level()) or (run is not None and run._levels.depth > 0)


def _log_api_usage_once(event: str) -> None:
    """Counts nothing: taeda keeps no records of what programs use."""


def _get_tracing_state() -> None:
    """None: no trace is being recorded."""


def _get_default_device() -> str:
    """The type of the device on which tensors are made where no other is in force."""
    return "cpu"


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _add_docstr(obj: Any, doc: str) -> Any:
    """Gives a function, method or class its docstring, and back; RuntimeError where it has one, or
    can have none.

    >>> torch._C._add_docstr(lambda: None, "Nothing.").__doc__
    'Nothing.'
    """
    if not isinstance(doc, str):
        raise TypeError(f"_add_docstr: expected str for doc, got {type(doc).__name__}")
    name = getattr(obj, "__name__", type(obj).__name__)
    if obj.__doc__:
        raise RuntimeError(f"function '{name}' already has a docstring")
    try:
        obj.__doc__ = doc
    except (AttributeError, TypeError):
        raise RuntimeError(
            f"don't know how to add docstring to type '{type(obj).__name__}'"
        ) from None
    return obj


_jit_settings: dict[str, Any] = {}


def _setting(name: str, value: Any) -> Any:
    """A switch of the script compiler, of which there is none: keeps it and gives the last one."""

    def switch(new: Any = value) -> Any:
        last = _jit_settings.get(name, value)
        _jit_settings[name] = new
        return last

    switch.__name__ = switch.__qualname__ = name
    return switch


for _name in (
    "set_profiling_executor set_profiling_mode override_can_fuse_on_cpu override_can_fuse_on_gpu "
    "set_texpr_fuser_enabled set_nvfuser_enabled set_autocast_mode"
).split():
    globals()[f"_jit_{_name}"] = _setting(f"_jit_{_name}", False)
del _name


def _parse_to(*args: Any, **kwargs: Any) -> tuple:
    """Device, dtype, non_blocking and memory format of a call of ``Tensor.to``."""
    from taeda.nn.modules.module import _parse_to

    return _parse_to(*args, **kwargs)


def _saved_tensors() -> dict[str, Any]:
    """What ``torch._C._autograd`` has for the tensors that nodes keep."""
    message = _C._saved_tensors_hooks_disabled_message
    hooks = "_push_{}_default_hooks _pop_{}_default_hooks _{}_hooks_disable _{}_hooks_enable"
    names = hooks.replace("{}", "saved_tensors").split()
    return {name: getattr(_C, name) for name in names} | {
        "SavedTensor": _C._SavedTensor,
        "_saved_tensors_hooks_get_disabled_error_message": message,
        "_saved_tensors_hooks_is_enabled": lambda: message() is None,
    }


def _function_of_torch(name: str) -> Any:
    """A function of torch by its private name: they are in torch._C._VariableFunctions too."""
    if name.startswith("_") and not name.startswith("__"):
        found = getattr(taeda, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    raise AttributeError(f"module 'torch._C._VariableFunctions' has no attribute '{name}'")


def _members(name: str) -> dict[str, Any] | None:
    """What a module inside the core holds: operators of the table by PyTorch's names."""
    table = _C._by_owner
    own = table.get(f"_C.{name}", {})
    match name:
        case "_nn":
            from taeda._functions import nn_operators

            return {n: getattr(nn_operators, n) for n in ("__doc__", "__getattr__", "__dir__")}
        case "_VariableFunctions":
            composed = ("taeda._functions.recurrent", "taeda._functions.layers")
            lazy = [n for n, module in vars(taeda)["_LAZY"].items() if module in composed]
            found = {**table["torch"], **own, **{n: getattr(taeda, n) for n in lazy}}
            return found | {"__getattr__": _function_of_torch}
        case "_autograd":
            return _saved_tensors()
        case "_functions":
            from taeda.autograd import _nodes

            names = ("AccumulateGrad", "DelayedError", "UndefinedGrad")
            return {n: getattr(_nodes, n) for n in names}
        case "_functorch":
            from taeda._functorch import _levels

            return {n: value for n, value in vars(_levels).items() if not n.startswith("__")}
        case "_linalg" | "_special" | "_fft":
            return {f"{name[1:]}_{n}": f for n, f in table.get(name[1:], {}).items()}
    return None


def __getattr__(name: str) -> Any:
    if name in ("PyTorchFileReader", "PyTorchFileWriter"):
        from taeda.serialization import _archive

        return getattr(_archive, name)
    if name in ("DispatchKey", "DispatchKeySet") or "ispatch" in name or name.endswith("_keyset"):
        from taeda import _dispatch_keys

        if name in vars(_dispatch_keys):
            return vars(_dispatch_keys)[name]
    if name == "_cuda_isInBadFork":
        return _C._cuda_is_forked_child
    if name in ("Argument", "FunctionSchema", "parse_schema"):
        from taeda import _ops

        return getattr(_ops, name)
    if name in ("Tag", "has_lapack", "has_mkl", "has_openmp", "has_spectral"):
        from taeda._functions import build

        return getattr(build, name)
    members = _members(name)
    if members is None:
        return _missing.attribute("taeda._C", name)
    module = ModuleType(f"taeda._C.{name}")
    module.__dict__.update(members)
    sys.modules[module.__name__] = module
    globals()[name] = module
    return module
