"""The operator table: ops/**/*.yaml, loaded, validated and resolved into :class:`Op` records.

``KEYS`` lists every key that an entry may have, ``FILE_KEYS`` those that a file's first item may
say of all its entries (``- file: {optimize: size}``); an unknown one is an error that names file and
line.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from . import schema
from .schema import SchemaError, Signature

BODIES = ("expr", "pointwise", "kernel", "cpp")
KEYS = {
    "op": "signature in PyTorch's schema language, or one for each number of dimensions (twins)",
    "aten": "PyTorch's overloads that it stands for, the first of which is its own name in torch.ops.aten; 'none': it is not PyTorch's",
    "python": "where Python finds it: torch.NAME, Tensor.NAME, nn.functional.NAME, ..., foreach.NAME (torch._foreach_NAME; NAME_: in place only)",
    "hidden": "true: an overload of old programs, the last of its name, which messages, stubs and docstrings leave out",
    "doc": "documentation with an example",
    "types": "dtypes that the tensor arguments may have",
    "check": "the contract: conditions and their messages",
    "devices": "'same', or 'any' where the tensor arguments may lie on different devices",
    "batch": "how vmap runs it on a batch, where that does not follow from the entry (BATCHES)",
    "autocast": "what torch.autocast converts floating arguments to",
    "numbers": "tensor arguments for which Python may give a number; 'some': any but not all, 'all': any",
    "promote": "how result and compute dtype follow from the arguments (pointwise)",
    "variants": "which of inplace and out exist",
    "grad": "gradient formulas by argument, or 'none'",
    "inplace_grad": "the gradient formula of the in-place form, from the `result` that lies where the argument did; without it a copy of the argument is kept",
    "inplace_check": "what that formula needs, checked in backward",
    "dual": "true, beside 'grad': the functor on dual numbers computes the gradient, the formula where it is differentiated further",
    "antiholomorphic": "tensor arguments of whose conjugates a pointwise operator is a holomorphic function",
    "jvp": "forward-mode rule: a formula (several results: by result), 'linear', 'replay' or 'none'",
    "recorded": "bool arguments that autograd and forward mode set where they record the call, for results that only derivatives read",
    "overlap": "how out= may overlap the tensor arguments: 'exact', it may be one of them but not overlap it in part; 'none', not at all",
    "out": "sizes and dtype of each result of a kernel",
    "contiguous": "tensor arguments that the kernel wants row-major",
    "view": "results are views of the first argument",
    "expr": "definition in terms of other operators",
    "no_definition": "beside a kernel or cpp that is dispatched: why there is no 'expr', and the test that stands in for it",
    "pointwise": "functor, or functors chosen by a string argument",
    "kernel": "function on Views in src/kernels/cpu",
    "cpp": "hand-written function on Tensors in src/ops",
    "kernels": "the kernels that a hand-written function launches (src/kernels/hand_called.yaml)",
    "host": "true: a hand-written function reads or writes elements itself; 'sizes': and the result's sizes depend on them",
    "test": "inputs for the generated tests",
    "node": "name of the backward node where it is not the operator's, with 'Backward' and a number, or without",
}
FILE_KEYS = {
    "optimize": "'size' for families that are seldom called or spend their time in large kernels: the C++ generated for them is compiled with -Os",
}
TYPE_SETS = (  # only "any" has the storage types (include/taeda/dtype.h)
    *("any", "all", "numeric", "real", "inexact", "floating", "integral", "integral_bool", "bool"),
)
PROMOTIONS = {
    "same": "the promoted type of the arguments",
    "float": "as same, integers becoming the default floating type",
    "bool": "computed in the promoted type, bool result",
    "real": "computed in the promoted type; complex arguments give real results",
    "masked": "as same, bool arguments aside: they choose among the others' elements",
}
AUTOCASTS = {
    "lower": "the block's dtype (bfloat16): fast, and exact enough for sums of products",
    "float32": "float32: losses, and what half precision has no kernel for",
    "widest": "the widest type among the arguments",
    "none": "nothing, nor do the operators that it is made of convert theirs",
}
BATCHES = {
    "pointwise": "arguments broadcast: dimensions are put behind the batch's until ranks agree",
    "leading": "every tensor gets the batch in front, dim and dims count one more, sizes begin with it",
    "first": "as leading where the batch is the first tensor's alone, else by `expr` or sample by sample",
    "along": "as leading, but for `index`: all samples have the same, else sample by sample",
    "fold": "the batch is merged into the first dimension of every tensor and of sizes",
    "channels": "the batch is merged into the channels: dimension 1, 0 of vectors; groups are as many more",
    "random": "as vmap's `randomness` says",
    "definition": "`expr` beside a kernel, on the batched arguments",
    "own": "the function batching::NAME in src/ops/batching",
    "loop": "sample by sample",
    "refuse": "an error",
}


@dataclass
class Op:
    sig: Signature
    file: str
    line: int
    body: str  # one of BODIES
    source: Any  # the value of that key
    python: list[str]
    doc: str = ""
    types: str = "all"
    check: list[tuple[str, str]] = field(default_factory=list)
    devices: str = "same"
    promote: str = "same"
    autocast: str | None = None
    batch: str | None = None  # one of BATCHES; None: as the entry says
    numbers: str | list[str] = field(default_factory=list)
    variants: list[str] = field(default_factory=list)
    grad: dict[str, str] | None = None  # None: not given; {}: not differentiable
    inplace_grad: str = ""  # of the only differentiable argument
    inplace_check: list[tuple[str, str]] = field(default_factory=list)
    dual: bool = False  # the functor on dual numbers gives the gradient
    dual_grad: dict[str, str] = field(default_factory=dict)  # calls that do, see autograd.py
    antiholomorphic: list[str] = field(default_factory=list)
    jvp: Any = None
    recorded: list[str] = field(default_factory=list)
    out: dict[str, list[str]] = field(default_factory=dict)
    contiguous: list[str] = field(default_factory=list)
    view: bool = False
    expr: str | None = None  # the definition, also beside a kernel
    no_definition: str = ""  # the reason
    test: dict[str, Any] = field(default_factory=dict)
    node: str = ""
    overlap: str = ""
    kernels: list[str] = field(default_factory=list)
    host: bool | str = False
    hidden: bool = False
    aten: list[str] | None = None  # names of PyTorch's overloads; []: an operator of our own
    optimize: str = "speed"  # or size, for the whole file
    named: bool = False  # several results, named by the signature: a named tuple in Python

    @property
    def name(self) -> str:
        return self.sig.name

    @property
    def ident(self) -> str:
        return self.sig.ident

    @property
    def where(self) -> str:
        return f"ops/{self.file}:{self.line}"

    @property
    def family(self) -> str:
        """The folder of the entry's file, or the file itself where it lies in none."""
        return self.file.split("/")[0].removesuffix(".yaml")

    @property
    def mutates(self) -> bool:
        return self.sig.mutates

    @property
    def dispatched(self) -> bool:
        """Whether calls go through a dispatch table; composites are plain functions."""
        if self.body in ("pointwise", "kernel") or self.view:
            return True
        return self.body == "cpp" and (self.grad is not None or self.expr is not None)

    @property
    def is_leaf(self) -> bool:
        """Whether its values come from code that is written by hand, which a definition checks."""
        return self.dispatched and self.body in ("kernel", "cpp") and not self.view

    @property
    def replays_backward(self) -> bool:
        """Whether backward differentiates the definition, since no formula is given."""
        return self.grad is None and self.expr is not None and not self.mutates

    @property
    def replays_forward(self) -> bool:
        """Whether forward mode runs the definition."""
        rule = self.jvp in (None, "replay") and self.grad != {}
        return rule and self.expr is not None and not self.mutates

    @property
    def is_replayed(self) -> bool:
        """Whether a definition beside a kernel is compiled; tests evaluate the others' text."""
        batched = self.batch in ("definition", "first") and self.expr is not None
        return self.is_leaf and (self.replays_backward or self.replays_forward or batched)

    @property
    def returns_list(self) -> bool:
        """Whether the result is a list of tensors: one gradient an element."""
        return self.sig.returns[0].type == "Tensor[]"

    @property
    def functors(self) -> dict[str, str]:
        """Value of the choosing string argument ('' when there is none) -> functor."""
        return self.source if isinstance(self.source, dict) else {"": self.source}

    def accepts_number(self, arg: schema.Argument) -> bool:
        """Whether a Python number may stand for this tensor argument."""
        if isinstance(self.numbers, str):
            return arg.type == "Tensor"
        return arg.name in self.numbers

    @property
    def selector(self) -> schema.Argument | None:
        """The string argument that chooses among several functors."""
        if self.body == "pointwise" and isinstance(self.source, dict):
            return next(a for a in self.sig.args if a.type in ("str", "str?"))
        return None

    @property
    def params(self) -> list[schema.Argument]:
        """The non-tensor arguments that a pointwise functor holds, in schema order."""
        chooser = self.selector
        return [a for a in self.sig.args if not a.is_tensor and a is not chooser]

    @property
    def changes_layout(self) -> bool:
        """Whether the in-place form changes sizes and strides, not values."""
        return (
            "inplace" in self.variants
            and self.body != "pointwise"
            and (self.view or self.family == "shape")
        )

    def fail(self, message: str) -> SchemaError:
        return SchemaError(f"{self.where}: {self.sig.text}: {message}")


