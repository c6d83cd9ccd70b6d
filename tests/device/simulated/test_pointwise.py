"""Pointwise operators on a simulated device, by its kernels: the values of the CPU's operators.

Those are tested against NumPy and PyTorch elsewhere; here each operator of the table runs with
every dtype, on dense and strided operands, with broadcasting, mixed dtypes and numbers of the CPU.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gen.autograd import add_dual_operators
from gen.op import TYPE_SETS, Op
from gen.table import load
from tests.device.simulated.by_kernels import NUMBERS, moved, same, values

import taeda
from taeda import _C
from taeda.nn import functional as F

ROOT = Path(__file__).resolve().parents[3]
OPS = [op for op in add_dual_operators(load(ROOT / "ops")) if op.body == "pointwise"]
KINDS = {
    "Bool": "bool",
    "Integer": "uint8 int8 int16 int32 int64",
    "Floating": "float16 bfloat16 float32 float64",
    "Complex": "complex64 complex128",
}


@pytest.fixture(autouse=True)
def no_fallback():
    """An operator that would run on the CPU raises."""
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def dtypes(op: Op) -> list[str]:
    return [dtype for kind in TYPE_SETS[op.types].split() for dtype in KINDS[kind].split()]


def function(op: Op) -> Any:
    """The operator, by PyTorch's name or our own."""
    spaces = [taeda.ops.aten, taeda.ops.taeda]
    return next(getattr(space, op.name) for space in spaces if hasattr(space, op.name))


def check(op: Op, tensors: list[Any], what: str) -> None:
    """Runs the operator with these arguments on both devices; 0-d ones stay on the CPU."""
    numbers = {a.name: 0.7 for a in op.params if not a.default}
    integral = not any(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors)
    scalars = {k: 1 if integral else v for k, v in numbers.items()}
    positional = [scalars[a.name] for a in op.params if a.name in scalars and not a.keyword_only]
    named = {a.name: scalars[a.name] for a in op.params if a.name in scalars and a.keyword_only}
    for choice in [{op.selector.name: c} for c in op.functors] if op.selector else [{}]:
        call = partial(call_with, op, [*positional], named | choice)
        there = [moved(t) if t.dim() else t for t in tensors]
        try:
            expected = call(tensors)
        except RuntimeError as error:  # a dtype that it does not take, a division by zero
            with pytest.raises(type(error)):
                call(there).cpu()
            continue
        same(call(there), expected, f"{op.ident} {what} {choice}")


def call_with(op: Op, positional: list[Any], named: dict[str, Any], tensors: list[Any]) -> Any:
    return function(op)(*tensors, *positional, **named)


IDS = [op.ident for op in OPS]


@pytest.mark.parametrize("op", OPS, ids=IDS)
def test_dense_operands(op):
    for dtype in dtypes(op):
        for n in (1, 5, 1003):
            given = [values(dtype, (n,), i) for i in range(len(op.sig.tensor_args))]
            check(op, given, f"{dtype} {n}")


@pytest.mark.parametrize("op", OPS, ids=IDS)
def test_operands_of_any_strides(op):
    for dtype in dtypes(op):
        n = len(op.sig.tensor_args)
        given = [values(dtype, (6, 5, 4), i) for i in range(n)]
        check(op, [t.transpose(0, 2) for t in given], f"{dtype} permuted")
        strided = [t[::2, i % 2 :, 1:3] for i, t in enumerate(given)]
        check(op, [t[:, :4] for t in strided], f"{dtype} strided")


@pytest.mark.parametrize(
    "op", [op for op in OPS if len(op.sig.tensor_args) > 1], ids=lambda o: o.ident
)
def test_broadcast_operands(op):
    shapes = [(3, 1, 5), (4, 1), (3, 4, 5), (1,)]
    for dtype in dtypes(op):
        n = len(op.sig.tensor_args)
        for first in range(2):
            given = [values(dtype, shapes[(first + i) % 4], i) for i in range(n)]
            check(op, given, f"{dtype} broadcast")
        given = [values(dtype, (7,), i) for i in range(n)]
        for i in range(n):
            one = [t[0].clone() if i == j else t for j, t in enumerate(given)]
            check(op, one, f"{dtype} number {i}")


PAIRS = [
    ("float32", "float16"), ("bfloat16", "float16"), ("float32", "int64"), ("float64", "float32"),
    ("int32", "uint8"), ("int64", "bool"), ("complex64", "float32"), ("complex128", "complex64"),
    ("float32", "bool"), ("bfloat16", "int8"),
]  # fmt: skip


@pytest.mark.parametrize(
    "op", [op for op in OPS if len(op.sig.tensor_args) > 1], ids=lambda o: o.ident
)
def test_mixed_dtypes(op):
    allowed = dtypes(op)
    for pair in PAIRS:
        if pair[0] not in allowed or op.partial is not None or op.promote == "masked":
            continue
        for turn in (0, 1):
            n = len(op.sig.tensor_args)
            given = [values(pair[(i + turn) % 2], (3, 7), i) for i in range(n)]
            check(op, given, f"{pair} {turn}")


