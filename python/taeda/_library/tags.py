"""torch.Tag, and the tags of operators (`OpOverload.tags`)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

__all__ = ["Tag", "checked", "of"]


class Tag(Enum):
    """What is known of an operator, by PyTorch's names and numbers."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


Tag.__module__ = "torch"

#: Those that programs gave: "ns::name.overload" -> tags.
given: dict[str, list] = {}


def checked(tags: Any) -> list:
    """One tag or several, as a list; TypeError for what is none."""
    listed = [tags] if isinstance(tags, Tag) else tags
    if not isinstance(listed, Iterable) or not all(isinstance(tag, Tag) for tag in listed):
        raise TypeError(f"define(): tags must be torch.Tag or a sequence of them, got {tags!r}")
    return sorted(listed, key=int)


def _overloads(name: str) -> list:
    from taeda import _ops

    packet = getattr(_ops.ops.aten, name, None)
    return [] if packet is None else [getattr(packet, o) for o in packet.overloads()]


def _is_view(name: str) -> bool:
    return any(overload.is_view for overload in _overloads(name))


def of(op: Any) -> list:
    """The tags of an operator, in their order."""
    if op.namespace != "aten":
        return [Tag.pointwise] if op._is_pointwise else list(given.get(op.name(), ()))
    from taeda._library.core_operators import CORE

    name, overload, schema = op._opname, op._overloadname, op._schema
    in_place = name.endswith("_") and not name.endswith("__")
    held = {
        Tag.pt2_compliant_tag: True,
        Tag.core: f"{name}.{overload}".removesuffix(".default") in CORE,
        Tag.pointwise: op._is_pointwise,
        Tag.view_copy: name.endswith("_copy") and _is_view(name.removesuffix("_copy")),
        Tag.inplace: in_place,
        Tag.out: any(a.is_out for a in schema.arguments),
    }
    held |= {Tag[said]: True for said in op._table_tags.split()}
    if in_place and _is_view(name.removesuffix("_")):
        held[Tag.inplace_view] = True
    if any(a.name == "generator" for o in _overloads(name) for a in o._schema.arguments):
        held[Tag.nondeterministic_seeded] = True
    return sorted((tag for tag, yes in held.items() if yes), key=int)
