"""C++ of the operators: declarations, contracts, device functions, dispatch tables, variants.

For every entry a function ``op::IDENT`` is generated; the public overloads and Tensor methods call
it. A dispatched operator's ``op::IDENT`` wraps dimensions, collects keys and jumps through a
constant table; its device function checks the contract, allocates and launches. A composite's
``op::IDENT`` is its translated ``expr``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .expr import Translator, Value, type_of
from .saved import keeps_first_input
from .schema import Argument, Signature
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


class Table:
    """The loaded operators, findable by name."""

    def __init__(self, ops: list[Op]):
        self.ops = ops
        self._by_name: dict[str, list[Op]] = defaultdict(list)
        for op in ops:
            self._by_name[op.name].append(op)

    def overloads(self, name: str) -> list[Signature]:
        found = [op.sig for op in self._by_name.get(name, [])]
        if not found and name.endswith("_") and name[:-1] in self._by_name:
            found = [
                inplace_signature(op) for op in self._by_name[name[:-1]] if "inplace" in op.variants
            ]
        return found

    def overload_index(self, op: Op) -> int:
        return self._by_name[op.name].index(op)


def inplace_signature(op: Op) -> Signature:
    """The signature of NAME_ for an entry NAME."""
    args = [Argument(**{**a.__dict__, "mutated": i == 0}) for i, a in enumerate(op.sig.args)]
    return Signature(op.name + "_", op.sig.overload, args, op.sig.returns, op.sig.text)


def parameters(sig: Signature, defaults: bool = False) -> str:
    parts = []
    for a in sig.args:
        text = f"{a.cpp_type} {a.name}"
        if defaults and a.cpp_default is not None:
            text += f" = {a.cpp_default}"
        parts.append(text)
    return ", ".join(parts)


def names(sig: Signature) -> str:
    return ", ".join(a.name for a in sig.args)


def environment(sig: Signature) -> dict[str, Value]:
    return {a.name: Value(a.name, type_of(a.type)) for a in sig.args}


def internal_parameters(op: Op) -> str:
    """Parameters of the functions behind the dispatch table."""
    into = "const Tensor& into, " if op.body == "pointwise" else ""
    return "KeySet keys, " + into + parameters(op.sig)


def internal_names(op: Op, keys: str = "keys", into: str = "into") -> str:
    middle = [into] if op.body == "pointwise" else []
    return ", ".join([keys, *middle, *(a.name for a in op.sig.args)])


INTERNAL = '[[gnu::visibility("hidden")]]'  # not among the library's dynamic symbols


def declarations(op: Op) -> Iterator[tuple[str, str, str]]:
    """Namespace, name and declaration of every function that an entry stands for."""
    result, plain = op.sig.return_cpp, parameters(op.sig)
    yield "op", op.ident, f"{result} {op.ident}({plain});"
    if "inplace" in op.variants:
        yield "op", f"{op.ident}_inplace", f"Tensor {op.ident}_inplace({plain});"
    if "out" in op.variants:
        given = ([plain] if plain else []) + [f"const Tensor& {o}" for o in out_names(op)]
        yield "op", f"{op.ident}_out", f"{result} {op.ident}_out({', '.join(given)});"
    if op.body == "cpp":
        yield "impl", impl_name(op), f"{INTERNAL} {result} {impl_name(op)}({plain});"
    if op.dispatched:
        params = internal_parameters(op)
        for layer in ("redispatch", "autograd_layer"):
            yield layer, op.ident, f"{INTERNAL} {result} {op.ident}({params});"
        # Forward mode is rare: compiled for size.
        yield "forward_layer", op.ident, f"{INTERNAL} [[gnu::cold]] {result} {op.ident}({params});"
    if op.expr and op.body != "expr":
        yield "definition", op.ident, f"{result} {op.ident}({plain});"


def public_header(table: Table) -> str:
    """taeda/ops.h: one overload set a name, and namespace op with one name an overload."""
    unique, overloads = [], []
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        unique += [text for space, _, text in declarations(op) if space == "op"]
        shown = _defaults_that_stay_unique(op, table)
        key = (op.name, *(a.cpp_type for a in op.sig.args))
        public = (
            key not in seen
        )  # of two overloads that C++ cannot tell apart the first is the public one
        seen.add(key)
        doc = (op.doc.strip().splitlines() or [""])[0]
        if public:
            overloads.append(
                f"// {doc}\ninline {op.sig.return_cpp} {op.name}({parameters(op.sig, shown)}) "
                f"{{ return op::{op.ident}({names(op.sig)}); }}"
            )
        if "inplace" in op.variants:
            if public:
                overloads.append(
                    f"inline Tensor {op.name}_({parameters(op.sig, shown)}) {{ return op::{op.ident}_inplace({names(op.sig)}); }}"
                )
    return _lines(
        "// Every operator as a free function; defined by the table in ops/.",
        "#pragma once",
        '#include "taeda/tensor.h"',
        "namespace taeda {",
        "// One name an overload, for generated code and for callers who want no overload resolution.",
        "namespace op {",
        *unique,
        "}  // namespace op",
        *overloads,
        *_operator_symbols(),
        "}  // namespace taeda",
    )


def _operator_symbols() -> list[str]:
    """C++ operators as in Python; numbers convert (`x * 2.0`). `x += y` changes x's elements."""
    arithmetic = {
        "+": ("add", ", Scalar(int64_t{1})"),
        "-": ("sub", ", Scalar(int64_t{1})"),
        "*": ("mul", ""),
        "/": ("div", ""),
        "%": ("remainder", ""),
        "&": ("bitwise_and", ""),
        "|": ("bitwise_or", ""),
        "^": ("bitwise_xor", ""),
    }
    comparisons = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    unary = {"-": "neg", "~": "bitwise_not", "!": "logical_not"}
    out = []
    for sign, (name, rest) in arithmetic.items():
        out += [
            f"inline Tensor operator{sign}(const Tensor& a, const Tensor& b) {{ return op::{name}(a, b{rest}); }}",
            f"inline const Tensor& operator{sign}=(const Tensor& a, const Tensor& b) {{ op::{name}_inplace(a, b{rest}); return a; }}",
        ]
    for sign, name in comparisons.items():
        out.append(
            f"inline Tensor operator{sign}(const Tensor& a, const Tensor& b) {{ return op::{name}(a, b); }}"
        )
    for sign, name in unary.items():
        out.append(f"inline Tensor operator{sign}(const Tensor& a) {{ return op::{name}(a); }}")
    return out


