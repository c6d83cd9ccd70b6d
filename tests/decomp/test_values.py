"""Decompositions give what PyTorch's operators give, and are made of other operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.decomp import samples

import taeda
from taeda._decomp import core, core_aten_decompositions, decomposition_table
from taeda.fx.experimental.proxy_tensor import make_fx

torch = pytest.importorskip("torch")
LINES = samples.lines()
#: Results of which PyTorch leaves the values open: what it saves for its own backward.
#: How traces show one core operator: arange.start_step, clamp and squeeze.dims of fewer arguments.
STAY = {f"aten.arange.{name}" for name in ("start", "default")} | {"aten.squeeze.dim"}
STAY |= {f"aten.clamp_{end}.{name}" for end in ("min", "max") for name in ("default", "Tensor")}
OPEN = {"log_sigmoid_forward": 1}


def leaves(result: Any) -> list[Any]:
    items = result if isinstance(result, tuple | list) else [result]
    return [item for item in items if item is not None]


def check(line: str, dtype: str | None = None, tolerance: float = 2e-5) -> None:
    name, args, kwargs = samples.case(line, taeda)
    _, same, same_kwargs = samples.case(line, torch)
    if dtype is not None:
        args, same = in_dtype(args, taeda, dtype), in_dtype(same, torch, dtype)
    expected = leaves(samples.overload(torch, name)(*same, **same_kwargs))
    got = leaves(decomposition_table[samples.overload(taeda, name)](*args, **kwargs))
    count = OPEN.get(name, len(expected))
    assert len(got) == len(expected)
    for a, b in zip(got[:count], expected[:count]):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype) == str(b.dtype)
        np.testing.assert_allclose(
            a.to(taeda.float64).numpy(), b.to(torch.float64).numpy(), tolerance, tolerance
        )
    for a, b in zip(args, same):  # what is written in place
        if isinstance(a, taeda.Tensor) and a.is_floating_point():
            np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), 1e-5, 1e-6)


def in_dtype(args: tuple, library: Any, name: str) -> tuple:
    def cast(a: Any) -> Any:
        is_real = isinstance(a, library.Tensor) and a.is_floating_point()
        return a.to(getattr(library, name)) if is_real else a

    return tuple(cast(a) for a in args)


@pytest.mark.parametrize("line", LINES)
def test_a_decomposition_gives_the_numbers_of_the_operator(line: str) -> None:
    check(line)


HALF = [
    line for line in LINES
    if line.startswith(("silu", "gelu", "mish", "softplus", "elu", "softmax", "native_layer_norm "))
]  # fmt: skip


@pytest.mark.parametrize("line", HALF)
def test_half_precision_is_computed_in_single(line: str) -> None:
    check(line, "bfloat16", 2e-2)


def nodes(line: str, table: dict) -> list[Any]:
    name, args, kwargs = samples.case(line, taeda)
    function = decomposition_table[samples.overload(taeda, name)]
    graph = make_fx(lambda *a: function(*a, **kwargs), table)(*args).graph
    return [
        n.target for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_opname")
    ]


@pytest.mark.parametrize("line", LINES)
def test_traces_hold_no_operator_that_the_table_decomposes(line: str) -> None:
    table = core_aten_decompositions()
    targets = nodes(line, table)
    assert not [op for op in targets if op in table and str(op) not in STAY]
    assert not [op for op in targets if op.namespace == "taeda" and op._opname != "_rnn_layer"]


def test_the_core_operators_stay() -> None:
    table = core_aten_decompositions()
    aten = taeda.ops.aten
    for op in (aten.mm.default, aten.convolution.default, aten._softmax.default, aten.gelu.default):
        assert core.is_core(op)
        assert op not in table
    assert not core.is_core(aten.silu.default)
    assert aten.native_layer_norm.default in decomposition_table


def test_as_many_operators_of_pytorchs_table_decompose_here() -> None:
    from torch._decomp import core_aten_decompositions as theirs

    ours = set(map(str, core_aten_decompositions()))
    names = [str(op) for op in theirs() if str(op).startswith("aten.")]
    assert len([name for name in names if name in ours]) >= 0.65 * len(names)
