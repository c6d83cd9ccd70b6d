"""Contracts in C++: the checks of the arguments that run in front of every kernel."""

from __future__ import annotations

from .cpp import Table, translator
from .op import Op
from .schema import Argument
from .statements import ERRORS
from .text import quoted


def type_mask(op: Op) -> str:
    """The set of dtypes that the entry takes: `integral_bool` is contract::kIntegralBool."""
    return "contract::k" + op.types.title().replace("_", "")


def contract_lines(op: Op, table: Table) -> list[str]:
    """Checks in front of the device code, in the order: definedness, devices, dtypes, the entry's own."""
    lines = []
    first = next((a.name for a in op.sig.args if a.type == "Tensor"), None)
    name = quoted(op.name)
    for a in op.sig.args:
        lines += _argument_lines(op, a, first)
    unchecked = "any" if op.body == "kernel" else "all"  # what others call checks for them
    if op.body != "pointwise" and op.types not in ("any", unchecked) and first:
        lines.append(f"contract::types({name}, {type_mask(op)}, {first}.dtype());")
    if op.mutates and op.dispatched:
        message = quoted(f"{op.name}: the memory of the written-to tensor is read-only")
        lines.append(f"TD_CHECK({op.sig.args[0].name}.storage()->writable(), {message});")
    for condition, message in op.check:
        error, colon, rest = message.partition(":")
        kind, text = "kRuntime", message
        if colon and error in ERRORS:
            kind, text = ERRORS[error], rest.strip()
        t = translator(op, table)
        shown = t.message(text)
        lines.append(f"TD_CHECK_AS(ErrorKind::{kind}, {t.condition(condition)}, {shown});")
    return lines


def _argument_lines(op: Op, a: Argument, first: str | None) -> list[str]:
    given = f'"{op.name}", "{a.name}"'
    if a.type == "Tensor[]":
        lines = [f"contract::list_defined({given}, {a.name});"]
        if op.dispatched and op.devices == "same":
            expected = f", {first}.device()" if first else ""
            lines.append(f"contract::same_device({given}, {a.name}{expected});")
        return lines
    compared = a.is_tensor and first and a.name != first
    if compared and op.body != "pointwise" and op.devices == "same":
        return [f"contract::same_device({given}, {first}.device(), {a.name});"]
    return []


def wrap_lines(op: Op) -> list[str]:
    """Definedness of required tensors and wrapping of dims, in the entry function."""
    lines = []
    for a in op.sig.args:
        if a.type == "Tensor":
            lines.append(f'contract::defined("{op.name}", "{a.name}", {a.name});')
        if a.one_for_all:
            each = f"expr::one_for_all({a.name}, {a.repeat})"
            lines += [f"const DimVector {a.name}_each = {each};", f"{a.name} = {a.name}_each;"]
    first = next((a for a in op.sig.args if a.is_tensor or a.is_tensor_list), None)
    if first is None:
        return lines
    ndim = f"{first.name}.dim()"
    if first.is_tensor_list:
        ndim = f"({first.name}.empty() ? 0 : {first.name}[0].dim())"
    for a in op.sig.args:
        if a.base.name == "dim":
            lines.append(f"{a.name} = contract::wrap_dim({a.name}, {ndim});")
        elif a.base.name == "dims":
            span = "expr::opt_ints" if a.optional else "IntSpan"
            wrapped = f'contract::wrap_dims("{op.name}", {a.name}, {ndim})'
            lines.append(f"const auto {a.name}_wrapped = {wrapped};")
            lines.append(f"{a.name} = {span}({a.name}_wrapped);")
    return lines
