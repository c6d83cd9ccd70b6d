"""Every operator of the table that has samples, under vmap against a loop over the samples of a
batch: with the batch in all tensors, or in the first or the last alone. Other dimensions, nesting
and derivatives are those of tests/func/test_vmap.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gen.records import batch
from gen.table import Op, load
from tests.ops import samples as grid

import taeda
from taeda import Tensor

BATCH = 3
OPS = [
    op
    for op in load(Path(__file__).resolve().parents[2] / "ops")
    if op.python
    and grid.samples(op)
    and any(a.is_tensor or a.is_tensor_list for a in op.sig.args)
    and not any(a.type == "Generator?" for a in op.sig.args)
    and batch(op) != "random"
]
# Their results' shapes depend on values: vmap says so.
DATA_DEPENDENT = {
    "argwhere", "embedding_renorm_", "masked_select", "narrow_Tensor", "nonzero_numpy", "one_hot",
    "repeat_interleave_self_tensor", "tensor_split_tensor", "where_condition",
}  # fmt: skip


def tensors_of(args: tuple, kwargs: dict) -> list[Tensor]:
    found = []
    for value in (*args, *kwargs.values()):
        found += value if isinstance(value, (list, tuple)) else [value]
    return [t for t in found if isinstance(t, Tensor)]


def with_tensors(args: tuple, kwargs: dict, tensors: list) -> tuple[tuple, dict]:
    """The arguments with other tensors in the places of theirs."""
    rest = iter(tensors)

    def put(value: Any) -> Any:
        if isinstance(value, Tensor):
            return next(rest)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            return type(value)(put(v) for v in value)
        return value

    return tuple(put(v) for v in args), {k: put(v) for k, v in kwargs.items()}


class Case:
    """A sample of an operator: the call as a function of its tensors, and a batch of those."""

    def __init__(self, op: Op, sample: str, dtype: str) -> None:
        calls = []
        for i in range(BATCH):
            maker = grid.maker(op, taeda, dtype, "plain", sample)
            maker.random = np.random.default_rng(maker.seed + i)
            calls.append(maker.arguments(sample))
        self.args, self.kwargs = calls[0]
        self.batches = [taeda.stack(column) for column in zip(*(tensors_of(*c) for c in calls))]
        self.place = grid.place(op, taeda)

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        args, kwargs = with_tensors(self.args, self.kwargs, list(tensors))
        result = self.place(*args, **kwargs)
        found = result if isinstance(result, (tuple, list)) else (result,)
        return tuple(t for t in found if isinstance(t, Tensor))

    def choices(self) -> list[tuple[int | None, ...]]:
        """Values of in_dims: all batched, only the first, only the last."""
        count = len(self.batches)
        chosen = [(0,) * count]
        if count > 1:
            chosen += [(0,) + (None,) * (count - 1), (None,) * (count - 1) + (0,)]
        return chosen

    def given(self, in_dims: tuple) -> list[Tensor]:
        return [b if d == 0 else b[0] for b, d in zip(self.batches, in_dims)]


def loop(function: Callable, in_dims: tuple, tensors: list) -> tuple[Tensor, ...]:
    rows = [
        function(*(t if d is None else t.select(d, i).clone() for t, d in zip(tensors, in_dims)))
        for i in range(BATCH)
    ]
    return tuple(taeda.stack(column) for column in zip(*rows))


def assert_equal(got: tuple, expected: tuple, context: str) -> None:
    assert len(got) == len(expected), context
    for mine, theirs in zip(got, expected):
        assert mine.dtype is theirs.dtype, f"{context}: {mine.dtype}, expected {theirs.dtype}"
        assert mine.shape == theirs.shape, f"{context}: {mine.shape}, expected {theirs.shape}"
        tolerance = 1e-9 if mine.dtype in (taeda.float64, taeda.complex128) else 2e-4
        a, b = (t.detach().resolve_conj().resolve_neg().numpy() for t in (mine, theirs))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=context)


def dtype_of(op: Op) -> str:
    known = grid.dtypes(op)
    return next((d for d in ("float64", "complex128", "float32") if d in known), known[0])


def check(op: Op, case: Case, sample: str, in_dims: tuple) -> None:
    context = f"{op.name}({sample}) with in_dims={in_dims}"
    tensors = case.given(in_dims)
    try:
        expected = loop(case, in_dims, tensors)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return  # of other shapes than the sample's: the grid checks what the operator refuses
    if not expected:
        return
    try:
        got = taeda.vmap(case, in_dims)(*[t.clone() for t in tensors])
    except RuntimeError as error:
        if "not possible because" in str(error) or "updated in place" in str(error):
            writes_statistics = op.ident == "batch_norm"  # those without a batch, as in PyTorch
            assert writes_statistics or (op.mutates and in_dims[0] is None), context
            return
        if batch(op) == "refuse" or op.ident in DATA_DEPENDENT:
            reasons = ("depends on values", "its value", "doesn't have storage", "num_classes")
            reasons += ("equal size",)  # samples of other sizes, which cannot be stacked
            assert any(reason in str(error) for reason in reasons), context
            return
        raise AssertionError(f"{context}: {error}") from error
    assert_equal(got, expected, context)


@pytest.mark.parametrize("op", OPS, ids=[op.ident for op in OPS])
def test_a_batch_gives_what_its_samples_give(op: Op) -> None:
    for sample in grid.samples(op):
        case = Case(op, sample, dtype_of(op))
        for in_dims in case.choices():
            check(op, case, sample, in_dims)
