"""A step of all parameters of a group at once, by `torch._foreach_add_` and the like.

The arithmetic stays that of an optimizer's `_update`, which is called with `Tensors` and `Numbers`
for tensors and numbers: lists whose methods and operators are functions on lists, as PyTorch's
optimizers call them. On CUDA devices each is a launch for all parameters; a TorchDispatchMode sees
it as one call. Elsewhere parameters are stepped one by one.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._C import _torch_dispatch_stack  # type: ignore[attr-defined]
from taeda._foreach import _run

from ._helpers import _default_to_fused_or_foreach

__all__ = ["Tensors", "step"]


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
    """The tensors of a list as one. Those of one element each on a CUDA device are numbers, which
    may stand where methods of tensors take `value` and `alpha`."""

    def __init__(self, items: Iterable[Tensor]) -> None:
        self.items = list(items)

    def _apply(self, name: str, *args: Any, value: Any = None, **options: Any) -> Tensors:
        if isinstance(value, Tensors):
            args, value = (args[0] * value, *args[1:]), None
        if isinstance(options.get("alpha"), (Tensors, Numbers)):
            args = (args[0] * options.pop("alpha"),)
        given = args if value is None else (*args, value)
        found = _foreach(name, self, *given, **options)
        return self if name.endswith("_") else Tensors(found)

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(self._apply, name)

    def __neg__(self) -> Tensors:
        return Tensors(_foreach("neg", self))

    def __truediv__(self, other: Any) -> Tensors:
        """Of a temporary, which is overwritten."""
        return self.div_(other)

    def __imul__(self, other: Any) -> Tensors:
        return self.mul_(other)

    def __iadd__(self, number: float) -> Tensors:
        """Of counters."""
        if not _torch_dispatch_stack():
            _C._by_owner["torch"]["_add_one_"](self.items)
        elif self.is_cuda:
            _foreach("add_", self, number)
        else:
            _foreach("add_", self, taeda.tensor(float(number)), alpha=1.0)
        return self

    def __rsub__(self, number: Any) -> Tensors:
        return (-self).add_(number)

    def __rtruediv__(self, number: Any) -> Tensors:
        return self.reciprocal().mul_(number)

    def __rpow__(self, base: Any) -> Tensors:
        return Power(base, self)

    @property
    def is_cuda(self) -> bool:
        """Whether they are on a CUDA device, where they all are."""
        return self.items[0].is_cuda

    def item(self) -> Any:
        """The values on the CPU, one where all are the same and no mode looks; on a device, where
        nobody waits for them, themselves."""
        if self.is_cuda:
            return Kept(self.items)
        values = [x.item() for x in self.items]
        alike = not _torch_dispatch_stack() and all(x == values[0] for x in values)
        return values[0] if alike else Numbers(values)

    def fill_(self, value: Any) -> Tensors:
        """Sets all elements."""
        return self.zero_().add_(value)

    def detach(self) -> Tensors:
        """As for one tensor."""
        return Tensors(x.detach() for x in self.items)

    def clone(self) -> Tensors:
        """As for one tensor."""
        return Tensors(_run(list, self.items, (x.clone() for x in self.items)))

    def is_complex(self) -> bool:
        """False: complex numbers are pairs here."""
        return False

    is_sparse = False


for _name in ("add", "radd", "sub", "mul", "rmul", "pow"):  # of either side by one function
    _operator = functools.partialmethod(Tensors._apply, _name.removeprefix("r"))
    setattr(Tensors, f"__{_name}__", _operator)


class Kept(Tensors):
    """What is no temporary."""

    def __truediv__(self, other: Any) -> Tensors:
        return self.div(other)


class Power(Tensors):
    """base^exponents, for numbers of the device."""

    def __init__(self, base: Any, exponents: Tensors) -> None:
        self.base, self.exponents = base, exponents

    @functools.cached_property
    def items(self) -> list[Tensor]:  # type: ignore[override]
        """Computed when they are asked for."""
        return list(_foreach("pow", self.base, self.exponents))

    def __rsub__(self, number: Any) -> Tensors:
        if number != 1 or not isinstance(self.base, float) or self.base == 0:
            return super().__rsub__(number)
        # 1 - beta^t is small at first, and float32 would round beta^t to less of it.
        return self.exponents.mul(math.log(self.base)).expm1_().neg_()


def _kind(p: Tensor, state: dict[str, Any]) -> tuple:
    """What parameters of a list have in common: names of the state that they have, and how many
    steps the host knows that they have made, which modes do not ask."""
    step = state.get("step")
    names = frozenset(k for k, v in state.items() if v is not None)
    if step is None or step.is_cuda or _torch_dispatch_stack():
        return p.dtype, p.device, names
    return p.dtype, p.device, names, step.item()


def _group(optimizer: Any, params: Sequence[Tensor], options: dict[str, Any]) -> Callable | None:
    """By what parameters are put together; None where there are no lists."""
    foreach = options.get("foreach")
    if _torch_dispatch_stack():
        return _kind if foreach and optimizer._by_lists else None
    differentiable = options.get("differentiable")
    if not optimizer._by_lists_on_cuda or not params[0].is_cuda or differentiable:
        return None
    if foreach is None:
        foreach = _default_to_fused_or_foreach(list(params), False)[1]
    return _kind if foreach else lambda p, state: id(p)


def _real(x: Any) -> Any:
    return taeda.view_as_real(x.resolve_conj()) if x.is_complex() else x


def step(
    optimizer: Any,
    params: Sequence[Tensor],
    grads: Sequence[Any],
    states: Sequence[dict[str, Any]],
    options: dict[str, Any],
) -> bool:
    """Makes a step of `optimizer`, with lists for tensors of those of one kind; one by one they are
    lists, too, since these know numbers of a device. False where the step is not made: what
    gradients are recorded for, and sparse ones, are not in lists."""
    kind = _group(optimizer, params, options)
    if kind is None or any(grad.is_sparse for grad in grads):
        return False
    is_seen = bool(_torch_dispatch_stack())
    if is_seen and any(p.is_complex() for p in params):
        return False
    alike: dict[Any, list[tuple[Tensor, Any, dict[str, Any]]]] = {}
    for row in zip(params, grads, states):
        alike.setdefault(kind(row[0], row[2]), []).append(row)
    for rows in alike.values():
        _step(optimizer, rows, options)
    return True


def _step(optimizer: Any, rows: list[tuple], options: dict[str, Any]) -> None:
    names = [k for k, v in rows[0][2].items() if v is not None]
    state: dict[str, Any] = {k: Kept(_real(s[k]) for _, _, s in rows) for k in names}
    there = {
        k: tuple(_option(x, rows) for x in v) if isinstance(v, tuple) else _option(v, rows)
        for k, v in options.items()
    }
    params, grads = (Kept(map(_real, column)) for column in [*zip(*rows)][:2])
    if optimizer._counts_steps:
        state["step"] += 1
    optimizer._update_lists(params, -grads if options.get("maximize") else grads, state, there)
    for name in state.keys() - names:
        for (p, _, own), value in zip(rows, state[name].items):
            own[name] = taeda.view_as_complex(value) if p.is_complex() else value


def _option(value: Any, rows: list[tuple]) -> Any:
    return Kept([value] * len(rows)) if isinstance(value, Tensor) else value
