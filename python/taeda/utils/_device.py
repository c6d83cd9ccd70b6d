"""The default device: ``with torch.device(...)`` and ``torch.set_default_device``.

Both are a mode that gives factory functions a ``device`` where the program gave none. Without one
nothing is looked up: new tensors are on the CPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda.overrides import TorchFunctionMode

__all__ = ["DeviceContext", "get_default_device", "set_default_device"]

# Functions in Python that make tensors; the table knows the others.
_PYTHON_FACTORIES = ("tensor", "as_tensor", "asarray")


class _ThreadState(threading.local):
    default: DeviceContext | None = None  # what set_default_device has entered

    def __init__(self) -> None:
        self.scopes: list[DeviceContext] = []


_state = _C._carry_thread_local(_ThreadState())
_factories: set[Callable] = set()


def _factory_functions() -> set[Callable]:
    if not _factories:
        # PyTorch's normal and range do not look at the default.
        names = {*_C._factories(), *_PYTHON_FACTORIES} - {"normal", "range"}
        _factories.update(getattr(taeda, name) for name in names if hasattr(taeda, name))
        _factories.update(_C._by_owner["signal.windows"].values())
    return _factories


class DeviceContext(TorchFunctionMode):
    """In the block, new tensors are on ``device`` unless the program says where."""

    def __init__(self, device: Any) -> None:
        self.device = taeda.device(device)

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _factory_functions() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def enter(device: Any) -> Any:
    """What ``device.__enter__`` does."""
    scope = DeviceContext(device)
    scope.__enter__()
    _state.scopes.append(scope)
    return device


def leave(exc_info: Any) -> None:
    """What ``device.__exit__`` does."""
    _state.scopes.pop().__exit__()


def set_default_device(device: Any) -> None:
    """Makes ``device`` the one where this thread's new tensors are; None for the CPU again.

    Call it outside of ``with torch.device(...)`` blocks.

    >>> import taeda as torch
    >>> torch.set_default_device("meta")
    >>> torch.ones(2).device
    device(type='meta')
    >>> torch.set_default_device(None)
    """
    if _state.default is not None:
        _state.default.__exit__()
        _state.default = None
    if device is not None:
        context = DeviceContext(device)
        context.__enter__()
        _state.default = context


def get_default_device() -> Any:
    """Where this thread's new tensors are.

    >>> import taeda as torch
    >>> torch.get_default_device()
    device(type='cpu')
    >>> with torch.device("meta"):
    ...     print(torch.get_default_device())
    meta
    """
    if _state.scopes:
        return _state.scopes[-1].device
    return taeda.device("cpu") if _state.default is None else _state.default.device
