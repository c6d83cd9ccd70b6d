"""Python bindings: one raw CPython function per Python name, its overloads in table order.

All overloads of a name share one body; a function (``torch.add``) and a method (``Tensor.add``) are
two thin entries to it, differing in whether ``self`` is an argument. Parsing is table-driven
(src/python/arguments.h).
"""

from __future__ import annotations

import keyword
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .cpp import out_names
from .pieces import cut
from .schema import Argument
from .table import Op

KINDS = {
    "Tensor": "kTensor",
    "Tensor[]": "kTensors",
    "Tensor?[]": "kOptTensors",
    "Scalar": "kScalar",
    "int": "kInt",
    "dim": "kInt",
    "int[]": "kInts",
    "dims": "kInts",
    "float": "kFloat",
    "float[]": "kFloats",
    "bool": "kBool",
    "str": "kStr",
    "dtype": "kDType",
    "device": "kDevice",
    "memory_format": "kMemoryFormat",
    "Generator": "kGenerator",
}
GETTERS = {
    "Scalar": "scalar",
    "int": "integer",
    "dim": "integer",
    "int[]": "ints",
    "dims": "ints",
    "float": "real",
    "float[]": "reals",
    "bool": "boolean",
    "str": "text",
    "dtype": "dtype",
    "device": "device",
    "memory_format": "memory_format",
}
OPTIONS = [  # what an `options` argument is in Python
    ("dtype", "kDType", "None"),
    ("layout", "kLayout", "None"),
    ("device", "kDevice", "None"),
    ("pin_memory", "kBool", "False"),
    ("requires_grad", "kBool", "False"),
]


@dataclass
class Call:
    """One overload of a Python name, in its functional or in-place form."""

    op: Op
    inplace: bool = False
    definition: bool = False  # the entry's `expr` instead of its kernel: the test oracle

    @property
    def has_out(self) -> bool:
        return "out" in self.op.variants and not self.inplace and not self.definition

    @property
    def function(self) -> str:
        """The C++ function behind it."""
        if self.definition:
            return f"definition::{self.op.ident}"
        return f"op::{self.op.ident}" + ("_inplace" if self.inplace else "")


def python_names(ops: list[Op]) -> dict[tuple[str, str], list[Call]]:
    """(owner, name) -> overloads. Owners: torch, Tensor, nn.functional, linalg, ..."""
    found: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for op in ops:
        for place in op.python:
            owner, _, name = place.rpartition(".")
            if owner != "torch":
                owner = owner.removeprefix("torch.")
            found[owner, name].append(Call(op))
            if "inplace" in op.variants and not name.startswith("__"):
                found[owner, name + "_"].append(Call(op, inplace=True))
        if op.expr and op.body != "expr":
            found["_definition", op.ident].append(Call(op, definition=True))
    return dict(sorted(found.items()))


def _params(call: Call) -> list[str]:
    """The Param initialisers of one overload."""
    rows = []
    for i, a in enumerate(call.op.sig.args):
        if a.type == "options":
            rows += [
                f'{{"{n}", Kind::{k}, "{d}", Param::kKeywordOnly | Param::kNone}}'
                for n, k, d in OPTIONS
            ]
            continue
        base = a.type.removesuffix("?")
        kind = (
            "kTensorOrNumber"
            if call.op.accepts_number(a) and not (call.inplace and i == 0)
            else KINDS[base]
        )
        none = a.optional or a.default == "[]"
        flags = [
            f for f, on in (("Param::kKeywordOnly", a.keyword_only), ("Param::kNone", none)) if on
        ]
        default = "nullptr" if a.default is None else '"' + a.default.replace('"', '\\"') + '"'
        row = [f'"{a.name}"', f"Kind::{kind}", default, " | ".join(flags) or "0"]
        repeat = a.repeat or (1 if base == "dims" else 0)
        if repeat:
            row.append(str(repeat))
        rows.append("{" + ", ".join(row) + "}")
    if call.has_out:
        kind = "kTensor" if len(call.op.sig.returns) == 1 else "kTensors"
        rows.append(f'{{"out", Kind::{kind}, "None", Param::kKeywordOnly | Param::kNone}}')
    return rows


