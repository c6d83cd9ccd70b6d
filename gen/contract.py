"""Contracts in C++: the checks of the arguments that run in front of every kernel."""

from __future__ import annotations

from .cpp import Table, translator
from .table import Op

TYPE_MASKS = {
    "all": "kAll",
    "numeric": "kNumeric",
    "real": "kReal",
    "inexact": "kInexact",
    "floating": "kFloating",
    "integral": "kIntegral",
    "integral_bool": "kIntegralBool",
    "bool": "kBool",
}


def contract_lines(op: Op, table: Table) -> list[str]:
    """Checks in front of the device code, in the order: definedness, devices, dtypes, the entry's own."""
    lines = []
    first = next((a.name for a in op.sig.args if a.type == "Tensor"), None)
    for a in op.sig.args:
        if a.is_tensor_list and a.type == "Tensor[]":
            lines.append(f'contract::list_defined("{op.name}", "{a.name}", {a.name});')
            if op.dispatched and op.devices == "same":
                expected = f", {first}.device()" if first else ""
                lines.append(f'contract::same_device("{op.name}", "{a.name}", {a.name}{expected});')
        elif (
            a.is_tensor
            and first
            and a.name != first
            and op.body != "pointwise"
            and op.devices == "same"
        ):
            lines.append(
                f'contract::same_device("{op.name}", "{a.name}", {first}.device(), {a.name});'
            )
    if op.body != "pointwise" and op.types != "all" and first:
        lines.append(
            f'contract::types("{op.name}", contract::{TYPE_MASKS[op.types]}, {first}.dtype());'
        )
    if op.mutates and op.dispatched:
        target = op.sig.args[0].name
        lines.append(
            f"TD_CHECK({target}.storage()->writable(), "
            f'"{op.name}: the memory of the written-to tensor is read-only");'
        )
    for condition, message in op.check:
        kind = "kRuntime"
        for name, code in (
            ("IndexError", "kIndex"),
            ("ValueError", "kValue"),
            ("TypeError", "kType"),
            ("RuntimeError", "kRuntime"),
            ("NotImplementedError", "kNotImplemented"),
        ):
            if message.startswith(name + ":"):
                kind, message = code, message.removeprefix(name + ":").strip()
        t = translator(op, table)
        text = t.message(message)
        lines.append(f"TD_CHECK_AS(ErrorKind::{kind}, {t.condition(condition)}, {text});")
    return lines


def wrap_lines(op: Op) -> list[str]:
    """Definedness of required tensors and wrapping of dims, in the entry function."""
    lines = []
    for a in op.sig.args:
        if a.type == "Tensor":
            lines.append(f'contract::defined("{op.name}", "{a.name}", {a.name});')
        if a.type == "int[]" and a.repeat > 1 and a.name != "output_size":
            lines.append(
                f"const DimVector {a.name}_each = expr::one_for_all({a.name}, {a.repeat});"
            )
            lines.append(f"{a.name} = {a.name}_each;")
    first = next((a for a in op.sig.args if a.is_tensor or a.is_tensor_list), None)
    for a in op.sig.args:
        if a.type not in ("dim", "dim?", "dims", "dims?") or first is None:
            continue
        ndim = (
            f"{first.name}.dim()"
            if first.is_tensor
            else f"({first.name}.empty() ? 0 : {first.name}[0].dim())"
        )
        if a.type.startswith("dims"):
            lines.append(
                f'const auto {a.name}_wrapped = contract::wrap_dims("{op.name}", {a.name}, {ndim});'
            )
            lines.append(
                f"{a.name} = {'expr::opt_ints' if a.optional else 'IntSpan'}({a.name}_wrapped);"
            )
        else:
            lines.append(f"{a.name} = contract::wrap_dim({a.name}, {ndim});")
    return lines
