"""The constant record of every operator, and the functions through which generic keys are reached.

A record holds the operator's schema, the types of its C++ arguments as one letter each, and a few
function pointers; src/ops/modes.h says what they are for. What can be worked out from the text is
worked out at run time, when someone asks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .op import Op
from .schema import Signature
from .text import INTERNAL, enumerator, initializer, join_lines, quoted

# Integers whose names say that they are a dimension, which nobody has wrapped, or a tensor's sizes.
NAMED_LETTERS = {("int", name): "u" for name in ("dim", "dim1", "dim2")} | {
    ("int[]", name): "e" for name in ("size", "sizes", "input_size", "base_size")
}


def namespace(op: Op) -> str:
    """aten for what PyTorch has too; taeda for the table's own."""
    return "aten" if (op.python if op.aten is None else op.aten) else "taeda"


def full_name(op: Op) -> tuple[str, str]:
    """("aten::add", "Tensor"): the overload's name is PyTorch's where the entry says it."""
    overload = next(iter(op.aten or {}), op.sig.overload)
    return f"{namespace(op)}::{op.name}", "" if overload == "default" else overload


def schema_text(op: Op) -> str:
    """The entry's signature under its public name. Our own types become PyTorch's, and views alias
    their argument, where it is read (schema_of in src/ops/operator.cc)."""
    return ".".join(filter(None, full_name(op))) + op.sig.text[op.sig.text.index("(") :]


def letters(sig: Signature) -> str:
    """One letter a C++ argument, as src/ops/boxing.cc spells them; "n": one int stands for N."""
    own = (NAMED_LETTERS.get((a.type, a.name)) or a.base.letters[a.optional] for a in sig.args)
    return "".join("n" if a.one_for_all else letter for a, letter in zip(sig.args, own))


def makes_its_result(op: Op) -> bool:
    """A composite that makes its result by itself: factories, and what gives a value of elements."""
    reads = op.sig.returns[0].type in ("bool", "Scalar") and bool(op.sig.tensors)
    return not op.dispatched and op.body == "cpp" and (op.is_factory or reads)


def batch(op: Op) -> str:
    """How vmap runs the operator: a word of op.BATCHES."""
    if op.batch:
        return op.batch
    if op.host == "sizes":
        return "refuse"
    if any(a.type == "Generator?" for a in op.sig.args):
        return "random"
    if op.body == "pointwise":
        return "pointwise"
    dims = op.body != "expr" and any(a.type.startswith("dim") for a in op.sig.args)
    if op.view or makes_its_result(op) or dims:
        return "leading"
    return "definition" if op.is_replayed else "loop"


def _flags(op: Op) -> str:
    into = op.body == "pointwise"
    flags = {
        "kDispatched": op.dispatched,
        "kInto": into,
        "kWrites": op.mutates,
        "kHasInplace": "inplace" in op.variants,
        "kHasOut": "out" in op.variants,
        "kOutExactOverlap": op.overlap in ("exact", "itself") and not into,
        "kOutNoOverlap": op.overlap == "none" and not into,
        "kOutGivesDtype": op.out_dtype in ("argument", "averaged", "given") or op.is_factory,
        "kLeaf": makes_its_result(op),
        "kAnyDevices": op.devices == "any",
        "kElementwise": op.is_pointwise,
        "kWhole": op.seen_whole,
        "kNoHistory": op.view == "strides" and op.grad == {},
    }
    return " | ".join(f"OperatorRecord::{name}" for name, on in flags.items() if on) or "0"


def declaration(op: Op) -> str:
    return f"namespace record {{ {INTERNAL} extern const OperatorRecord {op.ident}; }}"


