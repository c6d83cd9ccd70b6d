"""Every operator of PyTorch's list has a C++ function, or a reason here why it has none."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

from gen.autograd import add_dual_operators
from gen.cpp import Table
from gen.headers import method_files, public_header
from gen.names import python_names
from gen.table import load

ROOT = Path(__file__).resolve().parents[2]

#: Operators whose C++ function has another name, or several; signs stand for themselves.
SPELLED = {
    **{
        f"__r{name}__": f"operator{sign}"
        for name, sign in zip("add and div mod mul or sub xor".split(), "+&/%*|-^", strict=True)
    },
    **dict.fromkeys(
        "bfloat16 bool byte cdouble cfloat chalf char double float half int long short".split(),
        "to_dtype",
    ),
    "__getitem__": "operator[]",
    "__rmatmul__": "matmul",
    "__rpow__": "pow",
    "H": "mH",
    "T": "t",
    "lu": "linalg_lu_factor_ex",
    "nn.functional.dropout2d": "feature_dropout",
    "nn.functional.dropout3d": "feature_dropout",
    "nn.functional.grid_sample": "grid_sampler",
    "nn.functional.upsample_bilinear": "interpolate",
    "nn.functional.upsample_nearest": "interpolate",
    "sparse.mm": "mm",
    "to": "to_dtype to_device",
    "to_sparse": "_to_sparse _to_sparse_compressed",
    "unique": "_unique2 unique_dim",
    "unique_consecutive": "_unique_consecutive",
    # those that are in no documentation of PyTorch's
    "_batch_norm_with_update": "native_batch_norm",
    "_native_batch_norm_legit": "native_batch_norm",
    "_softmax_backward_data": "softmax_backward",
    "grid_sampler_2d": "grid_sampler",
    "grid_sampler_3d": "grid_sampler",
    "native_dropout_backward": "_dropout_backward",
}
#: Why others have none (docs/tutorials/cpp.md).
WITHOUT = {
    "broadcast_shapes": "of sizes alone, which Python's tuples are here",
    "nn.functional.multi_head_attention_forward": "a layer's function; C++ has no such layer",
}
#: The list in tools/data lacks those that PyTorch does not document.
UNDOCUMENTED = (
    "_batch_norm_with_update _chunk_cat _native_batch_norm_legit _segment_reduce "
    "_softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate "
    "_upsample_bilinear2d_aa grid_sampler_2d grid_sampler_3d max_pool2d_with_indices_backward "
    "native_batch_norm native_dropout_backward native_group_norm native_layer_norm _safe_softmax"
).split()


@cache
def table() -> Table:
    return Table(add_dual_operators(load(ROOT / "ops")))


@cache
def functions() -> frozenset[str]:
    """The functions and methods of the headers, generated and written by hand."""
    methods = method_files(table())["include/taeda/tensor_methods.inc"]
    texts = [public_header(table()).partition("}  // namespace op")[2], methods]
    texts += [p.read_text(encoding="utf-8") for p in (ROOT / "include" / "taeda").glob("*.h")]
    return frozenset(re.findall(r"(operator(?:\[\]|[^\w\s(])|\b\w+)\(", "\n".join(texts)))


@cache
def names_in_python() -> dict[tuple[str, str], set[str]]:
    """The C++ functions by owner and name in Python."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, calls in python_names(table().ops).items():
        found[name] = {call.op.name for call in calls}
    return found


def has_function(row: str) -> bool:
    if row in SPELLED:
        return functions().issuperset(SPELLED[row].split())
    owner, _, name = row.rpartition(".")
    homes = (owner,) if owner else ("torch", "Tensor")
    called = set().union(*(names_in_python().get((home, name), set()) for home in homes))
    # Modules of functions that C++ has under the names of torch's.
    same = owner in ("", "nn.functional") and name in functions()
    return same or bool(called & functions())


def rows() -> list[str]:
    with (ROOT / "tools" / "data" / "operators.csv").open(encoding="utf-8") as file:
        return [row["name"] for row in csv.DictReader(file)] + UNDOCUMENTED


def test_every_operator_has_a_function_or_a_reason() -> None:
    missing = [row for row in rows() if row not in WITHOUT and not has_function(row)]
    assert missing == [], "give them C++ functions, or say why not"


def test_names_and_reasons_are_needed() -> None:
    assert {*SPELLED, *WITHOUT} <= {*rows()}
    assert not SPELLED.keys() & WITHOUT.keys()
    assert [row for row in WITHOUT if has_function(row)] == []