def _getter(op: Op, a: Argument, i: int, first_is_self: bool) -> str:
    base = a.type.removesuffix("?")
    if a.type == "Tensor":
        return f"a.tensor_or_number({i})" if op.accepts_number(a) else f"a.tensor({i})"
    if a.type == "Tensor?":
        return f"a.opt_tensor({i})"
    if a.is_tensor_list:
        return f"a.tensors({i})"
    if a.type == "Generator?":
        return f"a.generator({i})"
    name = ("opt_" if a.optional else "") + GETTERS[base]
    default = a.cpp_default
    if default is None or base in ("dtype", "device") or default == "std::nullopt":
        return f"a.{name}({i})"
    if a.optional:
        wrapped = {
            "float": "OptDouble",
            "int": "OptInt",
            "dim": "OptInt",
            "bool": "OptBool",
            "Scalar": "OptScalar",
        }
        default = f"{wrapped[base]}({default})" if base in wrapped else default
    return f"a.{name}({i}, {default})"


def _case(call: Call, result_types: dict[str, str]) -> list[str]:
    op, lines, index, arguments = call.op, [], 0, []
    for i, a in enumerate(op.sig.args):
        if a.type == "options":
            lines.append(f"const TensorOptions {a.name} = tensor_options(a, {index});")
            index += len(OPTIONS)
        else:
            lines.append(f"decltype(auto) {a.name} = {_getter(op, a, index, i == 0)};")
            index += 1
        arguments.append(a.name)
    text = ", ".join(arguments)
    if op.numbers == "some" and not call.inplace:
        lines.insert(0, f"a.require_a_tensor({len(op.sig.tensor_args)});")
    if call.has_out:
        outs = out_names(op)
        if len(outs) == 1:
            given, values = "", f"a.tensor({index})"
        else:
            given = f"const TensorList outs = output_tensors(a, {index}, {len(outs)}); "
            values = ", ".join(f"outs[{k}]" for k in range(len(outs)))
        comma = ", " if arguments else ""
        lines.append(
            f"if (a.present({index})) {{ {given}unlocked(a, [&] {{ op::{op.ident}_out({text}{comma}{values}); }}); "
            f"return a.return_argument({index}); }}"
        )
    if call.inplace or op.mutates:
        lines.append(f"unlocked(a, [&] {{ {call.function}({text}); }});")
        lines.append("return a.return_argument(0);")
        return lines
    value = f"unlocked(a, [&] {{ return {call.function}({text}); }})"
    if op.named:
        fields = ", ".join(f'"{r.name}"' for r in op.sig.returns)
        result_types[op.name] = fields
        lines.append(f"return wrap_named(result_{op.name}, {value});")
    else:
        lines.append(f"return wrap({value});")
    return lines


def _identifier(owner: str, name: str) -> str:
    return f"{owner.replace('.', '__')}__{name}"


def _body_key(calls: list[Call]) -> tuple:
    return tuple((c.op.ident, c.inplace, c.definition) for c in calls)


def binding_files(ops: list[Op]) -> dict[str, str]:
    """bindings_NAME.cc with the functions, bindings_groups.cc with the tables that name them,
    result_types.cc with the names in their results."""
    names = python_names(ops)
    bodies: dict[tuple, list[tuple[str, str]]] = defaultdict(list)
    for place, calls in names.items():
        bodies[_body_key(calls)].append(place)
    files, declared = {}, defaultdict(list)
    for first, groups in cut(bodies.values(), lambda places: _identifier(*places[0]), 60).items():
        out = ['#include "python/binding_support.h"', "namespace taeda::python {"]
        for places in groups:
            out += _functions(places, names[places[0]])
            for owner, name in places:
                declared[owner].append((name, _identifier(owner, name), names[owner, name]))
        files[f"bindings_{first}.cc"] = "\n".join([*out, "}  // namespace taeda::python", ""])
    files["bindings_groups.cc"] = _groups(declared)
    files["result_types.cc"] = _result_types(ops)
    return files