def out_names(op: Op) -> list[str]:
    return ["out"] if len(op.sig.returns) == 1 else [f"out_{r.name}" for r in op.sig.returns]


def _defaults_that_stay_unique(op: Op, table: Table) -> bool:
    """Defaults are declared unless another overload would then be called by the same arguments."""
    required = [a.cpp_type for a in op.sig.args if a.default is None]
    for other in table.overloads(op.name):
        if (
            other.ident != op.ident
            and [a.cpp_type for a in other.args if a.default is None] == required
        ):
            return (
                other.args[len(required) :] == [] or table.overloads(op.name)[0].ident == op.ident
            )
    return True


def _methods(table: Table) -> Iterator[tuple[Op, Signature]]:
    """Operators that are methods, with what their parameters are besides `self`."""
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        if (
            not op.sig.args
            or not any(p.startswith("Tensor.") for p in op.python)
            or not op.sig.args[0].is_tensor
        ):
            continue
        rest = Signature(op.name, op.sig.overload, op.sig.args[1:], op.sig.returns)
        key = (op.name, *(a.cpp_type for a in rest.args))
        if key not in seen:
            seen.add(key)
            yield op, rest


def methods_include(table: Table) -> str:
    """taeda/tensor_methods.inc, included inside class Tensor."""
    out = ["// Generated from ops/: operators whose first argument is `self`."]
    for op, rest in _methods(table):
        shown = _defaults_that_stay_unique(op, table)
        out.append(f"{op.sig.return_cpp} {op.name}({parameters(rest, shown)}) const;")
        if "inplace" in op.variants:
            out.append(f"Tensor {op.name}_({parameters(rest, shown)}) const;")
    return "\n".join(out) + "\n"


