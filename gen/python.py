"""Python's side of operators: one raw CPython function per Python name, its overloads in table
order. names.py says which names there are, signatures.py what Python shows of them.

All overloads of a name share one body; a function (``torch.add``) and a method (``Tensor.add``) are
two thin entries to it, differing in whether ``self`` is an argument. Parsing is table-driven
(src/python/arguments.h).
"""

from __future__ import annotations

from collections import defaultdict

from .cpp import Table
from .headers import source
from .names import BORROWERS, Attribute, Call, Names, own_name, python_names
from .op import Op
from .schema import Argument
from .signatures import docstring, shown
from .text import block, cut, initializer, join_lines, quoted

SPACE = "taeda::python"


def binding_files(table: Table) -> dict[str, str]:
    """bindings_NAME.cc with the functions, bindings_groups.cc with the tables that name them,
    result_types.cc with the names in their results."""
    names = python_names(table.ops)
    bodies: dict[tuple[str, ...], list[Attribute]] = defaultdict(list)
    for attribute, calls in names.items():  # those that have the same overloads share a body
        bodies[tuple(call.function for call in calls)].append(attribute)
    entries: dict[Attribute, Attribute] = {}  # each attribute with the one whose function it has
    files, small = {}, []
    by_level: dict[str, list[list[Attribute]]] = {"speed": [], "size": []}
    for attributes in bodies.values():
        # Borrowers take another's function, but no method's: its first argument is unchecked.
        lent = [attribute for attribute in attributes if attribute[0] not in ("Tensor", *BORROWERS)]
        entries |= {p: lent[-1] if lent and p[0] in BORROWERS else p for p in attributes}
        own = [p for p in attributes if entries[p] == p]
        levels = {call.op.optimize for call in names[own[0]]}
        by_level["size" if levels == {"size"} else "speed"].append(own)
    for level, groups in by_level.items():
        for first, group in cut(groups, lambda attributes: _identifier(attributes[0]), 60).items():
            lines = [line for own in group for line in _functions(own, names[own[0]])]
            called = [call.op for own in group for call in names[own[0]]]
            files[f"bindings_{first}.cc"] = source(table, called, ["python/bound.h"], lines, SPACE)
            small += [f"bindings_{first}.cc"] if level == "size" else []
    tables = _groups(names, entries)
    files["bindings_groups.cc"] = source(table, [], ["python/generated.h"], tables, SPACE)
    files["result_types.cc"] = source(table, [], ["python/wrap.h"], _result_types(table.ops), SPACE)
    files["optimize_for_size.txt"] = join_lines(*small)
    return files


def _identifier(attribute: Attribute) -> str:
    return ".".join(attribute).replace(".", "__")


def _functions(attributes: list[Attribute], calls: list[Call]) -> list[str]:
    """The shared body of some attributes, in a namespace of its own, and its entries."""
    scope = f"binding_{_identifier(attributes[0])}"
    named = dict.fromkeys(call.op.name for call in calls if call.named)
    out = [f"// {calls[0].op.sig.text}", *(f"extern ResultType result_{n};" for n in named)]
    out.append(f"namespace {scope} {{")
    rows = [", ".join(_param(call, a) for a in call.arguments) for call in calls]
    table = "static constinit Param params_"
    out += [f"{table}{i}[] = {{{row}}};" if row else "" for i, row in enumerate(rows)]
    signatures = ", ".join(f"{{params_{i}}}" if row else "{}" for i, row in enumerate(rows))
    out.append(f"static const Signature signatures[] = {{{signatures}}};")
    cases = [_case(call) for call in calls]
    body = cases[0]
    if len(cases) > 1:
        numbered = (block(f"case {i}:", lines) for i, lines in enumerate(cases))
        body = [*block("switch (a.overload())", *numbered), "return nullptr;"]
    out += block("static PyObject* call([[maybe_unused]] Arguments& a)", body)
    out.append(f"}}  // namespace {scope}")
    hidden = len(calls) - len(shown(calls))
    for owner, name in attributes:
        ident = _identifier((owner, name))
        out.append(f'TD_BINDING({ident}, "{name}", "{owner}", {scope}, {hidden})')
    return out


def _param(call: Call, a: Argument) -> str:
    """The initialiser of a Param."""
    flags = ["Param::kKeywordOnly"] if a.keyword_only else []
    flags += ["Param::kNone"] if a.optional or a.default == "[]" else []
    flags += ["Param::kWithOut"] if a.name in call.op.out_needs else []
    flags += ["Param::kWithNext"] if a.name in call.op.next_needs else []
    written = call.inplace and a is call.op.sig.args[0]
    kind = "TensorOrNumber" if call.op.accepts_number(a) and not written else a.base.kind[1:]
    second = call.op.second_names.get(a.name)
    text = f"{a.name}/{second}" if second else a.name
    text += "" if a.default is None else f"={a.default}"
    repeat = [str(int(a.repeat or 1))] if a.repeat or a.base.name == "dims" else []
    flags = [" | ".join(flags) or "0"] if flags or repeat else []
    return "{" + ", ".join([quoted(text), f"Kind::k{kind}", *flags, *repeat]) + "}"


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
    named = [f"result_{op.name}"] if call.named else []
    given = ", ".join(["a", *named, *(_fallback(op, a) for a in op.sig.args)])
    checked = op.numbers == "some" and not call.inplace
    lines = [f"a.require_a_tensor({len(op.sig.tensor_args)});"] if checked else []
    if call.inplace or op.mutates:
        return [*lines, f"return call_inplace<{call.function}>({given});"]
    functions = f"{call.function}, op::{op.ident}_out" if call.has_out else call.function
    return [*lines, f"return call_{'named' if named else 'operator'}<{functions}>({given});"]


# --- tables ---


def _groups(names: Names, entries: dict[Attribute, Attribute]) -> list[str]:
    """The functions of each owner, with their docstrings."""
    declared, tables = set(), defaultdict(list)
    for attribute, calls in names.items():
        function = f"py_{_identifier(entries[attribute])}"
        declared.add(f"PyObject* {function}(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);")
        cast = f"reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>({function}))"
        doc = quoted(docstring(*attribute, calls))
        tables[attribute[0]].append(
            f'{{"{own_name(attribute)}", {cast}, METH_FASTCALL | METH_KEYWORDS, {doc}}}'
        )
    out, groups = [*sorted(declared), "namespace {"], []
    for owner, rows in tables.items():
        table = f"methods_{owner.replace('.', '__')}"
        out += initializer(f"PyMethodDef {table}[]", [*rows, "{nullptr, nullptr, 0, nullptr}"])
        groups.append(f'{{"{owner}", {table}}}')
    listed = initializer("const MethodGroup kMethodGroups[]", [*groups, "{nullptr, nullptr}"])
    return [*out, "}  // namespace", *listed]


def _result_types(ops: list[Op]) -> list[str]:
    """The named tuples; torch.return_types has their types before an operator makes one."""
    named = {op.name: op.sig.returns for op in ops if op.named and op.python}
    out = []
    for name, returns in named.items():
        fields = ", ".join(f'"{r.name}"' for r in returns)
        out.append(f'ResultType result_{name} = {{"{name}", {{{fields}}}}};')
    rows = [*(f"&result_{name}" for name in named), "nullptr"]
    return [*out, *initializer("ResultType* const kResultTypes[]", rows)]
