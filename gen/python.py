"""Python bindings: one raw CPython function per Python name, its overloads in table order.

All overloads of a name share one body; a function (``torch.add``) and a method (``Tensor.add``) are
two thin entries to it, differing in whether ``self`` is an argument. Parsing is table-driven
(src/python/arguments.h).
"""

from __future__ import annotations

from collections import defaultdict

from .calls import BORROWERS, Call, python_names, shown
from .cpp import out_names
from .op import Op
from .pieces import cut
from .schema import Argument
from .stubs import docstring, text_signature
from .text import block, indented, join_lines, quoted

OPTIONS = [  # what an `options` argument is in Python
    ("dtype", "kDType", "None"),
    ("layout", "kLayout", "None"),
    ("device", "kDevice", "None"),
    ("pin_memory", "kBool", "False"),
    ("requires_grad", "kBool", "False"),
]
Places = list[tuple[str, str]]  # owner and name of each entry to one body


def binding_files(ops: list[Op]) -> dict[str, str]:
    """bindings_NAME.cc with the functions, bindings_groups.cc with the tables that name them,
    result_types.cc with the names in their results."""
    names = python_names(ops)
    bodies = {overloads: _own(places) for overloads, places in _bodies(names).items()}
    files, small = {}, []
    for optimize in ("speed", "size"):
        chosen = (p for p in bodies.values() if _optimize(names[p[0]]) == optimize)
        for first, groups in cut(chosen, lambda places: _identifier(*places[0]), 60).items():
            lines = [line for places in groups for line in _functions(places, names[places[0]])]
            files[f"bindings_{first}.cc"] = _file("python/binding_support.h", *lines)
            small += [f"bindings_{first}.cc"] if optimize == "size" else []
    files["bindings_groups.cc"] = _file("python/generated.h", *_groups(names))
    files["result_types.cc"] = _file("python/generated.h", *_result_types(ops))
    files["optimize_for_size.txt"] = join_lines(*small)
    return files


def _overloads(calls: list[Call]) -> tuple:
    return tuple((c.op.ident, c.inplace) for c in calls)


def _bodies(names: dict[tuple[str, str], list[Call]]) -> dict[tuple, Places]:
    """Overloads -> the places that have just these."""
    bodies: dict[tuple, Places] = defaultdict(list)
    for place, calls in names.items():
        bodies[_overloads(calls)].append(place)
    return bodies


def _own(places: Places) -> Places:
    """Those with a function of their own: borrowers only where no other function has one. A method
    is none: nobody has looked at its first argument."""
    others = [place for place in places if place[0] not in BORROWERS]
    return others if any(owner != "Tensor" for owner, _ in others) else places


def _optimize(calls: list[Call]) -> str:
    """For size where nothing behind the name is for speed."""
    return "size" if all(call.op.optimize == "size" for call in calls) else "speed"


def _file(header: str, *lines: str) -> str:
    head = (f'#include "{header}"', "namespace taeda::python {")
    return join_lines(*head, *lines, "}  // namespace taeda::python")


def _identifier(owner: str, name: str) -> str:
    return f"{owner.replace('.', '__')}__{name}"


# --- functions ---


def _functions(places: Places, calls: list[Call]) -> list[str]:
    """The shared body of some places, in a namespace of its own, and its entries."""
    scope = f"binding_{_identifier(*places[0])}"
    out = [f"// {calls[0].op.sig.text}", f"namespace {scope} {{"]
    for name, fields in {c.op.name: c.op.sig.returns for c in calls if _is_named(c)}.items():
        listed = ", ".join(f'"{r.name}"' for r in fields)
        out.append(f"static const char* const fields_{name}[] = {{{listed}, nullptr}};")
        out.append(f'static ResultType result_{name} = {{"{name}", fields_{name}}};')
    rows = [_params(call) for call in calls]
    for i, row in enumerate(rows):
        out.append(f"static Param params_{i}[] = {{{', '.join(row)}}};" if row else "")
    signatures = ", ".join(f"{{params_{i}}}" if row else "{}" for i, row in enumerate(rows))
    out.append(f"static const Signature signatures[] = {{{signatures}}};")
    cases = [_case(call) for call in calls]
    body = cases[0]
    if len(cases) > 1:
        numbered = (block(f"case {i}:", lines) for i, lines in enumerate(cases))
        body = [*block("switch (a.overload())", *numbered), "return nullptr;"]
    out += block("static PyObject* call([[maybe_unused]] Arguments& a)", body)
    out.append(f"}}  // namespace {scope}")
    for owner, name in places:
        out += _entry(owner, name, scope, calls)
    return out


def _entry(owner: str, name: str, scope: str, calls: list[Call]) -> list[str]:
    ident = _identifier(owner, name)
    fields = [f'"{name}"', f'"{owner}.{name}"', f"{scope}::signatures", str(len(calls))]
    fields.append("true" if owner == "Tensor" else "false")
    if hidden := len(calls) - len(shown(calls)):
        fields.append(str(hidden))
    return [
        f"static const Function function_{ident} = {{{', '.join(fields)}}};",
        *block(
            f"PyObject* py_{ident}(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames)",
            "TD_PYTHON_TRY",
            f"Arguments a(function_{ident}, self, args, nargs, kwnames);",
            "if (a.overridden()) [[unlikely]] return a.call_override();",
            f"return {scope}::call(a);",
            "TD_PYTHON_CATCH(nullptr)",
        ),
    ]


