"""TorchScript's names: what would be compiled runs eagerly, as there is no script compiler.

`script` and `trace` give what runs the Python program itself, on its parameters; it passes for
PyTorch's classes. What needs a compiled program raises when it is called.

>>> @torch.jit.script
... def double(x: torch.Tensor) -> torch.Tensor:
...     return 2 * x
>>> double(torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import builtins
import contextlib
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from taeda import _C, _jit_internal, _missing
from taeda._jit_internal import (  # noqa: F401
    Final,
    _Await,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)
from taeda.futures import Future
from taeda.jit import _state
from taeda.jit._modules import (  # noqa: F401
    Attribute,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    as_script,
)
from taeda.nn import Module

__all__ = [
    "Attribute",
    "Error",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "run_frozen_optimizations",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class Error(RuntimeError):
    """What a compiled program raises."""


class TracerWarning(Warning):
    """A traced function made a Python value of a tensor: the trace keeps what it was."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Hides those that come from this package's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="(taeda|torch).(?!jit)")


class TracingCheckError(Exception):
    """A trace that differs from its program."""


def is_tracing() -> bool:
    """Whether a trace is being recorded."""
    return _C._is_tracing()


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value, whose type a script compiler would note."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object has a type, also one like ``List[int]`` or ``Dict[str, torch.Tensor]``.

    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return _jit_internal._isinstance(obj, target_type)


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable | None = None,
    example_inputs: Any = None,
) -> Any:
    """A ScriptModule or ScriptFunction that runs a module or function eagerly; others as they are.

    A ScriptModule shares the parameters and submodules of its module. With PYTORCH_JIT=0 in the
    environment modules and functions come back as they are, as those of `trace` do.
    """
    if not _state._enabled:
        return obj
    if builtins.isinstance(obj, Module):
        return as_script(obj, RecursiveScriptModule)
    return ScriptFunction(obj) if builtins.isinstance(obj, FunctionType) else obj


def script_if_tracing(fn: Callable) -> Callable:
    """`fn`, which would be compiled within a trace."""
    return fn


_script_if_tracing = script_if_tracing


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """As `script`, called once with the example inputs to see that it takes them.

    The other options are about the recording of a graph, and there is none.
    """
    if not _state._enabled:
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    plain = builtins.isinstance(example_inputs, tuple | list)
    inputs = () if example_inputs is None else example_inputs if plain else (example_inputs,)
    func(*inputs, **(example_kwarg_inputs or {}))
    if builtins.isinstance(func, Module):
        return as_script(func, TopLevelTracedModule)
    return script(func)


def trace_module(
    mod: Any,
    inputs: dict[str, Any],
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """As `trace`, after its methods were called with their example inputs."""
    if not _state._enabled:
        return mod
    for name, values in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            trace(method, example_kwarg_inputs=values)
        else:
            trace(method, values)
    return as_script(mod, TopLevelTracedModule)


def interface(obj: Any) -> Any:
    """Marks a class whose methods are what modules have in common."""
    return obj


def script_method(fn: Callable) -> Callable:
    """Marks a method of a ScriptModule."""
    return fn


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """`mod`, a ScriptModule, which must be in eval mode."""
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. "
            "Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """`mod`, in eval mode."""
    return mod.eval() if hasattr(mod, "training") else mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """There is nothing to optimize."""


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """The future of a call, which runs at once."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of a future."""
    return future.wait()


_fork, _wait = fork, wait


def _awaitable(func: Callable, *args: Any, **kwargs: Any) -> _Await:
    return _Await(lambda: func(*args, **kwargs))


def _awaitable_wait(aw: _Await) -> Any:
    return aw.wait()


def _awaitable_nowait(o: Any) -> _Await:
    return _Await(lambda: o)


def _unwrap_optional(x: Any) -> Any:
    """`x`, which is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


_settings = {"onednn": False, "strategy": [("STATIC", 2), ("DYNAMIC", 10)]}


def enable_onednn_fusion(enabled: bool) -> None:
    """Kept; nothing is compiled."""
    _settings["onednn"] = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told."""
    return bool(_settings["onednn"])


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> Any:
    """Kept; returns the one before."""
    before, _settings["strategy"] = _settings["strategy"], strategy
    return before


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block without effect."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block without effect."""
    yield


class strict_fusion(contextlib.nullcontext):
    """A block without effect."""


_ARCHIVE = "script archives are neither read nor written; use torch.save of a state_dict"
save = _missing.function("torch.jit.save", _ARCHIVE)
load = _missing.function("torch.jit.load", _ARCHIVE)

__getattr__, __dir__ = _missing.attributes(__name__)

import taeda.jit.annotations  # noqa: E402, F401  # else the name is that of __future__
