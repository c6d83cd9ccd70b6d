"""The operator table: ops/**/*.yaml, loaded, validated and resolved into :class:`Op` records.

What an entry may say is declared in op.py; an unknown key is an error that names file and line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from . import schema
from .op import BODIES, FILE_KEYS, Op
from .schema import SchemaError, Signature

CHOICES = {f.name: f.metadata["choices"] for f in fields(Op) if "choices" in f.metadata}
# What a file says of all its entries, one may say for itself, but for how the file is compiled.
KEYS = ["op", *BODIES, *(key for key in CHOICES if key not in (*BODIES, "optimize"))]


def _flat(items: list) -> list:
    """A list in the list, which a YAML alias makes, counts as its elements."""
    return [x for item in items for x in (_flat(item) if isinstance(item, list) else [item])]


# --- twins ---

ABSENT = object()


def _of_twin(value: Any, n: int) -> Any:
    """What a value of an entry with twins is for `n` dimensions: {N} is the number, and a mapping
    with numbers as its keys has a value for each; ABSENT where it has none."""
    match value:
        case str():
            return value.replace("{N}", str(n))
        case list():
            return [x for item in value if (x := _of_twin(item, n)) is not ABSENT]
        case dict() if any(isinstance(key, int) for key in value):
            return _of_twin(value.get(n, ABSENT), n)
        case dict():
            items = {_of_twin(key, n): _of_twin(item, n) for key, item in value.items()}
            return {key: item for key, item in items.items() if item is not ABSENT}
    return value


def _twins(entry: dict) -> list[dict]:
    """The entries that one stands for: its own, or one for each number of dimensions in `op`."""
    if not isinstance(entry.get("op"), dict):
        return [entry]
    twins = [_of_twin(entry, n) for n in entry["op"]]
    return [twin | {"doc": "".join(_flat([twin.get("doc", "")]))} for twin in twins]


# --- one entry ---


def _build(entry: dict, file: str, line: int, common: dict) -> Op:
    _refuse_unknown(entry, KEYS)
    if "op" not in entry:
        raise SchemaError("an entry needs 'op'")
    sig = schema.parse(entry["op"])
    body = _body(entry, sig)
    values = _defaults(entry, file, body, sig) | common | _read(entry, sig)
    out = values.get("out", {})
    for result, name in zip(sig.returns, out if len(out) == len(sig.returns) else ()):
        if not result.named:  # `out` may name results that the signature leaves unnamed
            result.name = name
    op = Op(sig, file, line, body, entry[body], **values)
    for message in _mistakes(op):
        raise SchemaError(f"{sig.text}: {message}")
    return op


def _refuse_unknown(entry: dict, known: list[str] | tuple[str, ...]) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"unknown key '{key}'; known: {', '.join(known)}")


def _body(entry: dict, sig: Signature) -> str:
    """The key that says how the operator is computed; `expr` beside others is its definition."""
    bodies = [b for b in BODIES if b in entry]
    if "kernel" in bodies or "cpp" in bodies:
        bodies = [b for b in bodies if b != "expr"]
    if len(bodies) != 1:
        raise SchemaError(f"{sig.name}: exactly one body of {(*BODIES,)} is needed, got {bodies}")
    return bodies[0]


def _defaults(entry: dict, file: str, body: str, sig: Signature) -> dict[str, Any]:
    """What follows from the rest of an entry where it does not say it."""
    tensors = all(r.type == "Tensor" for r in sig.returns)
    variants = ["inplace", "out"] if body == "pointwise" else ["out"]
    method = [f"Tensor.{sig.name}"] if sig.args and sig.args[0].name == "self" else []
    python = entry.get("python", [] if sig.mutates else [f"torch.{sig.name}"])
    pointwise, kinds = file.startswith("pointwise"), {body, *(a.type for a in sig.args)}
    return {
        "python": python + method,
        "variants": variants if tensors and not (sig.mutates or entry.get("view")) else [],
        "inplace_python": python if pointwise and len(sig.tensor_args) == 1 else [],
        "out_python": any(not name.startswith(("nn.functional.", "Tensor.")) for name in python),
        "out_dtype": "castable" if {"pointwise", "options"} & kinds else "same",
        "out_shape": "quiet" if "options" in kinds else "warned",
        "overlap": "exact" if pointwise else "",
        "named": len(sig.returns) > 1 and sig.returns[0].named,
    }


def _read(entry: dict, sig: Signature) -> dict[str, Any]:
    """The keys' values; where an entry may write one more briefly, in full."""
    values = {key: value for key, value in entry.items() if key in CHOICES}
    for key in {"check", "early_check", "inplace_check"} & values.keys():
        values[key] = [_check(item) for item in _flat(values[key])]
    if isinstance(calls := values.get("seen_as"), dict):
        values["seen_as"] = "\n".join(f"{condition} => {call}" for condition, call in calls.items())
    match values.get("grad"):
        case "none":
            values["grad"] = {}
        case str() as formula:  # one that stands alone is the first argument's
            values["grad"] = {sig.args[0].name: formula}
    if isinstance(rule := values.get("jvp"), str) and rule not in ("linear", "replay", "none"):
        values["jvp"] = {sig.returns[0].name: rule}  # and the first result's
    for key in {"aten", "aten_inplace", "aten_out"} & values.keys():
        if isinstance(aten := values[key], str):
            values[key] = {} if aten == "none" else {aten: ""}
        values[key] = {name: arguments or "" for name, arguments in values[key].items()}
    return values


