"""Strides of elementwise results for operands whose memory lies in all kinds of orders: PyTorch's.

Each operator of `ops/pointwise` that PyTorch has, on operands drawn by a seed: dense, permuted,
sliced, channels last, expanded, of fewer dimensions, of size 1, without dimensions; of one dtype
and of mixed ones.
"""

from __future__ import annotations

import random
import warnings
import zlib
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load

import taeda

torch = pytest.importorskip("torch")

DRAWS = 12
SHAPES = [
    (3, 4),
    (4, 1),
    (2, 3, 4),
    (1, 3, 1),
    (2, 1, 3, 2),
    (2, 3, 2, 4),
    (2, 3, 1, 1),
    (1, 2, 1, 2, 3),
]
# Positional arguments behind the tensors that have no default.
MORE = {"threshold": (0.5, 2), "masked_fill_Scalar": (1,), "mvlgamma": (1,), "clamp": (0,)}
SKIPPED = {
    "ldexp",  # 2 ** other lies row-major, in PyTorch's composite alone as `other`
    "prelu",  # a weight for each channel
    "masked_fill_Tensor",  # the value has no dimensions
}
# Whose tensors have one dtype.
ALIKE = {"complex", "polar", "lerp", "frexp", "heaviside", "isclose"}


def found(lib: Any, op: Op) -> Any:
    """The library's function of an operator; None where it has none."""
    names = [name for name in op.python if not name.startswith(("foreach.", "Tensor."))]
    if not names or not op.sig.tensor_args:
        return None
    path = names[0].removeprefix("torch.").split(".")
    return reduce(lambda at, name: getattr(at, name, None), path, lib)


OPS = [
    op
    for op in load(Path(__file__).parents[2] / "ops")
    if op.family == "pointwise" and found(torch, op) and op.ident not in SKIPPED
    if op.ident in MORE or all(a.is_tensor or a.default is not None for a in op.sig.args)
]


def layout(draw: random.Random, sizes: tuple[int, ...]) -> dict[str, Any]:
    """How an operand is made, in either library."""
    shape, ndim = list(sizes), len(sizes)
    kind = draw.choice("dense permuted permuted sliced last expanded fewer ones number".split())
    order = draw.sample(range(ndim), ndim)
    if kind == "fewer":
        shape = shape[draw.randrange(ndim) :]
        order = draw.sample(range(len(shape)), len(shape))
    if kind == "ones":
        shape[draw.randrange(ndim)] = 1
    return {"kind": kind, "shape": shape, "order": order, "dim": draw.randrange(max(len(shape), 1))}


def operand(lib: Any, how: dict[str, Any], dtype: str) -> Any:
    shape, order, dim = how["shape"], how["order"], how["dim"]
    kind = how["kind"]
    if kind == "number":
        return lib.ones((), dtype=getattr(lib, dtype))
    made = lib.ones([shape[d] for d in order], dtype=getattr(lib, dtype))
    made = made.permute([order.index(d) for d in range(len(shape))])
    if kind == "dense":
        made = made.contiguous()
    if kind == "last" and len(shape) in (4, 5):
        made = made.contiguous(
            memory_format=lib.channels_last if len(shape) == 4 else lib.channels_last_3d
        )
    if kind == "sliced":
        made = lib.cat([made, made], dim).narrow(dim, 1, shape[dim])
    if kind == "expanded":
        made = made.narrow(dim, 0, 1).expand(shape)
    return made


def dtypes_of(op: Op, draw: random.Random) -> list[str]:
    """Those of the operands; PyTorch converts them to one dtype first, which makes them dense."""
    if op.types in ("integral", "integral_bool"):
        return ["int64", draw.choice(["int64", "int32"]), "int64"]
    if op.ident.startswith("masked_fill"):
        return ["float64", "bool", "float64"]
    if op.ident.startswith("where"):
        return ["bool", "float64", "float64"]
    if op.types == "floating" or op.ident in ALIKE:
        return ["float64"] * 3
    first = draw.choice(["float64", "float64", "complex128", "int32"])
    rest = [draw.choice(["float64", "float64", "float32"]) for _ in range(2)]
    return [first, *rest]


def results(lib: Any, op: Op, hows: list[dict[str, Any]], dtypes: list[str]) -> Any:
    operands = [operand(lib, how, dtype) for how, dtype in zip(hows, dtypes, strict=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = found(lib, op)(*operands, *MORE.get(op.ident, ()))
    made = made if isinstance(made, (tuple, list)) else [made]
    return [(tuple(one.shape), _strides(one)) for one in made], [t.stride() for t in operands]


def _strides(t: Any) -> list[int]:
    """Those of dimensions with more than one element: others say nothing of where elements lie."""
    return [stride for size, stride in zip(t.shape, t.stride(), strict=True) if size > 1]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.ident)
def test_results_are_laid_out_as_pytorchs(op: Op) -> None:
    draw = random.Random(zlib.crc32(op.ident.encode()))
    compared = 0
    for _ in range(DRAWS):
        shape = draw.choice(SHAPES)
        hows = [layout(draw, shape) for _ in op.sig.tensor_args]
        dtypes = dtypes_of(op, draw)
        try:
            theirs, strides = results(torch, op, hows, dtypes)
        except (RuntimeError, TypeError):  # a dtype that the operator does not take
            continue
        ours, _ = results(taeda, op, hows, dtypes)
        assert ours == theirs, (hows, dtypes, strides)
        compared += 1
    assert compared > DRAWS // 3
