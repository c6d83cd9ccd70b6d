"""The operator table: ops/**/*.yaml, loaded, validated and resolved into :class:`Op` records.

What an entry may say is declared in op.py; an unknown key is an error that names file and line.
"""

from __future__ import annotations

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


class _Mapping(dict):
    """A mapping of a file, which knows the line on which it starts."""

    line = 0


class _LineLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Makes _Mappings."""


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> _Mapping:
    mapping = _Mapping(loader.construct_mapping(node, deep=True))
    mapping.line = node.start_mark.line + 1
    return mapping


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _flat(items: list) -> list:
    """A list in the list, which a YAML alias makes, counts as its elements."""
    return [x for item in items for x in (_flat(item) if isinstance(item, list) else [item])]


# --- twins ---

_LEFT_OUT = object()


def _of_twin(value: Any, n: int) -> Any:
    """What a value of an entry with twins is for `n` dimensions: {N} is the number, and a mapping
    with numbers as its keys has a value for each."""
    if isinstance(value, str):
        return value.replace("{N}", str(n))
    if isinstance(value, list):
        return [x for x in (_of_twin(item, n) for item in value) if x is not _LEFT_OUT]
    if not isinstance(value, dict):
        return value
    if any(isinstance(key, int) for key in value):
        return _of_twin(value[n], n) if n in value else _LEFT_OUT
    pairs = ((_of_twin(key, n), _of_twin(item, n)) for key, item in value.items())
    return {key: item for key, item in pairs if item is not _LEFT_OUT}


def _twins(entry: dict) -> list[dict]:
    """The entries that one stands for: its own, or one for each number of dimensions in `op`."""
    if not isinstance(entry.get("op"), dict):
        return [entry]
    twins = [_of_twin(entry, n) for n in entry["op"]]
    for twin in twins:
        twin["doc"] = "".join(_flat([twin.get("doc", "")]))
    return twins


# --- one entry ---


def _build(entry: dict, file: str, line: int, common: dict) -> Op:
    try:
        _refuse_unknown(entry, KEYS)
        if "op" not in entry:
            raise SchemaError("an entry needs 'op'")
        sig = schema.parse(entry["op"])
        body = _body(entry, sig)
        values = _defaults(entry, file, body, sig) | common | _read(entry, sig)
    except SchemaError as error:
        raise SchemaError(f"ops/{file}:{line}: {error}") from None
    op = Op(sig, file, line, body, entry[body], **values)
    if len(op.out) == len(sig.returns):  # `out` may name results that the signature leaves unnamed
        for result, name in zip(sig.returns, op.out):
            if not result.named:
                result.name = name
    for message in _mistakes(op):
        raise op.fail(message)
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
    method = bool(sig.args) and sig.args[0].name == "self"
    return {
        "python": ([] if sig.mutates else [f"torch.{sig.name}"])
        + ([f"Tensor.{sig.name}"] if method else []),
        "variants": variants if tensors and not (sig.mutates or entry.get("view")) else [],
        "inplace_python": _unary_functions(entry, file, sig),
        "out_dtype": "castable" if body == "pointwise" else "same",
        "overlap": "exact" if file.startswith("pointwise") else "",
        "named": len(sig.returns) > 1 and sig.returns[0].named,
    }


def _unary_functions(entry: dict, file: str, sig: Signature) -> list[str]:
    """The functions of a pointwise operator with one tensor."""
    if not file.startswith("pointwise") or sum(a.is_tensor for a in sig.args) != 1:
        return []
    return entry.get("python", [f"torch.{sig.name}"])


def _read(entry: dict, sig: Signature) -> dict[str, Any]:
    """The keys' values; where an entry may write one more briefly, in full."""
    values = {key: value for key, value in entry.items() if key in CHOICES}
    for key in {"check", "inplace_check"} & values.keys():
        values[key] = [_check(item) for item in _flat(values[key])]
    match values.get("grad"):
        case "none":
            values["grad"] = {}
        case str() as formula:  # one that stands alone is the first argument's
            values["grad"] = {sig.args[0].name: formula}
    for key in {"aten", "aten_inplace"} & values.keys():
        if isinstance(aten := values[key], str):
            values[key] = [] if aten == "none" else [aten]
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
    if op.dual and op.body != "pointwise":
        yield "'dual' is for pointwise operators"
    if op.aten_inplace and "inplace" not in op.variants:
        yield "'aten_inplace' is for operators with an in-place form"
    first = [a.name for a in op.sig.args[:1]]
    if op.inplace_grad and not (op.writes_into and list(op.grad or {}) == first):
        yield "'inplace_grad' is for pointwise operators with a gradient in the first argument"
    if op.is_leaf != bool(op.no_definition or (op.expr and op.body != "expr")):
        yield "a kernel or cpp that is dispatched has 'expr' or 'no_definition', others not"
    if op.no_definition and op.expr:
        yield "'no_definition' stands beside 'expr'"
    missing = [r.name for r in op.sig.returns if r.type == "Tensor" and r.name not in op.out]
    if op.body == "kernel" and not op.mutates and missing:
        yield f"'out' must give sizes and dtype of {missing}"
    if op.body == "kernel" and (
        not op.sig.first_tensor or any(a.is_tensor_list for a in op.sig.args)
    ):
        yield "a kernel takes tensors, of which the first is always given, and no lists of them"
    if op.recorded and not (op.dispatched and op.grad and op.jvp):
        yield "'recorded' is for dispatched operators with 'grad' and 'jvp'"
    if any(op.sig.arg(name).type != "bool" for name in op.recorded):
        yield f"'recorded' lists bool arguments, got {op.recorded}"
    for key in ("grad", "gradgrad", "forward_ad", "no_samples"):
        reason = op.test.get(key, "checked")
        if not isinstance(reason, str) or not reason:
            yield f"test: '{key}' is the reason why it is not checked, got {reason}"
    grouped = [name for names, _ in op.gradient_groups for name in names]
    listed = [] if isinstance(op.numbers, str) else op.numbers
    for name in [*grouped, *op.antiholomorphic, *op.contiguous, *listed]:
        op.sig.arg(name)  # raises where there is none


# --- the folder ---


def _entries(path: Path, file: str) -> Iterator[Op]:
    listed = yaml.load(path.read_text(), _LineLoader) or []
    common: dict[str, Any] = {}
    if listed and "file" in listed[0]:  # what it says of all its entries
        first = listed.pop(0)
        common = first["file"]
        try:
            _refuse_unknown(common, FILE_KEYS)
        except SchemaError as error:
            raise SchemaError(f"ops/{file}:{first.line}: {error}") from None
    for entry in listed:
        for twin in _twins(entry):
            yield _build(twin, file, entry.line, common)


def load(folder: Path) -> list[Op]:
    """All entries of all files, in file-name order; SchemaError on the first that is wrong."""
    seen: dict[str, Op] = {}
    for path in sorted(folder.glob("**/*.yaml")):
        for op in _entries(path, str(path.relative_to(folder))):
            if op.ident in seen:
                raise op.fail(f"already defined at {seen[op.ident].where}")
            seen[op.ident] = op
    return [*seen.values()]