class _LineLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Remembers the line on which each mapping starts."""


def _mapping(loader: _LineLoader, node: yaml.MappingNode) -> dict:
    mapping = loader.construct_mapping(node, deep=True)
    mapping["__line__"] = node.start_mark.line + 1
    return mapping


_LineLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


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
    twins = [_of_twin(entry, n) for n in _plain(entry["op"])]
    for twin in twins:
        twin["doc"] = "".join(_flat([twin.get("doc", "")]))
    return twins


def _plain(value: Any) -> Any:
    """Drops the line marks of nested mappings."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k != "__line__"}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def gradient_groups(op: Op) -> list[tuple[list[str], str]]:
    """Each formula with the arguments whose gradients it gives, in the order of its results."""
    return [
        ([p.strip() for p in key.split(",")], str(text)) for key, text in (op.grad or {}).items()
    ]


def _flat(items: list) -> list:
    """A list in the list, which a YAML alias makes, counts as its elements."""
    return [x for item in items for x in (_flat(item) if isinstance(item, list) else [item])]


def _overloads(value: str | list[str]) -> list[str]:
    """The names of overloads that an entry lists; one may stand alone."""
    return [] if value == "none" else [value] if isinstance(value, str) else value


def _checks(listed: list, where: str) -> list[tuple[str, str]]:
    checks = []
    for item in _flat(listed):
        if isinstance(item, str):
            checks.append((item, f"expected {item.replace('{', '').replace('}', '')}"))
        elif isinstance(item, dict) and len(item) == 1:
            checks.append(next((str(k), str(v)) for k, v in item.items()))
        else:
            raise SchemaError(
                f"{where}: a check is 'condition' or 'condition: message', got {item}"
            )
    return checks