def record_lines(op: Op) -> list[str]:
    """The record itself, behind the functions that it names."""
    (name, overload), word = full_name(op), batch(op)
    below = f"redispatch::{op.ident}" if op.dispatched else f"composite_{op.ident}"
    inplace = "inplace" in op.variants and op.body != "pointwise"
    # The fields batch_rule and invoke_definition.
    defined = word == "definition" or (word == "first" and op.is_replayed)
    rule = _boxed(f"definition::{op.ident}", defined)
    if word == "own":
        rule[0] = _boxed(f"batching::{op.ident}")[0]
    fields = [
        f'{quoted(schema_text(op))[:-1]}\\0" "{letters(op.sig)}"',
        *_boxed(below),
        *_boxed(f"op::{op.ident}_inplace", inplace),
        f"table_{op.ident}" if op.dispatched else "nullptr",
        f"forms_{op.ident}",
        *rule,
        f"sparse::{op.ident}" if op.sparse == "own" else "nullptr",
        _flags(op),
        f"OutDtype::{enumerator(op.out_dtype)}",
        f"OutShape::{enumerator(op.out_shape)}",
        f"OperatorRecord::{enumerator(op.autocast)}",
        f"OperatorRecord::{enumerator(word)}",
        f"OperatorRecord::Sparse::{enumerator(op.sparse or 'unable')}",
        f"OperatorRecord::Inverse::{enumerator(op.view or 'none')}",
        str(len(name)),
        str(len(overload)),
    ]
    rules = {"batching": word, "sparse": op.sparse}  # by namespace
    return [
        *(f"namespace {n} {{ Rule {op.ident}; }}" for n, said in rules.items() if said == "own"),
        f"static std::atomic<const Operator*> forms_{op.ident}[3];",
        *initializer(f"const OperatorRecord record::{op.ident}", fields),
    ]


def _boxed(function: str, given: bool = True) -> list[str]:
    """The fields for a function: its address, and what calls it with boxed arguments."""
    cast = f"reinterpret_cast<OperatorRecord::Function>(&{function})"
    return [cast, f"dispatch::invoker(&{function})"] if given else ["nullptr", "nullptr"]


def _aliases(op: Op) -> Iterator[str]:
    """The OverloadRecords of further names in PyTorch: of the plain form but the first, of the others
    all that the entry gives."""
    plain = [*(op.aten or {}).items()][1:]
    inplace, out = op.aten_inplace.items(), op.aten_out.items()
    for form, stem, overloads in (
        ("kPlain", op.name, plain),
        ("kInplace", f"{op.name}_", inplace),
        ("kOut", op.name, out),
    ):
        for name, arguments in overloads:
            whole = f"{namespace(op)}::{stem}.{'' if name == 'default' else name}"
            form_and_seen = f"Operator::Form::{form}, {str(name not in op.aten_unseen).lower()}"
            yield f'{{"{whole}", &record::{op.ident}, {quoted(arguments)}, {form_and_seen}}}'


def list_file(ops: list[Op]) -> str:
    """All records in the order of their names, and the overloads that they cover besides."""
    records = sorted(ops, key=full_name)
    for one, other in itertools.pairwise(records):
        if full_name(one) == full_name(other):
            raise other.fail(f"has the name of {one.where} in PyTorch's namespace; set 'aten'")
    aliases = sorted(alias for op in ops for alias in _aliases(op))
    spelled = [f"{{&record::{op.ident}, {quoted(op.seen_as)}}}" for op in records if op.seen_as]
    tags = [f"{{&record::{op.ident}, {quoted(' '.join(op.tags))}}}" for op in records if op.tags]
    pointwise = sorted({name.split(".")[-1] for op in ops if op.is_pointwise for name in op.python})
    lists = {
        "OperatorRecord* const kOperatorRecords": [f"&record::{op.ident}" for op in records],
        "OverloadRecord kOverloads": aliases,
        "SpellingRecord kSpellings": spelled,
        "SpellingRecord kTags": tags,
        "AutocastRecord kAutocastCuda": [
            f"{{&record::{op.ident}, AutocastRule::{enumerator(rule)}}}"
            for op in records
            if (rule := op.autocast_cuda or op.autocast) != "no_rule"
        ],
    }
    return join_lines(
        '#include "ops/autocast_rules.h"\n#include "ops/overloads.h"',
        "namespace taeda {",
        *map(declaration, records),
        *(line for name, rows in lists.items() for line in initializer(f"const {name}[]", rows)),
        *(f"const size_t kNum{n.split(' k')[-1]} = {len(rows)};" for n, rows in lists.items()),
        "const char* const kPointwiseFunctions =",
        *(quoted(f"{name} ") for name in pointwise),  # each on a line of its own
        ";",
        "}  // namespace taeda",
    )
