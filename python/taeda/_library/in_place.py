"""Questions about operators: whether they write their first argument, or give views of it."""

from __future__ import annotations

from typing import Any


def is_inplace(func: Any) -> bool:
    """Whether an overload of torch.ops is one in place: ``add_``, or ``__iadd__``.

    >>> from torch._library.in_place import is_inplace
    >>> is_inplace(torch.ops.aten.add_.Tensor), is_inplace(torch.ops.aten.add.Tensor)
    (True, False)
    """
    name = func.overloadpacket.__name__
    if name.startswith("__") and name.endswith("__"):
        return name.startswith("__i")
    return name.endswith("_")


def is_view_fn(func: Any) -> bool:
    """Whether an overload gives views of its first argument: ``transpose``, ``split``; True also
    of those that copy where there is no view, ``reshape`` and the like."""
    arguments = func._schema.arguments
    alias = arguments[0].alias_info if arguments else None
    gives = any(result.alias_info is not None for result in func._schema.returns)
    return alias is not None and not alias.is_write and gives


def is_inplace_view_fn(func: Any) -> bool:
    """Whether an overload changes the sizes or strides of its argument: ``transpose_``."""
    from taeda import ops

    name = func.overloadpacket.__name__
    packet = getattr(ops.aten, name[:-1], None) if is_inplace(func) else None
    return packet is not None and any(
        is_view_fn(getattr(packet, overload)) for overload in packet.overloads()
    )
