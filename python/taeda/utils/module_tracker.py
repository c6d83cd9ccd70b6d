"""Which modules a program is in, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import taeda
from taeda.autograd import Variable
from taeda.autograd.graph import register_multi_grad_hook
from taeda.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from taeda.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context in which ``parents`` has the names of the modules that run now: "Global", and
    "Net", "Net.layer" for a call or a backward inside of them.

    >>> tracker = torch.utils.module_tracker.ModuleTracker()
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    >>> seen = []
    >>> _ = net[0].register_forward_pre_hook(lambda *_: seen.extend(sorted(tracker.parents)))
    >>> with tracker:
    ...     _ = net(torch.ones(1, 2))
    >>> seen
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: WeakKeyDictionary = WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._waiting = False  # for the end of a backward

    @property
    def is_bw(self) -> bool:
        """Whether a backward that reached a module is under way."""
        return self._waiting

    def _name(self, module: Any) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        for child_name, child in module.named_children():
            self._names[child] = f"{name}.{child_name}"
        return name

    def _at_gradients(self, values: Any, act: Callable[[], None], mode: str) -> None:
        tensors = [
            t for t in tree_leaves(values) if isinstance(t, taeda.Tensor) and t.requires_grad
        ]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, lambda _: act(), mode=mode))

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._at_gradients(args, lambda: self.parents.discard(name), "all")

    def _after(self, module: Any, args: Any, result: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)

        def enter() -> None:
            self._reset_after_backward()
            self.parents.add(name)

        self._at_gradients(result, enter, "any")

    def _reset_after_backward(self) -> None:
        def reset() -> None:
            self.parents, self._waiting = {"Global"}, False

        if not self._waiting:
            Variable._execution_engine.queue_callback(reset)  # type: ignore[attr-defined]
            self._waiting = True

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *exc_info: Any) -> None:
        for handle in self._handles + self._hooks:
            handle.remove()
        self._hooks.clear()
