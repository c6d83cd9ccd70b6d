"""PyTorch's overloads of ``aten::to``: the tensor itself where nothing changes, else a copy."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from .spelling import define


def converted(
    self: Tensor,
    dtype: Any,
    device: Any,
    pin_memory: bool | None,
    non_blocking: bool,
    copy: bool,
    memory_format: Any,
) -> Tensor:
    """With another dtype, on another device, where they are given; in pinned memory."""
    made = self.to(
        device or self.device, dtype or self.dtype, non_blocking, copy, memory_format=memory_format
    )
    return made.pin_memory() if pin_memory else made


_TAIL = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"


@define(f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_TAIL}")
def _to_device(
    self: Tensor,
    device: Any,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return self.to(device, dtype, non_blocking, copy, memory_format=memory_format)


@define(f"to.dtype(Tensor(a) self, ScalarType dtype, {_TAIL}")
def _to_dtype(
    self: Tensor,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return self.to(dtype, non_blocking, copy, memory_format=memory_format)


@define(f"to.other(Tensor(a) self, Tensor other, {_TAIL}")
def _to_other(
    self: Tensor,
    other: Tensor,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return self.to(other, non_blocking, copy, memory_format=memory_format)


@define(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    f"device=None, bool? pin_memory=None, {_TAIL}"
)
def _to_dtype_layout(
    self: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    if layout not in (None, self.layout):
        raise RuntimeError(
            f"to(): cannot change the layout from {self.layout} to {layout}; use to_dense() or "
            "to_sparse()"
        )
    return converted(self, dtype, device, pin_memory, non_blocking, copy, memory_format)


def _recorded_lift(self: Tensor) -> Tensor:
    return _lift_fresh._redispatch_below("Autograd", (self,), {})


@define("lift_fresh(Tensor(a) self) -> Tensor(a)", _recorded_lift)
def _lift_fresh(self: Tensor) -> Tensor:
    """The tensor: what PyTorch's traces mark as made by the program."""
    return self


@define("lift_fresh_copy(Tensor self) -> Tensor")
def _lift_fresh_copy(self: Tensor) -> Tensor:
    """A copy of a constant that a trace keeps."""
    return self.clone()
