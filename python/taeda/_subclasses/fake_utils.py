"""What an operator makes of fake tensors: the exceptions, the device of its results, and which
operators no shape can be given for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

if TYPE_CHECKING:
    from taeda._ops import OpOverload

aten = taeda.ops.aten


class UnsupportedFakeTensorException(RuntimeError):
    """The tensor has no fake form."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """The operator's tensors are on different devices."""

    def __init__(self, func: OpOverload, common_device: Any, device: Any) -> None:
        self.func, self.common_device, self.device = func, common_device, device
        super().__init__(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{common_device} and {device}!"
        )


@dataclass
class DynamicOutputShapeException(RuntimeError):
    """The sizes of the operator's result depend on values."""

    func: OpOverload


@dataclass
class DataDependentOutputException(RuntimeError):
    """The operator's result is made of values."""

    func: OpOverload


@dataclass
class UnsupportedOperatorException(RuntimeError):
    """The operator computes without a kernel for the device meta."""

    func: OpOverload


_OF_VALUES = frozenset("_local_scalar_dense equal allclose is_nonzero".split())
#: Operators of which only the first tensor says where the result is.
_FIRST_DECIDES = frozenset(
    "copy_ index index_put index_put_ _index_put_impl_ _to_copy to_device".split()
)
_RANDOM = ("rand", "bernoulli", "multinomial", "normal", "uniform", "dropout", "exponential")


def check_shapes_known(func: OpOverload, args: tuple) -> None:
    """Raises where the result depends on values."""
    name = func._opname
    if name in _OF_VALUES:
        raise DataDependentOutputException(func)
    if name == "index" and has_mask(args):
        raise DynamicOutputShapeException(aten.nonzero.default)


def has_mask(args: tuple) -> bool:
    """Whether a tensor is indexed by one of truth values."""
    masks = (taeda.bool, taeda.uint8)
    return any(isinstance(i, Tensor) and i.dtype in masks for i in args[1])


def is_random(func: OpOverload) -> bool:
    """Whether a second call gives other values."""
    return any(word in func._opname for word in _RANDOM)


def common_device(func: OpOverload, tensors: list) -> Any:
    """Where the results are: on the device of the arguments; numbers' tensors on the CPU join any.
    FakeTensorDeviceMismatchError for two devices."""
    if func._opname in _FIRST_DECIDES:
        return tensors[0].device
    found, by_number = None, False
    for t in tensors:
        number = t.device.type == "cpu" and t.dim() == 0
        if found is None or (by_number and t.device != found):
            found, by_number = t.device, number
        elif t.device == found:
            by_number &= number
        elif not number and not (func._opname == "add_" and "meta" in (found.type, t.device.type)):
            raise FakeTensorDeviceMismatchError(func, found, t.device)
    return found


def describe_call(func: OpOverload, args: tuple, kwargs: dict) -> str:
    """aten.add.Tensor(tensor([...], size=(2,)), 1)"""

    def text(value: Any) -> str:
        if isinstance(value, Tensor) and not hasattr(value, "fake_mode"):
            return f"tensor([...], size={tuple(value.shape)})"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(text, value))}]"
        return repr(value)

    given = [*map(text, args), *(f"{name}={text(value)}" for name, value in kwargs.items())]
    return f"{func}({', '.join(given)})"