def test_masks_choose_among_any_type():
    mask = taeda.tensor([True, False, True])
    for dtype in ("bool", "int16", "float16", "float32", "complex64"):
        a, b = values(dtype, (3,), 0), values(dtype, (3,), 1)
        expected = taeda.where(mask, a, b)
        same(taeda.where(mask.cuda(), a.cuda(), b.cuda()), expected, dtype)
        same(a.cuda().masked_fill(mask.cuda(), 1), a.masked_fill(mask, 1), dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_masks_are_filled_by_a_number(dtype):
    x, mask = values(dtype, (6, 5)), values("bool", (6, 5), 1)
    for there, given, chosen in (
        (x.cuda(), x, mask), (x.cuda()[::2], x[::2], mask[::2]), (x.cuda(), x, mask[0, 0]),
        (x.cuda(), x, ~mask[0, 0]), (x.cuda().t(), x.t(), mask[:5, :1]),
    ):  # fmt: skip
        same(there.masked_fill(chosen.cuda(), 1), given.masked_fill(chosen, 1), dtype)
    same(x.cuda().masked_fill(mask[0, 0], 1), x.masked_fill(mask[0, 0], 1), f"{dtype} by the CPU's")


def test_operators_of_types_that_they_take_with_some_numbers_only():
    x, b = values("uint8", (6, 5)), values("bool", (6, 5))
    for there, here in ((x.cuda(), x), (x.cuda()[:, ::2], x[:, ::2])):
        same(F.hardtanh(there, 1, 3), F.hardtanh(here, 1, 3), "hardtanh of uint8")
    for there, here in ((b.cuda(), b), (b.cuda()[:, ::2], b[:, ::2])):
        same(there**True, here**True, "pow of bool")


def test_integers_become_floats_where_the_operator_wants_them():
    for dtype in ("bool", "uint8", "int64"):
        x = values(dtype, (5,), 3)
        same(x.cuda().exp(), x.exp(), dtype)
        same(x.cuda() / 3, x / 3, dtype)


@pytest.mark.parametrize("dtype", ["uint16", "uint64", "float8_e5m2", "complex32"])
def test_storage_types_take_part(dtype):
    """Kernels have no code for them; they are converted first."""
    _C._set_fallback("quiet")
    real = dtype != "complex32"
    x = (
        values("int32" if real else "complex64", (6,), 2).abs()
        if real
        else values("complex64", (6,), 2)
    )
    x = x.to(getattr(taeda, dtype))
    y = values("float32" if real else "complex64", (6,), 4)
    same(y.cuda() * x.cuda().to(y.dtype), y * x.to(y.dtype), dtype)
    if dtype != "float8_e5m2":
        same(x.cuda() + y.cuda(), x + y, dtype)


def test_in_place_and_out():
    for dtype in ("float32", "float16", "int64"):
        x, y = values(dtype, (4, 6), 0), values(dtype, (6,), 1)
        a, b = x.cuda(), y.cuda()
        a.mul_(b).add_(1)
        same(a, x.clone().mul_(y).add_(1), dtype)
        a[:, ::2].sub_(b[::2])
        outs = [taeda.empty(0, dtype=taeda.float64, device=d) for d in ("cuda", "cpu")]
        same(taeda.add(x.cuda(), b, out=outs[0]), taeda.add(x, y, out=outs[1]), dtype)
        a = x.cuda().t()[1:]
        a += a
        assert a.tolist() == (x.t()[1:] * 2).tolist()


def test_special_values():
    special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0, 1e30, -1e-30]
    x = taeda.tensor(special)
    pairs = x.repeat(len(special)), x.repeat_interleave(len(special))
    for op in OPS:
        if op.params or op.partial is not None or "float32" not in dtypes(op):
            continue
        n = len(op.sig.tensor_args)
        if n > 2:
            continue
        cpu = function(op)(*pairs[:n])
        same(function(op)(*(t.cuda() for t in pairs[:n])), cpu, op.ident)


def test_more_dimensions_than_a_kernel_knows():
    sizes = (2, 3) * 5
    x = taeda.arange(6.0**5).reshape(sizes)
    y = x.permute(*range(0, 10, 2), *range(1, 10, 2))
    same(y.cuda() * 2 + x.reshape(y.shape).cuda(), y * 2 + x.reshape(y.shape), "10 dimensions")


def test_an_operator_waits_for_nothing(simulator, late):
    x, y = taeda.ones(64, device="cuda"), taeda.ones(3, 64, device="cuda")
    before = {what: simulator.count(what) for what in ("synchronizations", "copies", "launches")}
    z = (x + 1.5).exp() * y
    z = z.where(z > 1, y)
    assert simulator.count("synchronizations") == before["synchronizations"]
    assert simulator.count("copies") == before["copies"]
    assert simulator.count("launches") == before["launches"] + 5
    assert z.shape == (3, 64)


def test_a_missing_event_is_a_race(late):
    x = taeda.zeros(8, device="cuda")
    side = taeda.cuda.Stream()
    side.wait_stream(taeda.cuda.current_stream())
    with taeda.cuda.stream(side):
        x.add_(1)
    with pytest.raises(RuntimeError, match=r"race: mul_f32 .* reads what add_f32 .* writes"):
        x * 2
    taeda.cuda.current_stream().wait_stream(side)
    assert (x * 2).tolist() == [2.0] * 8


def test_division_by_zero_is_raised_when_the_host_waits(late):
    x = taeda.tensor([7, 8, 9], device="cuda")
    y = x // taeda.tensor([2, 0, 3], device="cuda")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        y.cpu()
    assert (x + 1).tolist() == [8, 9, 10]
    x % taeda.zeros_like(x)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        taeda.cuda.synchronize()
    taeda.cuda.synchronize()


def test_devices_launch_their_own_work():
    x = taeda.ones(4, device="cuda:1")
    assert (x + x).device.index == 1 and taeda.cuda.current_device() == 0
    assert (x + x).tolist() == [2.0] * 4
