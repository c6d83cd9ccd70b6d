"""A step of all parameters of a group at once, by `torch._foreach_add_` and the like.

The arithmetic stays that of an optimizer's `_update`, which is called with `Tensors` and `Numbers`
for tensors and numbers: lists whose methods and operators are functions on lists, as PyTorch's
optimizers call them. On CUDA devices each is a launch for all parameters; a TorchDispatchMode sees
it as one call. Elsewhere parameters are stepped one by one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._C import _torch_dispatch_stack  # type: ignore[attr-defined]
from taeda._foreach import _run

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

    def _apply(self, name: str, *args: Any, value: Any = None, **options: Any) -> Tensors:
        given = args if value is None else (*args, value)
        found = _foreach(name, self, *given, **options)
        return self if name.endswith("_") else Tensors(found)

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(self._apply, name)

    def __neg__(self) -> Tensors:
        return Tensors(_foreach("neg", self))

    def __iadd__(self, number: float) -> Tensors:
        """Of counters."""
        if not _torch_dispatch_stack():
            _C._by_owner["torch"]["_add_one_"](self.items)
        elif self.is_cuda:
            _foreach("add_", self, number)
        else:
            _foreach("add_", self, taeda.tensor(float(number)), alpha=1.0)
        return self

    def __truediv__(self, other: Any) -> Tensors:
        """Of a temporary, which is overwritten."""
        return self.div_(other)

    def __rsub__(self, number: Any) -> Tensors:
        return (-self).add_(number)

    def __rtruediv__(self, number: Any) -> Tensors:
        return self.reciprocal().mul_(number)

    def __rpow__(self, base: Any) -> Tensors:
        return Tensors(_foreach("pow", base, self))

    @property
    def is_cuda(self) -> bool:
        """Whether they are on a CUDA device, where they all are."""
        return self.items[0].is_cuda

    def item(self) -> Any:
        """The value that all have; else, and for modes, that of each."""
        values = [x.item() for x in self.items]
        alike = not _torch_dispatch_stack() and all(x == values[0] for x in values)
        return values[0] if alike else Numbers(values)

    def detach(self) -> Tensors:
        """As for one tensor."""
        return Tensors(x.detach() for x in self.items)

    def clone(self) -> Tensors:
        """As for one tensor."""
        return Tensors(_run(list, self.items, (x.clone() for x in self.items)))

    def is_complex(self) -> bool:
        """False: such groups are not stepped by lists."""
        return False

    is_sparse = False


for _name, _method in (
    ("add", "add"),
    ("radd", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("rmul", "mul"),
    ("pow", "pow"),
):
    setattr(Tensors, f"__{_name}__", functools.partialmethod(Tensors._apply, _method))


def takes(params: Sequence[Tensor], grads: Sequence[Any]) -> bool:
    """Whether these may be stepped by lists."""
    return not any(p.is_complex() or grad.is_sparse for p, grad in zip(params, grads))


def _kind(p: Tensor, state: dict[str, Any]) -> tuple:
    """What parameters of a list have in common: names of the state that they have, and how many
    steps the host knows that they have made, which modes do not ask."""
    step = state.get("step")
    counted = step is not None and not step.is_cuda and not _torch_dispatch_stack()
    names = frozenset(k for k, v in state.items() if v is not None)
    return p.dtype, p.device, names, step.item() if counted else None


def step(
    move: Callable,
    params: Sequence[Tensor],
    grads: Sequence[Any],
    states: Sequence[dict[str, Any]],
    options: dict[str, Any],
) -> None:
    """Calls ``move(parameters, gradients, state, options)`` for those of one kind, with lists for
    tensors; tensors that it adds to the state go to each one's."""
    alike: dict[tuple, list[tuple[Tensor, Any, dict[str, Any]]]] = {}
    for row in zip(params, grads, states):
        alike.setdefault(_kind(row[0], row[2]), []).append(row)
    for (_, _, names, _), rows in alike.items():
        together: dict[str, Any] = {k: Tensors(state[k] for _, _, state in rows) for k in names}
        move(Tensors(p for p, _, _ in rows), Tensors(g for _, g, _ in rows), together, options)
        for name in together.keys() - names:
            for (_, _, state), value in zip(rows, together[name].items):
                state[name] = value
