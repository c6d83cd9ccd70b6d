"""Contracts in C++: the checks of the arguments that run in front of every kernel."""

from __future__ import annotations

from .cpp import Table, translator
from .op import Op
from .schema import Argument
from .statements import ERRORS
from .text import enumerator, quoted


def type_mask(op: Op) -> str:
    """The set of dtypes that the entry takes: `integral_bool` is contract::kIntegralBool."""
    return f"contract::{enumerator(op.types)}"


def contract_lines(op: Op, table: Table) -> list[str]:
    """Checks in front of the device code: definedness, devices, dtypes, then the entry's own."""
    first = op.sig.first_tensor
    lines = [line for a in op.sig.args for line in _argument_lines(op, a, first)]
    unchecked = "any" if op.body == "kernel" else "all"  # what others call checks for them
    if op.body != "pointwise" and op.types not in ("any", unchecked) and first:
        lines.append(f'contract::types("{op.name}", {type_mask(op)}, {first}.dtype());')
    if op.mutates and op.dispatched:
        message = quoted(f"{op.name}: the memory of the written-to tensor is read-only")
        lines.append(f"TD_CHECK({op.sig.args[0].name}.storage()->writable(), {message});")
    t = translator(op, table)
    for condition, message in op.check:
        error, _, text = message.partition(":")
        kind, text = (ERRORS[error], text.strip()) if error in ERRORS else ("kRuntime", message)
        shown = t.message(text)
        lines.append(f"TD_CHECK_AS(ErrorKind::{kind}, {t.condition(condition)}, {shown});")
    return lines


def _argument_lines(op: Op, a: Argument, first: str | None) -> list[str]:
    given = f'"{op.name}", "{a.name}"'
    compared = op.devices == "same" and op.body != "pointwise"
    if a.type == "Tensor[]":
        expected = f", {first}.device()" if first else ""
        same = [f"contract::same_device({given}, {a.name}{expected});"]
        checked = compared and op.dispatched
        return [f"contract::list_defined({given}, {a.name});", *(same if checked else [])]
    if compared and a.is_tensor and first and a.name != first:
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
    if not op.sig.tensors:
        return lines
    first = op.sig.tensors[0].name
    ndim = f"{first}.dim()"
    if op.sig.tensors[0].is_tensor_list:
        ndim = f"({first}.empty() ? 0 : {first}[0].dim())"
    for a in op.sig.args:
        if a.base.name == "dim":
            lines.append(f"{a.name} = contract::wrap_dim({a.name}, {ndim});")
        elif a.base.name == "dims":
            span = "expr::opt_ints" if a.optional else "IntSpan"
            wrapped = f'contract::wrap_dims("{op.name}", {a.name}, {ndim})'
            lines.append(f"const auto {a.name}_wrapped = {wrapped};")
            lines.append(f"{a.name} = {span}({a.name}_wrapped);")
    return lines