def _gradients(value: Any, sig: Signature) -> dict[str, str]:
    """Formulas by argument; one that stands alone is the first argument's."""
    if value == "none":
        return {}
    return {sig.args[0].name: value} if isinstance(value, str) else value


def _default_python(sig: Signature) -> list[str]:
    method = bool(sig.args) and sig.args[0].name == "self"
    names = [] if sig.mutates else [f"torch.{sig.name}"]
    return names + ([f"Tensor.{sig.name}"] if method else [])


def _default_variants(body: str, sig: Signature, entry: dict) -> list[str]:
    if sig.mutates or entry.get("view") or not all(r.type == "Tensor" for r in sig.returns):
        return []
    return ["inplace", "out"] if body == "pointwise" else ["out"]


def _body(entry: dict, sig: Signature, where: str) -> str:
    """The key that says how the operator is computed; `expr` beside others is its definition."""
    bodies = [b for b in BODIES if b in entry]
    if "kernel" in bodies or "cpp" in bodies:
        bodies = [b for b in bodies if b != "expr"]
    if len(bodies) != 1:
        raise SchemaError(
            f"{where}: {sig.name}: exactly one body of {BODIES} is needed, got {bodies}"
        )
    return bodies[0]


def _build(entry: dict, file: str, common: dict) -> Op:
    line = entry["__line__"]
    where = f"ops/{file}:{line}"
    entry = _plain(entry)
    for key in entry:
        if key not in KEYS:
            raise SchemaError(f"{where}: unknown key '{key}'; known: {', '.join(KEYS)}")
    if "op" not in entry:
        raise SchemaError(f"{where}: an entry needs 'op'")
    try:
        sig = schema.parse(entry["op"])
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None
    body = _body(entry, sig, where)
    values: dict[str, Any] = {
        **common,
        "python": _default_python(sig),
        "variants": _default_variants(body, sig, entry),
        "dual": body == "pointwise" and "grad" not in entry,
        "overlap": "exact" if file.startswith("pointwise") else "",
        "named": len(sig.returns) > 1 and sig.returns[0].named,
    }
    values |= {key: entry[key] for key in entry if key not in ("op", "pointwise", "kernel", "cpp")}
    for key in {"check", "inplace_check"} & entry.keys():
        values[key] = _checks(entry[key], where)
    if "grad" in entry:
        values["grad"] = _gradients(entry["grad"], sig)
    if "aten" in entry:
        values["aten"] = _overloads(entry["aten"])
    op = Op(sig, file, line, body, entry[body], **values)
    if len(op.out) == len(sig.returns):  # `out` may name results that the signature leaves unnamed
        for result, name in zip(sig.returns, op.out):
            if not result.named:
                result.name = name
    _validate(op)
    return op