def _functions(places: list[tuple[str, str]], calls: list[Call]) -> list[str]:
    scope = f"binding_{_identifier(*places[0])}"
    result_types: dict[str, str] = {}
    cases = [_case(call, result_types) for call in calls]
    out = [f"// {calls[0].op.sig.text}"]
    out.append(f"namespace {scope} {{")
    for name, fields in result_types.items():
        out.append(f"static const char* const fields_{name}[] = {{{fields}, nullptr}};")
        out.append(f'static ResultType result_{name} = {{"{name}", fields_{name}}};')
    for i, call in enumerate(calls):
        rows = _params(call)
        out.append(f"static Param params_{i}[] = {{{', '.join(rows)}}};" if rows else "")
    signatures = ", ".join(f"{{params_{i}}}" if _params(c) else "{}" for i, c in enumerate(calls))
    out.append(f"static const Signature signatures[] = {{{signatures}}};")
    out.append("static PyObject* call([[maybe_unused]] Arguments& a) {")
    if len(cases) == 1:
        out += ["  " + line for line in cases[0]]
    else:
        out.append("  switch (a.overload()) {")
        for i, lines in enumerate(cases):
            out += [f"    case {i}: {{", *("      " + line for line in lines), "    }"]
        out += ["  }", "  return nullptr;"]
    out += ["}", f"}}  // namespace {scope}"]
    for owner, name in places:
        ident = _identifier(owner, name)
        method = "true" if owner == "Tensor" else "false"
        hidden = f", {len(calls) - len(shown(calls))}" if shown(calls) != calls else ""
        out += [
            f'static const Function function_{ident} = {{"{name}", "{owner}.{name}", {scope}::signatures, {len(calls)}, {method}{hidden}}};',
            f"PyObject* py_{ident}(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {{",
            "  TD_PYTHON_TRY",
            f"  Arguments a(function_{ident}, self, args, nargs, kwnames);",
            "  if (a.overridden()) [[unlikely]] return a.call_override();",
            f"  return {scope}::call(a);",
            "  TD_PYTHON_CATCH(nullptr)",
            "}",
        ]
    return out


def shown(calls: list[Call]) -> list[Call]:
    """The overloads that users are told of; those of old programs come behind them."""
    told = [c for c in calls if not c.op.hidden]
    if calls[: len(told)] != told:
        raise calls[0].op.fail("a hidden overload has to be the last of its name")
    return told


def docstring(name: str, calls: list[Call]) -> str:
    """Signatures, then the text of the first entry that has one."""
    lines = [signature_text(name, call) for call in shown(calls)]
    doc = next((c.op.doc.strip() for c in calls if c.op.doc), "")
    if calls[0].inplace:
        doc = f"In-place version of {name[:-1]}."
    return "\n".join(lines) + ("\n\n" + doc if doc else "")


def text_signature(name: str, calls: list[Call]) -> str:
    """What inspect.signature reads from the start of a docstring; Python takes it off again.

    PyTorch's nn.functional is written in Python, so programs look at its parameters.
    """
    if len(calls) > 1:  # Python knows one signature a function
        return ""
    parts, starred = [], False
    for a in calls[0].op.sig.args:
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        shown = "input" if a.name == "self" else a.name
        parts.append(shown if a.default is None else f"{shown}={a.default}")
    return f"{name}({', '.join(parts)})\n--\n\n"


STUB_HEAD = Path(__file__).with_name("stub_head.pyi.in")
PYTHON_TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "Number",
    "int": "int",
    "dim": "int",
    "int[]": "Sequence[int]",
    "dims": "int | Sequence[int]",
    "float": "float",
    "float[]": "Sequence[float]",
    "bool": "bool",
    "str": "str",
    "dtype": "dtype",
    "device": "Device",
    "memory_format": "memory_format",
    "Generator": "Generator",
}
PYTHON_RETURNS = {
    "Tensor": "Tensor",
    "Tensor[]": "tuple[Tensor, ...]",
    "int": "int",
    "int[]": "Size",
    "bool": "bool",
    "float": "float",
    "Scalar": "Number",
    "dtype": "dtype",
}


