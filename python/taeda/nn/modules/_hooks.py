"""Hooks that apply to every module of the process.

Call hooks (forward, forward-pre, backward, backward-pre) share one ordered dictionary, so that a
module call without hooks looks at a single object to know that there are none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from taeda.utils.hooks import RemovableHandle

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class GlobalHook(NamedTuple):
    kind: str  # forward_pre, forward, backward_pre, backward
    hook: Callable
    with_kwargs: bool = False
    always_call: bool = False


global_call_hooks: OrderedDict[int, GlobalHook] = OrderedDict()
global_buffer_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
global_module_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
global_parameter_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
# Whether the global backward hooks are of the full kind; None while there has been none.
global_backward_is_full: bool | None = None


def global_hooks(kind: str) -> Iterator[tuple[int, GlobalHook]]:
    """The (id, hook) pairs of one kind in the order of registration."""
    return (item for item in global_call_hooks.items() if item[1].kind == kind)


def _register(hooks: OrderedDict, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, buffer)`` runs at each ``register_buffer``; it may return another."""
    return _register(global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, submodule)`` runs when a submodule is added; it may return another."""
    return _register(global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, param)`` runs at each ``register_parameter``; it may return another."""
    return _register(global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, args)`` runs before every ``forward``; it may return the arguments to use."""
    return _register(global_call_hooks, GlobalHook("forward_pre", hook))


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """``hook(module, args, output)`` runs after every ``forward``; it may return another output."""
    return _register(global_call_hooks, GlobalHook("forward", hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_output)`` runs before every module's backward."""
    return _register(global_call_hooks, GlobalHook("backward_pre", hook))


def _register_backward(hook: Callable, full: bool) -> RemovableHandle:
    global global_backward_is_full
    if global_backward_is_full is (not full):
        first, second = ("regular", "full") if full else ("full", "regular")
        raise RuntimeError(
            f"Cannot use both {first} backward hooks and {second} backward hooks as a global "
            "Module hook. Please use only one of them."
        )
    global_backward_is_full = full
    return _register(global_call_hooks, GlobalHook("backward", hook))


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The old form of ``register_module_full_backward_hook``, which sees only the last node."""
    return _register_backward(hook, full=False)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_input, grad_output)`` runs at every module's backward."""
    return _register_backward(hook, full=True)