def method_definitions(table: Table) -> dict[str, list[str]]:
    """Out-of-line bodies of the methods by operator name."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for op, rest in _methods(table):
        out = bodies[op.name]
        call = ", ".join(["*this", *(a.name for a in rest.args)])
        out.append(
            f"{op.sig.return_cpp} Tensor::{op.name}({parameters(rest)}) const {{ return op::{op.ident}({call}); }}"
        )
        if "inplace" in op.variants:
            out.append(
                f"Tensor Tensor::{op.name}_({parameters(rest)}) const {{ return op::{op.ident}_inplace({call}); }}"
            )
    return bodies


def impl_name(op: Op) -> str:
    return op.source if isinstance(op.source, str) else op.ident


def kernel_parameters(op: Op) -> str:
    parts = [] if op.mutates else [f"const View& {op.sig.local(r)}" for r in op.sig.returns]
    for a in op.sig.args:
        kind = (
            "const View&" if a.is_tensor else "Span<const View>" if a.is_tensor_list else a.cpp_type
        )
        parts.append(f"{kind} {a.name}")
    return ", ".join(parts)


# --- bodies ---


def translator(op: Op, table: Table) -> Translator:
    return Translator(table.overloads, f"{op.where}: {op.name}", environment(op.sig))


def one_pass(op: Op, target: str, formula: Value, t: Translator, further: str) -> Value:
    """A gradient on dual numbers, or `formula` where `further`, a C++ test of tensors, says that the
    gradient is differentiated in turn."""
    call = t.expression(op.dual_grad[target])
    read = ", ".join(["gy", *(t.env[a.name].cpp for a in op.sig.tensor_args)])
    return Value(f"{further}({read}) ? {formula.cpp} : {call.cpp}", "T")


def composite_body(op: Op, table: Table, text: str) -> str:
    t = translator(op, table)
    return t.body(text, [r.cpp_type for r in op.sig.returns])


def contract_lines(op: Op, table: Table) -> list[str]:
    """Checks in front of the device code, in the order: definedness, devices, dtypes, the entry's own."""
    lines = []
    first = next((a.name for a in op.sig.args if a.type == "Tensor"), None)
    for a in op.sig.args:
        if a.is_tensor_list and a.type == "Tensor[]":
            lines.append(f'contract::list_defined("{op.name}", "{a.name}", {a.name});')
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
            f"TD_CHECK({target}.is_meta() || {target}.storage()->writable(), "
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