def _check(item: Any) -> tuple[str, str]:
    """Condition and message."""
    if isinstance(item, str):
        return item, f"expected {item.replace('{', '').replace('}', '')}"
    if isinstance(item, dict) and len(item) == 1:
        return next((str(k), str(v)) for k, v in item.items())
    raise SchemaError(f"a check is 'condition' or 'condition: message', got {item}")


def _mistakes(op: Op) -> Iterator[str]:
    """What is wrong with an entry."""
    for key, choices in CHOICES.items():
        if choices and getattr(op, key) not in choices:
            yield f"{key} is one of {choices}, got '{getattr(op, key)}'"
    if isinstance(op.numbers, str) and op.numbers not in ("some", "all"):
        yield f"numbers is 'some', 'all' or a list of arguments, got '{op.numbers}'"
    for variant in {*op.variants} - {"inplace", "out"}:
        yield f"variants are inplace and out, got '{variant}'"
    if (op.host or op.kernels) and not (op.body == "cpp" and op.dispatched and not op.view):
        yield "'host' and 'kernels' are for cpp entries that are dispatched"
    if op.dispatched and op.grad is None and not op.replays_backward:
        yield "'grad' is missing: formulas, or 'none' where no argument has a gradient"
    if op.seen_whole and op.dispatched:
        yield "'seen_whole' is for composites; modes see this one"
    if op.dual and op.body != "pointwise":
        yield "'dual' is for pointwise operators"
    first = [a.name for a in op.sig.args[:1]]
    if op.inplace_grad and not (op.writes_into and list(op.grad or {}) == first):
        yield "'inplace_grad' is for pointwise operators with a gradient in the first argument"
    tensors = [r.name for r in op.sig.returns if r.type == "Tensor"]
    missing = [name for name in tensors if len(op.out.get(name, [])) < 2]
    if op.body == "kernel" and not op.mutates and missing:
        yield f"'out' must give sizes and dtype of {missing}"
    if strange := {*op.column_major, *op.strides} - {r.name for r in op.sig.returns}:
        yield f"'column_major' and 'strides' are of results, got {sorted(strange)}"
    lists = any(a.is_tensor_list for a in op.sig.args)
    if op.body == "kernel" and (lists or not op.sig.first_tensor):
        yield "a kernel takes tensors, of which the first is always given, and no lists of them"
    bools = all(op.sig.arg(name).type == "bool" for name in op.recorded)
    if op.recorded and not (bools and op.dispatched and op.grad and op.jvp):
        yield f"'recorded' lists bools of dispatched entries with 'grad', 'jvp', got {op.recorded}"
    for formula in (op.grad or {}).values():  # SyntaxError: statements are for `expr`
        ast.parse(str(formula).strip(), mode="eval")
    numbers = [] if isinstance(op.numbers, str) else op.numbers
    listed = [*op.contiguous, *op.matrices, *op.ordered, *numbers]
    for name in [*op.differentiated, *op.antiholomorphic, *listed]:
        if op.sig.arg(name) not in op.sig.tensors:  # arg() raises where there is none
            yield f"'{name}' stands where a tensor's name is expected (grad, numbers, contiguous, ...)"
        elif name in numbers and op.sig.arg(name).type != "Tensor":
            yield f"numbers stand for tensors that are always given, '{name}' may be None"


# --- the folder ---


def _items(path: Path) -> Iterator[tuple[int, dict]]:
    """The items of a file with the lines on which they start."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(path.open(encoding="utf-8"))
    root = loader.get_single_node()
    for node in root.value if root else []:
        line, keys = node.start_mark.line + 1, [key.value for key, _ in node.value]
        if len(keys) != len({*keys}):
            raise SchemaError(f"ops/{path.name}:{line}: a key is given twice among {keys}")
        yield line, loader.construct_object(node, deep=True)


def _entries(path: Path, file: str) -> Iterator[Op]:
    common: dict[str, Any] = {}
    for line, item in _items(path):
        try:
            if "file" in item:  # the first item: what it says of all entries
                common = item["file"]
                _refuse_unknown(common, FILE_KEYS)
            else:
                yield from (_build(twin, file, line, common) for twin in _twins(item))
        except (SchemaError, TypeError, ValueError, SyntaxError) as error:
            raise SchemaError(f"ops/{file}:{line}: {error}") from None


def load(folder: Path) -> list[Op]:
    """All entries of all files, in file-name order; SchemaError on the first that is wrong."""
    seen: dict[str, Op] = {}
    for path in sorted(folder.glob("**/*.yaml")):
        for op in _entries(path, str(path.relative_to(folder))):
            if op.ident in seen:
                raise op.fail(f"already defined at {seen[op.ident].where}")
            seen[op.ident] = op
    return [*seen.values()]
