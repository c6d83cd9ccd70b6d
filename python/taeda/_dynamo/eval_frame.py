"""What torch.compile gives: modules and functions that run as they are, under PyTorch's types."""

from __future__ import annotations

import functools
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
        return self._orig_mod(*args, **kwargs)

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
    return lambda model: compiled(model)


def compiled(model: Any) -> Any:
    """The module or function as torch.compile returns it."""
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if isinstance(model, type):
        return model
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if hasattr(model, "_torchdynamo_orig_callable"):
        return model

    @functools.wraps(model)
    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run