# Keys whose value is one of a few.
CHOICES: dict[str, tuple] = {
    "types": TYPE_SETS,
    "promote": tuple(PROMOTIONS),
    "devices": ("same", "any"),
    "host": (False, True, "sizes"),
    "optimize": ("speed", "size"),
    "overlap": ("", "exact", "none"),
    "autocast": (None, *AUTOCASTS),
    "batch": (None, *BATCHES),
}


def _validate(op: Op) -> None:
    for key, choices in CHOICES.items():
        if getattr(op, key) not in choices:
            raise op.fail(f"{key} is one of {choices}, got '{getattr(op, key)}'")
    if isinstance(op.numbers, str) and op.numbers not in ("some", "all"):
        raise op.fail(f"numbers is 'some', 'all' or a list of arguments, got '{op.numbers}'")
    for variant in op.variants:
        if variant not in ("inplace", "out"):
            raise op.fail(f"variants are inplace and out, got '{variant}'")
    if (op.host or op.kernels) and not (op.body == "cpp" and op.dispatched and not op.view):
        raise op.fail("'host' and 'kernels' are for cpp entries that are dispatched")
    if op.dual and op.body != "pointwise":
        raise op.fail("'dual' is for pointwise operators")
    first = [a.name for a in op.sig.args[:1]]
    writes_first = op.body == "pointwise" and "inplace" in op.variants
    if op.inplace_grad and not (writes_first and list(op.grad or {}) == first):
        raise op.fail(
            "'inplace_grad' is for pointwise operators with a gradient in the first argument"
        )
    if op.is_leaf != bool(op.no_definition or (op.expr and op.body != "expr")):
        raise op.fail(
            "a kernel or cpp that is dispatched has 'expr' or 'no_definition', others not"
        )
    if op.no_definition and op.expr:
        raise op.fail("'no_definition' stands beside 'expr'")
    if op.body == "kernel" and not op.mutates:
        missing = [r.name for r in op.sig.returns if r.type == "Tensor" and r.name not in op.out]
        if missing:
            raise op.fail(f"'out' must give sizes and dtype of {missing}")
    if op.recorded and not (op.dispatched and op.grad and op.jvp):
        raise op.fail("'recorded' is for dispatched operators with 'grad' and 'jvp'")
    if any(op.sig.arg(name).type != "bool" for name in op.recorded):
        raise op.fail(f"'recorded' lists bool arguments, got {op.recorded}")
    for key in ("grad", "gradgrad", "forward_ad", "no_samples"):
        reason = op.test.get(key, "checked")
        if not isinstance(reason, str) or not reason:
            raise op.fail(f"test: '{key}' is the reason why it is not checked, got {reason}")
    grouped = [name for names, _ in gradient_groups(op) for name in names]
    listed = [] if isinstance(op.numbers, str) else op.numbers
    for name in [*grouped, *op.antiholomorphic, *op.contiguous, *listed]:
        op.sig.arg(name)


def _common(entry: dict, file: str) -> dict[str, Any]:
    """What the first item of a file, `- file: {...}`, says of all its entries."""
    common = _plain(entry["file"])
    for key in common:
        if key not in FILE_KEYS:
            known = ", ".join(FILE_KEYS)
            raise SchemaError(
                f"ops/{file}:{entry['__line__']}: unknown key '{key}'; known: {known}"
            )
    return common


def load(folder: Path) -> list[Op]:
    """All entries of all files, in file-name order; SchemaError on the first that is wrong."""
    ops: list[Op] = []
    seen: dict[str, Op] = {}
    for path in sorted(folder.glob("**/*.yaml")):
        listed = yaml.load(path.read_text(), _LineLoader) or []
        file = str(path.relative_to(folder))
        common = _common(listed.pop(0), file) if listed and "file" in listed[0] else {}
        for entry in itertools.chain.from_iterable(map(_twins, listed)):
            op = _build(entry, file, common)
            if op.ident in seen:
                raise op.fail(f"already defined at {seen[op.ident].where}")
            seen[op.ident] = op
            ops.append(op)
    return ops