def _params(call: Call) -> list[str]:
    """The Param initialisers of one overload."""
    rows = []
    optional = "Param::kKeywordOnly | Param::kNone"
    for i, a in enumerate(call.op.sig.args):
        if a.type == "options":
            rows += [
                f'{{"{name}", Kind::{k}, "{value}", {optional}}}' for name, k, value in OPTIONS
            ]
            continue
        number = call.op.accepts_number(a) and not (call.inplace and i == 0)
        flags = ["Param::kKeywordOnly"] if a.keyword_only else []
        flags += ["Param::kNone"] if a.optional or a.default == "[]" else []
        row = [
            f'"{a.name}"',
            "Kind::kTensorOrNumber" if number else f"Kind::{a.base.kind}",
            "nullptr" if a.default is None else quoted(a.default),
            " | ".join(flags) or "0",
        ]
        if repeat := a.repeat or (1 if a.base.name == "dims" else 0):
            row.append(str(repeat))
        rows.append("{" + ", ".join(row) + "}")
    if call.has_out:
        kind = "kTensor" if len(call.op.sig.returns) == 1 else "kTensors"
        rows.append(f'{{"out", Kind::{kind}, "None", {optional}}}')
    return rows


def _getter(op: Op, a: Argument, i: int) -> str:
    """The call that reads argument `i`."""
    if a.type == "Tensor" and op.accepts_number(a):
        return f"a.tensor_or_number({i})"
    name = a.base.getter
    if a.optional and name != "generator":
        name = f"opt_{name}"
    default = a.cpp_default
    if default in (None, "std::nullopt") or a.base.expr in "TLGDV":
        return f"a.{name}({i})"
    if a.optional and a.base.expr in "FIBS":
        default = f"{a.stored_type}({default})"
    return f"a.{name}({i}, {default})"


def _case(call: Call) -> list[str]:
    """Reads the arguments of one overload and calls it."""
    op, lines, index = call.op, [], 0
    if op.numbers == "some" and not call.inplace:
        lines.append(f"a.require_a_tensor({len(op.sig.tensor_args)});")
    for a in op.sig.args:
        if a.type == "options":
            lines.append(f"const TensorOptions {a.name} = tensor_options(a, {index});")
            index += len(OPTIONS)
        else:
            lines.append(f"decltype(auto) {a.name} = {_getter(op, a, index)};")
            index += 1
    args = [a.name for a in op.sig.args]
    if call.has_out:
        lines.append(_write_to_out(op, args, index))
    function = f"{call.function}({', '.join(args)});"
    if call.inplace or op.mutates:
        return [*lines, f"unlocked(a, [&] {{ {function} }});", "return a.return_argument(0);"]
    value = f"unlocked(a, [&] {{ return {function} }})"
    wrapped = f"wrap_named(result_{op.name}, {value})" if _is_named(call) else f"wrap({value})"
    return [*lines, f"return {wrapped};"]


def _is_named(call: Call) -> bool:
    """Whether the result is a named tuple."""
    return call.op.named and not call.inplace and not call.op.mutates


def _write_to_out(op: Op, args: list[str], index: int) -> str:
    outs = [f"a.tensor({index})"]
    listed = ""
    if (n := len(out_names(op))) > 1:
        outs = [f"outs[{i}]" for i in range(n)]
        listed = f"const TensorList outs = output_tensors(a, {index}, {n}); "
    if any(a.type == "options" for a in op.sig.args):
        listed += f"require_options_of({outs[0]}, options); "
    call = f"unlocked(a, [&] {{ op::{op.ident}_out({', '.join([*args, *outs])}); }});"
    return f"if (a.present({index})) {{ {listed}{call} return a.return_argument({index}); }}"


# --- tables ---


def _groups(names: dict[tuple[str, str], list[Call]]) -> list[str]:
    """The functions of each owner, with their docstrings."""
    bodies, declared, tables = _bodies(names), set(), defaultdict(list)
    for (owner, name), calls in names.items():
        own = _own(bodies[_overloads(calls)])
        lent = [place for place in own if place[0] != "Tensor"]
        function = f"py_{_identifier(*((owner, name) if (owner, name) in own else lent[-1]))}"
        declared.add(f"PyObject* {function}(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);")
        signature = text_signature(name, calls) if owner == "nn.functional" else ""
        cast = f"reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>({function}))"
        text = "" if owner == "foreach" else docstring(name, calls)  # known by its name alone
        doc = quoted(signature + text)
        tables[owner].append(f'{{"{name}", {cast}, METH_FASTCALL | METH_KEYWORDS, {doc}}},')
    out, groups = [*sorted(declared), "namespace {"], []
    for owner, rows in tables.items():
        table = f"methods_{owner.replace('.', '__')}"
        out += [
            f"PyMethodDef {table}[] = {{",
            *indented(rows, "{nullptr, nullptr, 0, nullptr},"),
            "};",
        ]
        groups.append(f'{{"{owner}", {table}}},')
    groups.append("{nullptr, nullptr},")
    return [
        *out,
        "}  // namespace",
        "const MethodGroup kMethodGroups[] = {",
        *indented(groups),
        "};",
    ]


def _result_types(ops: list[Op]) -> list[str]:
    """The table behind torch.return_types, which needs the types before an operator makes one."""
    public = [op for op in ops if op.named and op.python and not op.name.startswith("_")]
    named = {op.name: [r.name for r in op.sig.returns] for op in public}
    out = ["namespace {"]
    for name, fields in named.items():
        listed = "".join(f'"{field}", ' for field in fields)
        out.append(f"const char* const fields_{name}[] = {{{listed}nullptr}};")
    out += ["}  // namespace", "const ResultFields kResultFields[] = {"]
    out += indented(f'{{"{name}", fields_{name}}},' for name in named)
    return [*out, "  {nullptr, nullptr},", "};"]