def autocast_lines(op: Op) -> list[str]:
    """Under torch.autocast the entry function calls itself, outside of it, on converted tensors."""
    if op.autocast is None:
        return []
    if op.autocast == "none":
        return ["  const autocast::Pause outside;"]
    tensors = [a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    to = {"lower": "autocast::lower_dtype()", "float32": "DType::kFloat32"}.get(
        op.autocast, f"autocast::widest({{{', '.join(tensors)}}})"
    )
    args = [
        f"autocast::cast({n}, to)" if n in tensors else n for n in (a.name for a in op.sig.args)
    ]
    return [
        "  if (thread_modes.autocast) [[unlikely]] {",
        f"    const DType to = {to};",
        "    const autocast::Pause outside;",
        f"    return op::{op.ident}({', '.join(args)});",
        "  }",
    ]


def keys_expression(op: Op) -> str:
    parts = [f"dispatch::keys({a.name})" for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    return " | ".join(parts) if parts else "KeySet(Key::kCPU)"


def device_function(op: Op, table: Table) -> list[str]:
    lines = [
        f"static {op.sig.return_cpp} device_{op.ident}([[maybe_unused]] {internal_parameters(op)}) {{"
    ]
    lines += ["  " + line for line in contract_lines(op, table)]
    if op.body == "pointwise":
        lines += _pointwise_body(op)
    elif op.body == "kernel":
        lines += _kernel_body(op, table)
    else:
        call = f"impl::{impl_name(op)}({names(op.sig)})"
        guard = "  const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward);"
        if op.mutates:
            lines += [
                guard,
                f"  contract::written({op.sig.args[0].name}, [&] {{ {call}; }});",
                f"  return {op.sig.args[0].name};",
            ]
        elif op.view and op.grad != {}:
            base = op.sig.args[0].name
            lines += [
                f"  auto result = [&] {{ const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward); return {call}; }}();",
                f"  autograd::track_view(result, {base});",
                "  return result;",
            ]
        else:
            lines += [guard, f"  return {call};"]
    return [*lines, "}"]


def _pointwise_body(op: Op) -> list[str]:
    tensors = op.sig.tensor_args
    inputs = ", ".join(f"&{a.name}" for a in tensors)
    promote = {"same": "kSame", "float": "kFloat", "bool": "kBool", "real": "kReal"}[op.promote]
    lines = [
        f'  static constexpr pointwise::Info info{{"{op.name}", contract::{TYPE_MASKS[op.types]}, pointwise::Promote::{promote}}};',
        f"  const Tensor* const inputs[] = {{{inputs}}};",
    ]
    functor = "nullptr"
    if op.params:
        fields = " ".join(f"{a.stored_type} {a.name};" for a in op.params)
        values = ", ".join(a.name for a in op.params)
        lines.append(f"  const struct {{ {fields} }} functor{{{values}}};")
        functor = "&functor"
    call = "pointwise::run(info, dense_{0}(), into, inputs, " + functor + ")"
    chooser = op.selector
    if chooser is None:
        return [*lines, f"  return {call.format(op.ident)};"]
    for value in op.functors:
        if chooser.optional and value == "none":
            test = f'!{chooser.name} || *{chooser.name} == "none"'
        else:
            test = f'{"*" if chooser.optional else ""}{chooser.name} == "{value}"'
        lines.append(f"  if ({test}) return {call.format(f'{op.ident}_{value}')};")
    options = " or ".join(f"'{v}'" for v in op.functors)
    shown = f"*{chooser.name}" if chooser.optional else chooser.name
    lines.append(
        f"  fail(ErrorKind::kRuntime, \"{op.name}: argument '{chooser.name}' must be {options}, got '{{}}'\", {shown});"
    )
    return lines


def _kernel_body(op: Op, table: Table) -> list[str]:
    lines, views = [], []
    t = translator(op, table)
    device = next((f"{a.name}.device()" for a in op.sig.args if a.type == "Tensor"), None)
    if device is None:
        lists = [a.name for a in op.sig.args if a.is_tensor_list]
        device = f"{lists[0]}[0].device()" if lists else "Device()"
    outputs = []
    if not op.mutates:
        for r in op.sig.returns:
            sizes, dtype = (t.expression(str(e)).cpp for e in op.out[r.name])
            local = op.sig.local(r)
            lines.append(f"  Tensor {local} = empty_tensor({sizes}, {dtype}, {device});")
            outputs.append(local)
            views.append(f"view_of({local})")
    target = op.sig.args[0].name if op.mutates else ""
    if not op.mutates:
        lines.append(f"  if ({device}.is_meta()) return {_tuple(outputs)};")
    else:
        lines.append(f"  if ({device}.is_meta()) return {target};")
    for a in op.sig.args:
        if a.is_tensor_list:
            lines.append(
                f"  const ViewList {a.name}_views({a.name}{', true' if a.name in op.contiguous else ''});"
            )
            views.append(f"{a.name}_views.span()")
        elif a.is_tensor and a.name in op.contiguous:
            lines.append(f"  const Tensor {a.name}_dense = dense_input({a.name});")
            views.append(f"view_of({a.name}_dense)")
        elif a.is_tensor:
            views.append(f"view_of({a.name})")
        else:
            views.append(a.name)
    call = f"cpu::{op.source}({', '.join(views)});"
    if op.mutates:
        lines += [f"  contract::written({target}, [&] {{ {call} }});", f"  return {target};"]
    else:
        lines += [f"  {call}", f"  return {_tuple(outputs)};"]
    return lines


def _tuple(values: list[str]) -> str:
    return values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"


def dispatch_lines(op: Op) -> list[str]:
    """The constant table, redispatch, and the entry function op::IDENT with its variants."""
    kind = f"{op.ident}_fn"
    device = f"device_{op.ident}"
    upper = (f"autograd_layer::{op.ident}", f"forward_layer::{op.ident}")
    if op.grad == {} and not op.mutates and not op.view and "inplace" not in op.variants:
        upper = (device, device)
    lines = [
        f"using {kind} = {op.sig.return_cpp} (*)({internal_parameters(op)});",
        f"static constexpr {kind} table_{op.ident}[kNumKeys] = {{{device}, {device}, {device}, {upper[0]}, {upper[1]}}};",
        f"{op.sig.return_cpp} redispatch::{op.ident}({internal_parameters(op)}) {{",
        f"  return table_{op.ident}[keys.highest()]({internal_names(op)});",
        "}",
    ]
    entry_names = internal_names(op, into="Tensor()")
    lines += [
        f"{op.sig.return_cpp} op::{op.ident}({parameters(op.sig)}) {{",
        *autocast_lines(op),
        *("  " + line for line in wrap_lines(op)),
        f"  const KeySet keys = dispatch::effective({keys_expression(op)});",
        f"  return table_{op.ident}[keys.highest()]({entry_names});",
        "}",
    ]
    if op.body == "pointwise":
        if "inplace" in op.variants:
            target = op.sig.args[0].name
            lines += [
                f"Tensor op::{op.ident}_inplace({parameters(op.sig)}) {{",
                *("  " + line for line in wrap_lines(op)),
                f"  const KeySet keys = dispatch::effective({keys_expression(op)});",
                f"  return table_{op.ident}[keys.highest()]({internal_names(op, into=target)});",
                "}",
            ]
        if "out" in op.variants:
            lines += [
                f"Tensor op::{op.ident}_out({parameters(op.sig)}, const Tensor& out) {{",
                *("  " + line for line in wrap_lines(op)),
                f'  dispatch::check_out("{op.name}", out{"".join(", " + a.name for a in op.sig.tensor_args)});',
                f"  const KeySet keys = dispatch::effective({keys_expression(op)}) & kDeviceKeys;",
                f"  return table_{op.ident}[keys.highest()]({internal_names(op, into='out')});",
                "}",
            ]
    return lines


def copied_variants(op: Op) -> list[str]:
    """In-place and out= forms of operators without a writing form: compute, then copy."""
    if op.body == "pointwise":
        return []
    lines = []
    pause = ["  const autocast::Pause outside;"] if op.autocast else []
    if "inplace" in op.variants:
        target, call = op.sig.args[0].name, f"op::{op.ident}({names(op.sig)})"
        body = f'write_inplace("{op.name}_", {target}, {call})'
        if op.changes_layout:
            body = f'autograd::take_layout("{op.name}_", {target}, {call})'
        elif keeps_first_input(op):
            tensors = ", ".join(a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list)
            read = f"autograd::read_before_write({tensors})"
            call = f"op::{op.ident}({', '.join([read, *(a.name for a in op.sig.args[1:])])})"
            body = f'write_inplace("{op.name}_", {target}, {call})'
        lines += [
            f"Tensor op::{op.ident}_inplace({parameters(op.sig)}) {{",
            *pause,
            f"  return {body};",
            "}",
        ]
    if "out" in op.variants:
        outs = out_names(op)
        comma = ", " if op.sig.args else ""
        tensors = "".join(", " + a.name for a in op.sig.tensor_args)
        lines += [
            f"{op.sig.return_cpp} op::{op.ident}_out({parameters(op.sig)}{comma}{', '.join(f'const Tensor& {o}' for o in outs)}) {{"
        ]
        for o in outs:
            lines.append(f'  dispatch::check_out("{op.name}", {o}{tensors});')
            if op.apart:
                lines += [
                    f"  dispatch::check_apart(dispatch::Apart::k{op.apart.capitalize()}, {o}, {a.name});"
                    for a in op.sig.args
                    if a.is_tensor or a.is_tensor_list
                ]
        lines += [
            *pause,
            "  const ExcludeKeys no_history(KeySet(Key::kAutograd) | Key::kForward);",
        ]
        # Factories compute in the dtype of out=, to which they give their size without a word, as
        # PyTorch's do.
        quietly, given = "", names(op.sig)
        if any(a.type == "options" for a in op.sig.args):
            lines += [
                "  TensorOptions like_out = options;",
                f"  if (!like_out.dtype) like_out.dtype = {outs[0]}.dtype();",
            ]
            quietly, given = ", true", given.replace("options", "like_out")
        lines.append(f"  const auto made = op::{op.ident}({given});")
        if len(outs) == 1:
            lines += [
                f'  write_out("{op.name}", {outs[0]}, made{quietly});',
                f"  return {outs[0]};",
                "}",
            ]
        else:
            for i, o in enumerate(outs):
                lines.append(f'  write_out("{op.name}", {o}, std::get<{i}>(made));')
            lines += [f"  return {{{', '.join(outs)}}};", "}"]
    return lines


def composite_lines(op: Op, table: Table) -> list[str]:
    lines = [f"{op.sig.return_cpp} op::{op.ident}({parameters(op.sig)}) {{"]
    lines += autocast_lines(op)
    lines += ["  " + line for line in wrap_lines(op)]
    lines += ["  " + line for line in contract_lines(op, table)]
    if op.body == "cpp":
        lines.append(f"  return impl::{impl_name(op)}({names(op.sig)});")
    else:
        lines.append(composite_body(op, table, op.source))
    return [*lines, "}"]


def operator_lines(op: Op, table: Table) -> list[str]:
    lines = [f"// {op.sig.text}"]
    if op.dispatched:
        if op.body == "pointwise":
            for value in op.functors:
                lines.append(f"const DenseTable& dense_{op.ident}{'_' + value if value else ''}();")
        lines += device_function(op, table) + dispatch_lines(op)
    else:
        lines += composite_lines(op, table)
    lines += copied_variants(op)
    if op.expr and op.body != "expr":
        lines += [
            f"{op.sig.return_cpp} definition::{op.ident}({parameters(op.sig)}) {{",
            composite_body(op, table, op.expr),
            "}",
        ]
    return lines


def kernel_declaration(op: Op) -> str:
    return f"void {op.source}({kernel_parameters(op)});"


def source_file(ops: list[Op], table: Table) -> str:
    kernels = dict.fromkeys(kernel_declaration(op) for op in ops if op.body == "kernel")
    out = ['#include "autograd/generated.h"', "namespace taeda {"]
    out += (f"namespace cpu {{ {text} }}" for text in kernels)
    for op in ops:
        out += operator_lines(op, table)
    return _lines(*out, "}  // namespace taeda")


def methods_file(lines: list[str]) -> str:
    return _lines("namespace taeda {", *lines, "}  // namespace taeda")


def _lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"
