"""What torch.compile gives: modules and functions under PyTorch's types, which run as they are or
by what a program's own backend makes of their graphs (`recording`)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from taeda.nn import Module

__all__ = ["OptimizedModule", "innermost_fn", "is_compiling", "is_dynamo_supported", "optimize"]


class OptimizedModule(Module):
    """A module that was compiled: it runs `_orig_mod`, whose attributes it shows.

    >>> model = torch.compile(nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """

    _OWN = frozenset({"_orig_mod", "forward", "dynamo_ctx", "_super_module_initialized"})

    def __init__(self, mod: Module, dynamo_ctx: Any = None):
        super().__init__()
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self._orig_mod = mod
        self.__dict__["_super_module_initialized"] = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.dynamo_ctx is None:
            return self._orig_mod(*args, **kwargs)
        call = self.__dict__.get("_call")
        if call is None or call._function is not self._orig_mod:
            call = self.__dict__["_call"] = _ByBackend(self._orig_mod, self.dynamo_ctx)
        return call(*args, **kwargs)

    def __reduce__(self) -> tuple:
        return type(self), (self._orig_mod, self.dynamo_ctx)

    @property
    def _torchdynamo_orig_callable(self) -> Module:
        return self._orig_mod

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        if "_super_module_initialized" in self.__dict__:
            self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in self._OWN or name in type(self).__dict__
        if own or "_super_module_initialized" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._OWN or name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        """That of the module, where it has one; TypeError otherwise."""
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


def is_compiling() -> bool:
    """Whether the code is being compiled: never."""
    return False


def is_dynamo_supported() -> bool:
    """Whether programs can be compiled; they run eagerly."""
    return False


def innermost_fn(fn: Callable) -> Callable:
    """The function that was compiled."""
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn


def optimize(backend: Any = "inductor", **options: Any) -> Callable:
    """A decorator that does what torch.compile does."""
    return lambda model: compiled(model, _own_backend(backend))


def _own_backend(backend: Any) -> Callable | None:
    """The function of a program's own backend, given itself or by a name that it registered."""
    if isinstance(backend, str):
        from taeda import _dynamo

        return _dynamo._backends.get(backend)
    return backend if callable(backend) else None


def compiled(model: Any, backend: Callable | None = None) -> Any:
    """The module or function as torch.compile returns it: run by what the backend makes of its
    graph, eagerly without one."""
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, backend)
    if isinstance(model, type):
        return model
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if hasattr(model, "_torchdynamo_orig_callable"):
        return model
    call = model if backend is None else _ByBackend(model, backend)

    @functools.wraps(model)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run


class _ByBackend:
    """A function run by what a backend makes of its graph; eagerly, with a warning, where there is
    no graph of it."""

    def __init__(self, function: Callable, backend: Callable) -> None:
        self._function, self._backend = function, backend
        self._made: dict[tuple, Callable | None] = {}
        self._kept: list[Any] = []  # what keys name by id

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from taeda._dynamo import config, recording
        from taeda.utils._pytree import tree_flatten

        if config.disable or _recording:
            return self._function(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        modules = recording.modules_of(self._function)
        key = recording.key(self._function, leaves, spec, modules)
        if key not in self._made:
            self._made[key] = self._make(args, kwargs, modules)
            self._kept.append((leaves, [m._parameters for m in modules]))
        call = self._made[key]
        return self._function(*args, **kwargs) if call is None else call(leaves)

    def _make(self, args: tuple, kwargs: dict, modules: list[Module]) -> Callable | None:
        """The backend's function of a call's leaves; None where the function runs eagerly."""
        from taeda._dynamo import exc, recording

        _recording.append(self)
        try:
            recorded = recording.Recorded(self._function, args, kwargs, modules)
        except Exception as error:
            warnings.warn(
                f"torch.compile: {_name(self._function)} runs eagerly, and its backend is not "
                f"called: no graph can be made of it ({type(error).__name__}: {error})",
                stacklevel=4,
            )
            return None
        finally:
            _recording.pop()
        try:
            made = self._backend(recorded.module, recorded.example_inputs)
        except Exception as error:
            raise exc.BackendCompilerFailed(  # type: ignore[attr-defined]
                f"backend={_name(self._backend)!r} raised:\n{type(error).__name__}: {error}"
            ) from error
        return functools.partial(recorded.call, made)


_recording: list[_ByBackend] = []  # what is being recorded: functions in it run as they are


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
