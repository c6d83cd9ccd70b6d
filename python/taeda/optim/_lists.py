"""A step of all parameters of a group at once: what ``foreach=True`` means to a TorchDispatchMode.

The arithmetic stays that of an optimizer's `_update`, which is called with `Tensors` and `Numbers`
for tensors and numbers: lists whose methods and operators are `torch._foreach_add_` and the like,
as PyTorch's optimizers call them. Without a mode the parameters are stepped one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["Tensors", "step", "takes"]


class Numbers(list):
    """A number for each tensor, with the arithmetic of one."""

    def __neg__(self) -> Numbers:
        return Numbers(-x for x in self)


def _elementwise(function: Callable, swapped: bool = False) -> Callable:
    def method(self: Numbers, other: Any) -> Numbers:
        others = other if isinstance(other, list) else [other] * len(self)
        pairs = zip(others, self) if swapped else zip(self, others)
        return Numbers(function(x, y) for x, y in pairs)

    return method


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Numbers, f"__{_name}__", _elementwise(getattr(operator, _name)))
    setattr(Numbers, f"__r{_name}__", _elementwise(getattr(operator, _name), swapped=True))


def _foreach(name: str, *args: Any, **options: Any) -> Any:
    """torch._foreach_NAME, of tensors and numbers as lists."""
    function = getattr(taeda, f"_foreach_{name}")
    return function(*map(_items, args), **options)


def _items(x: Any) -> Any:
    return x.items if isinstance(x, Tensors) else list(x) if isinstance(x, Numbers) else x


class Tensors:
    """The tensors of a list as one."""

    def __init__(self, items: Iterable[Tensor]) -> None:
        self.items = list(items)

    def __getattr__(self, name: str) -> Callable:
        def method(*args: Any, value: Any = None, **options: Any) -> Tensors:
            given = args if value is None else (*args, value)
            found = _foreach(name, self, *given, **options)
            return self if name.endswith("_") else Tensors(found)

        return method

    def __neg__(self) -> Tensors:
        return Tensors(_foreach("neg", self))

    def __truediv__(self, other: Any) -> Tensors:
        """Of a temporary, which is overwritten."""
        _foreach("div_", self, other)
        return self

    def __iadd__(self, number: float) -> Tensors:
        _foreach("add_", self, taeda.tensor(float(number)), alpha=1.0)
        return self

    def item(self) -> Numbers:
        """The value of each."""
        return Numbers(x.item() for x in self.items)

    def detach(self) -> Tensors:
        """As for one tensor."""
        return Tensors(x.detach() for x in self.items)

    def clone(self) -> Tensors:
        """As for one tensor."""
        return Tensors(x.clone() for x in self.items)

    def is_complex(self) -> bool:
        """False: such groups are not stepped by lists."""
        return False

    is_sparse = False


def takes(params: list[Tensor]) -> bool:
    """Whether these may be stepped by lists."""
    return not any(p.is_complex() or (p.grad is not None and p.grad.is_sparse) for p in params)


def step(
    move: Callable, params: list[Tensor], states: list[dict[str, Any]], options: dict[str, Any]
) -> None:
    """Calls ``move(parameters, gradients, state, options)`` for those of one dtype, device and kind
    of state, with lists for tensors; tensors that it adds to the state go to each one's."""
    alike: dict[Any, list[tuple[Tensor, dict[str, Any]]]] = {}
    for p, state in zip(params, states):
        key = p.dtype, p.device, frozenset(k for k, v in state.items() if v is not None)
        alike.setdefault(key, []).append((p, state))
    for (_, _, names), rows in alike.items():
        together: dict[str, Any] = {k: Tensors(state[k] for _, state in rows) for k in names}
        grads: list[Any] = [p.grad for p, _ in rows]
        move(Tensors(p for p, _ in rows), Tensors(grads), together, options)
        for name in together.keys() - names:
            for (_, state), value in zip(rows, together[name].items):
                state[name] = value
