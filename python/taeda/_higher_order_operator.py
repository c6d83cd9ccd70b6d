"""HigherOrderOperator: an operator that takes functions, with an implementation a dispatch key."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda._dispatch_keys import DispatchKey
from taeda.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from taeda.utils._pytree import tree_leaves

_higher_order_ops: dict[str, Any] = {}


class HigherOrderOperator(abc.ABC):
    """An operator that takes functions. Subclasses write ``__call__``, or leave it to the
    implementations that `py_impl` registers by dispatch key or by class of TorchDispatchMode.

    A call runs the first there is for: the innermost mode; Autograd, where gradients are recorded
    of a tensor; the tensors' device; CompositeExplicitAutograd, CompositeImplicitAutograd.
    NotImplementedError without any.

    >>> from torch._ops import HigherOrderOperator
    >>> class Twice(HigherOrderOperator):
    ...     def __init__(self):
    ...         super().__init__("twice")
    ...     def __call__(self, f, x):
    ...         return super().__call__(f, x)
    >>> twice = Twice()
    >>> @twice.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
    ... def run(f, x):
    ...     return f(f(x))
    >>> twice(torch.sqrt, torch.tensor(16.0))
    tensor(2.)
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self._ns, self._cacheable = "higher_order", cacheable
        self.__module__ = "torch._ops.higher_order"
        self.py_kernels: dict[Any, Callable] = {}
        self.non_fallthrough_keys: set[Any] = set(DispatchKey)
        _higher_order_ops[name] = self

    @property
    def namespace(self) -> str:
        """ "higher_order" """
        return self._ns

    def cacheable(self) -> bool:
        """Whether a compiler may keep what it makes of a call."""
        return self._cacheable

    def py_impl(self, k: Any) -> Callable[[Callable], Callable]:
        """Decorator: what runs for a dispatch key or a class of modes."""

        def register(fn: Callable) -> Callable:
            if k in self.py_kernels:
                raise AssertionError(f"{self._name}: there is an implementation for {k}")
            self.py_kernels[k] = fn
            return fn

        return register

    def fallthrough(self, dispatch_key: Any) -> None:
        """A key that calls pass by."""
        self.non_fallthrough_keys.discard(dispatch_key)

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether `py_impl` has registered one."""
        return k in self.py_kernels

    def has_kernel_for_any_dispatch_key(self, ks: Any) -> bool:
        """Whether there is one for a key of a DispatchKeySet."""
        return any(ks.has(k) for k in self.py_kernels if isinstance(k, DispatchKey))

    def _keys(self, leaves: list) -> list[Any]:
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        found: list[Any] = []
        if taeda.is_grad_enabled() and any(x.requires_grad for x in tensors):
            found.append(DispatchKey["Autograd"])
        devices = {x.device.type: None for x in tensors} or {"cpu": None}
        found += [
            DispatchKey[n] for n in (d.upper() for d in devices) if n in DispatchKey.__members__
        ]
        if any(x.is_meta for x in tensors):
            found.append(DispatchKey["Meta"])
        # Without a gradient of their own, all of it is recorded.
        last = "CompositeExplicitAutograd CompositeImplicitAutograd Autograd".split()
        return [*found, *(DispatchKey[name] for name in last)]

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs an implementation: what the subclass's own ends with."""
        for mode in reversed(_get_current_dispatch_mode_stack()):
            kernel = self.py_kernels.get(type(mode))
            if kernel is not None:
                return self._in_mode(mode, kernel, args, kwargs)
        for key in self._keys(tree_leaves((args, kwargs))):
            if key in self.py_kernels and key in self.non_fallthrough_keys:
                return self.py_kernels[key](*args, **kwargs)
        raise NotImplementedError(
            f"{self._name}: there is no implementation for these arguments; register one with "
            "py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)"
        )

    @staticmethod
    def _in_mode(mode: TorchDispatchMode, kernel: Callable, args: tuple, kwargs: dict) -> Any:
        """The implementation for a mode, with the mode taken away while it runs."""
        from taeda.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            return kernel(mode, *args, **kwargs)

    def __str__(self) -> str:
        return self.name()

    def name(self) -> str:
        """The name that it was made with."""
        return self._name