def signature_text(name: str, call: Call, method: bool = False) -> str:
    """``add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, ...) -> Tensor``."""
    parts, starred = [], False
    positional = [a for a in call.op.sig.args if not a.keyword_only and a.type != "options"]
    own = positional[1:] if method else positional
    takes_varargs = len(own) == 1 and own[0].type.removesuffix("?") in ("int[]", "dims")
    for i, a in enumerate(call.op.sig.args):
        if takes_varargs and a is own[0]:  # view(2, 3) as well as view((2, 3))
            parts.append(f"*{a.name}: int | Sequence[int]")
            starred = True
            continue
        if (a.keyword_only or a.type == "options") and not starred:
            parts.append("*")
            starred = True
        if a.type == "options":
            parts += [
                "dtype: dtype | None = None",
                "layout: layout | None = None",
                "device: Device | None = None",
                "pin_memory: bool = False",
                "requires_grad: bool = False",
            ]
            continue
        kind = PYTHON_TYPES[a.type.removesuffix("?")]
        if call.op.accepts_number(a):
            kind += " | Number"
        if a.repeat and a.type.startswith("int[]"):
            kind = "int | " + kind
        if a.optional:
            kind += " | None"
        shown = "self" if method and i == 0 else "input" if a.name == "self" else a.name
        if keyword.iskeyword(shown):  # random_(from, to): nobody can write that name in a call
            shown += "_"
        text = shown if method and i == 0 else f"{shown}: {kind}"
        if a.default is not None:
            text += f" = {a.default}"
        parts.append(text)
    if call.has_out:
        if not starred:
            parts.append("*")
        parts.append(
            "out: Tensor | None = None"
            if len(call.op.sig.returns) == 1
            else "out: Sequence[Tensor] | None = None"
        )
    returns = [PYTHON_RETURNS[r.type] for r in call.op.sig.returns]
    result = returns[0] if len(returns) == 1 else f"tuple[{', '.join(returns)}]"
    return f"{name}({', '.join(parts)}) -> {result}"


def _groups(declared: dict[str, list[tuple[str, str, list[Call]]]]) -> str:
    out = ['#include "python/generated.h"', "namespace taeda::python {"]
    for entries in declared.values():
        for _, ident, _ in entries:
            out.append(f"PyObject* py_{ident}(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);")
    out.append("namespace {")
    for owner, entries in declared.items():
        out.append(f"PyMethodDef methods_{owner.replace('.', '__')}[] = {{")
        for name, ident, calls in entries:
            doc = (text_signature(name, calls) if owner == "nn.functional" else "") + docstring(
                name, calls
            )
            doc = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            out.append(
                f'  {{"{name}", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_{ident})), '
                f'METH_FASTCALL | METH_KEYWORDS, "{doc}"}},'
            )
        out.append("  {nullptr, nullptr, 0, nullptr},\n};")
    out += ["}  // namespace", "const MethodGroup kMethodGroups[] = {"]
    out += [f'  {{"{owner}", methods_{owner.replace(".", "__")}}},' for owner in declared]
    out += ["  {nullptr, nullptr},", "};", "}  // namespace taeda::python", ""]
    return "\n".join(out)


def _result_types(ops: list[Op]) -> str:
    """The table behind torch.return_types, which needs the types before an operator makes one."""
    public = [op for op in ops if op.named and op.python and not op.name.startswith("_")]
    named = {op.name: [r.name for r in op.sig.returns] for op in public}
    out = ['#include "python/generated.h"', "namespace taeda::python {", "namespace {"]
    for name, fields in named.items():
        listed = "".join(f'"{field}", ' for field in fields)
        out.append(f"const char* const fields_{name}[] = {{{listed}nullptr}};")
    out += ["}  // namespace", "const ResultFields kResultFields[] = {"]
    out += [f'  {{"{name}", fields_{name}}},' for name in named]
    out += ["  {nullptr, nullptr},", "};", "}  // namespace taeda::python", ""]
    return "\n".join(out)


def stubs(ops: list[Op]) -> str:
    """Type stubs of every generated function, grouped by owner, for taeda/_C.pyi."""
    out = [STUB_HEAD.read_text()]
    groups: dict[str, list[tuple[str, list[Call]]]] = defaultdict(list)
    for (owner, name), calls in python_names(ops).items():
        groups[owner].append((name, calls))
    for owner, entries in groups.items():
        method = owner == "Tensor"
        name = "Tensor(_TensorMembers)" if method else "_" + owner.replace(".", "_")
        out.append(f"class {name}:")
        for name, calls in entries:
            for call in shown(calls):
                if len(shown(calls)) > 1:
                    out.append("    @overload")
                text = signature_text(name, call, method)
                if not method:
                    out.append("    @staticmethod")
                out.append(f"    def {text}: ...")
        out.append("")
    return "\n".join(out)
