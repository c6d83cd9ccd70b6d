"""Python bindings: one raw CPython function per Python name, its overloads in table order.

All overloads of a name share one body; a function (``torch.add``) and a method (``Tensor.add``) are
two thin entries to it, differing in whether ``self`` is an argument. Parsing is table-driven
(src/python/arguments.h).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .cpp import Table
from .headers import source
from .names import BORROWERS, Call, Place, docstring, python_names, shown, text_signature
from .op import Op
from .schema import Argument
from .text import block, cut, initializer, join_lines, quoted

Names = dict[Place, list[Call]]


def binding_files(table: Table) -> dict[str, str]:
    """bindings_NAME.cc with the functions, bindings_groups.cc with the tables that name them,
    result_types.cc with the names in their results."""
    names = python_names(table.ops)
    entries: dict[Place, Place] = {}
    files, small = {}, []
    by_level: dict[str, list[list[Place]]] = {"speed": [], "size": []}
    for places in _sharing(names):
        entries |= _entries(places)
        own = [p for p in places if entries[p] == p]
        by_level[_optimize(names[own[0]])].append(own)
    for level, bodies in by_level.items():
        for first, group in cut(bodies, lambda places: _identifier(places[0]), 60).items():
            lines = [line for places in group for line in _functions(places, names[places[0]])]
            called = [call.op for places in group for call in names[places[0]]]
            files[f"bindings_{first}.cc"] = _file(table, "bound", lines, called)
            small += [f"bindings_{first}.cc"] if level == "size" else []
    files["bindings_groups.cc"] = _file(table, "generated", _groups(names, entries))
    files["result_types.cc"] = _file(table, "generated", _result_types(table.ops))
    files["optimize_for_size.txt"] = join_lines(*small)
    return files


def _file(table: Table, header: str, lines: list[str], ops: Sequence[Op] = ()) -> str:
    return source(table, [*ops], [f"python/{header}.h"], lines, "taeda::python")


def _sharing(names: Names) -> list[list[Place]]:
    """The places by what is behind them: those that have the same overloads share a body."""
    found: dict[tuple, list[Place]] = defaultdict(list)
    for place, calls in names.items():
        found[tuple(call.function for call in calls)].append(place)
    return [*found.values()]


def _entries(places: list[Place]) -> dict[Place, Place]:
    """Each place with the one whose function it has: its own, but borrowers take another's. That of
    a method is none to lend: nobody has looked at its first argument."""
    lent = [place for place in places if place[0] not in ("Tensor", *BORROWERS)]
    return {p: lent[-1] if lent and p[0] in BORROWERS else p for p in places}


def _optimize(calls: list[Call]) -> str:
    """For size where nothing behind the name is for speed."""
    return "size" if all(call.op.optimize == "size" for call in calls) else "speed"


def _identifier(place: Place) -> str:
    return "__".join([*place[0].split("."), place[1]])


# --- functions ---


def _functions(places: list[Place], calls: list[Call]) -> list[str]:
    """The shared body of some places, in a namespace of its own, and its entries."""
    scope = f"binding_{_identifier(places[0])}"
    out = [f"// {calls[0].op.sig.text}", f"namespace {scope} {{"]
    for name, fields in {c.op.name: c.op.sig.returns for c in calls if _is_named(c)}.items():
        out += [f"static {_fields(name, fields)}"]
        out.append(f'static ResultType result_{name} = {{"{name}", fields_{name}}};')
    rows = [", ".join(_param(call, a) for a in call.arguments) for call in calls]
    out += [f"static Param params_{i}[] = {{{row}}};" if row else "" for i, row in enumerate(rows)]
    signatures = ", ".join(f"{{params_{i}}}" if row else "{}" for i, row in enumerate(rows))
    out.append(f"static const Signature signatures[] = {{{signatures}}};")
    cases = [_case(call) for call in calls]
    body = cases[0]
    if len(cases) > 1:
        numbered = (block(f"case {i}:", lines) for i, lines in enumerate(cases))
        body = [*block("switch (a.overload())", *numbered), "return nullptr;"]
    out += block("static PyObject* call([[maybe_unused]] Arguments& a)", body)
    out.append(f"}}  // namespace {scope}")
    return [*out, *(line for place in places for line in _entry(place, scope, calls))]


def _entry(place: Place, scope: str, calls: list[Call]) -> list[str]:
    ident, (owner, name) = _identifier(place), place
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


def _param(call: Call, a: Argument) -> str:
    """The initialiser of a Param."""
    flags = ["Param::kKeywordOnly"] if a.keyword_only else []
    flags += ["Param::kNone"] if a.optional or a.default == "[]" else []
    row = [
        f'"{a.name}"',
        "Kind::kTensorOrNumber" if call.accepts_number(a) else f"Kind::{a.base.kind}",
        "nullptr" if a.default is None else quoted(a.default),
        " | ".join(flags) or "0",
    ]
    if repeat := a.repeat or (1 if a.base.name == "dims" else 0):
        row.append(str(repeat))
    return "{" + ", ".join(row) + "}"


def _fallback(op: Op, a: Argument) -> str:
    """What is read of an argument that is not given (python/bound.h)."""
    if op.accepts_number(a) and a.type == "Tensor":
        return "kNumber"
    if a.type == "Tensor?":
        return "kMissing"
    default = a.cpp_default
    if default in (None, "std::nullopt") or a.base.expr in "OLGDV":
        return "kGiven"
    optional_number = a.optional and a.base.expr in "FIBS"
    return f"{a.stored_type}({default})" if optional_number else str(default)


def _case(call: Call) -> list[str]:
    """Reads the arguments of one overload and calls it."""
    op = call.op
    named = [f"result_{op.name}"] if _is_named(call) else []
    given = ", ".join(["a", *named, *(_fallback(op, a) for a in op.sig.args)])
    checked = op.numbers == "some" and not call.inplace
    lines = [f"a.require_a_tensor({len(op.sig.tensor_args)});"] if checked else []
    if call.inplace or op.mutates:
        return [*lines, f"return call_inplace<{call.function}>({given});"]
    functions = f"{call.function}, op::{op.ident}_out" if call.has_out else call.function
    caller = "call_named" if named else "call_operator"
    return [*lines, f"return {caller}<{functions}>({given});"]


def _is_named(call: Call) -> bool:
    """Whether the result is a named tuple."""
    return call.op.named and not call.inplace and not call.op.mutates


# --- tables ---


def _groups(names: Names, entries: dict[Place, Place]) -> list[str]:
    """The functions of each owner, with their docstrings."""
    declared, tables = set(), defaultdict(list)
    for place, calls in names.items():
        owner, name = place
        function = f"py_{_identifier(entries[place])}"
        declared.add(f"PyObject* {function}(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);")
        signature = text_signature(name, calls) if owner == "nn.functional" else ""
        cast = f"reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>({function}))"
        text = "" if owner == "foreach" else docstring(name, calls)  # known by its name alone
        doc = quoted(signature + text)
        tables[owner].append(f'{{"{name}", {cast}, METH_FASTCALL | METH_KEYWORDS, {doc}}}')
    out, groups = [*sorted(declared), "namespace {"], []
    for owner, rows in tables.items():
        table = f"methods_{'__'.join(owner.split('.'))}"
        out += initializer(f"PyMethodDef {table}[]", [*rows, "{nullptr, nullptr, 0, nullptr}"])
        groups.append(f'{{"{owner}", {table}}}')
    listed = initializer("const MethodGroup kMethodGroups[]", [*groups, "{nullptr, nullptr}"])
    return [*out, "}  // namespace", *listed]


def _result_types(ops: list[Op]) -> list[str]:
    """The table behind torch.return_types, which needs the types before an operator makes one."""
    public = [op for op in ops if op.named and op.python and not op.name.startswith("_")]
    named = {op.name: op.sig.returns for op in public}
    out = ["namespace {", *(_fields(name, returns) for name, returns in named.items())]
    rows = [*(f'{{"{name}", fields_{name}}}' for name in named), "{nullptr, nullptr}"]
    return [*out, "}  // namespace", *initializer("const ResultFields kResultFields[]", rows)]


def _fields(name: str, returns: list[Argument]) -> str:
    """The names of an operator's results."""
    listed = ", ".join(f'"{r.name}"' for r in returns)
    return f"const char* const fields_{name}[] = {{{listed}, nullptr}};"
