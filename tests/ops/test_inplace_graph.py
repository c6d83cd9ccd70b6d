"""In-place forms inside a graph give the gradients of the plain forms, and a write to a result or
an argument after the call stops backward only where PyTorch's stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gen.table import Op
from tests.ops import samples as grid
from tests.ops.test_grid import DIFFERENTIABLE, OPS, flat

import taeda

WRITING = [
    op
    for op in OPS
    if f"Tensor.{op.name}" in op.python
    and hasattr(taeda.Tensor, op.name + "_")
    and "float64" in grid.dtypes(op) + ["float64"] * (op.types not in ("integral", "bool"))
    and op.types not in ("bool", "integral", "integral_bool")
    and op.name not in ("floor_divide", "heaviside")  # no derivative, in PyTorch neither
    and "grad" not in op.test
]


def inexact(value: Any) -> bool:
    return hasattr(value, "dtype") and (value.is_floating_point() or value.is_complex())


def case(op: Op, framework: Any, sample: str) -> tuple[Callable, list[Any]] | None:
    """The call as a function of its tensors, and those tensors, leaves that require grad."""
    function = grid.place(op, framework)
    if function is None:
        return None
    source = grid.maker(op, framework, "float64", sample=sample, requires_grad=True)
    args, options = source.arguments(sample)
    inputs = list(source.made)

    def swapped(value: Any, new: dict[int, Any]) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(swapped(v, new) for v in value)
        return new.get(id(value), value)

    def call(tensors: list[Any], method: str | None = None) -> list[Any]:
        new = {id(old): t for old, t in zip(inputs, tensors)}
        given, named = swapped(args, new), {k: swapped(v, new) for k, v in options.items()}
        result = getattr(given[0], method)(*given[1:], **named) if method else None
        return flat(function(*given, **named) if result is None else result)

    call.first = lambda tensors: swapped(args, {id(o): t for o, t in zip(inputs, tensors)})[0]
    return call, inputs


def total(results: list[Any]) -> Any:
    """A number in which every element counts differently."""
    parts = []
    for y in results:
        if inexact(y) and y.requires_grad:
            weights = taeda.arange(1, y.numel() + 1, dtype=taeda.float64).reshape(y.shape) / 7
            parts.append(((y.real + 2 * y.imag if y.is_complex() else y) * weights).sum())
    return sum(parts)


def gradients(number: Any, inputs: list[Any]) -> list[Any]:
    if not isinstance(number, taeda.Tensor):
        return [taeda.zeros_like(x) for x in inputs]
    return list(taeda.autograd.grad(number, inputs, materialize_grads=True))


def in_view(x: Any) -> Any:
    """The same values as part of a larger tensor."""
    return taeda.stack([x, x], -1)[..., 1]


@pytest.mark.parametrize("place", [lambda x: x * 1, in_view], ids=["whole", "view"])
@pytest.mark.parametrize("op", WRITING, ids=[op.ident for op in WRITING])
def test_gradients_of_the_inplace_form(op: Op, place: Callable) -> None:
    tried = 0
    for sample in grid.samples(op):
        call, inputs = case(op, taeda, sample)
        if not inputs or any(not inexact(x) for x in inputs):
            continue
        try:
            plain = call([x * 1 for x in inputs])
        except (NotImplementedError, RuntimeError):
            continue
        if len(plain) != 1 or plain[0].shape != call.first(inputs).shape:
            continue
        zero = not inexact(plain[0])  # truth values
        if not zero and plain[0].dtype != inputs[0].dtype:
            continue
        expected = gradients(0 if zero else total(plain), inputs)
        copies = [x * 1 for x in inputs]
        copies[0] = place(inputs[0])
        if call.first(copies) is not copies[0]:
            continue
        (written,) = call(copies, op.name + "_")
        assert written is copies[0]
        assert taeda.allclose(written, plain[0].to(written.dtype), equal_nan=True)
        found = gradients(total([written]), inputs)
        tried += 1
        for g, e in zip(found, expected, strict=True):
            assert taeda.allclose(g, e, equal_nan=True), f"{op.name}_({sample})"
    if not tried:
        pytest.skip("no sample keeps shape and dtype")


@pytest.mark.parametrize(
    "write", "eq ne lt le gt ge greater less logical_and logical_or logical_xor".split()
)
def test_truth_values_written_into_numbers_have_no_slope(write: str) -> None:
    x = taeda.tensor([0.3, 0.0, 0.7], requires_grad=True)
    other = taeda.tensor([0.3, 1.0, 0.5], requires_grad=True)
    y = x * 2
    getattr(y, write + "_")(other)
    (y + x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1] and other.grad.tolist() == [0, 0, 0]
    with taeda.autograd.forward_ad.dual_level():
        dual = taeda.autograd.forward_ad.make_dual(x.detach().clone(), taeda.ones(3))
        getattr(dual, write + "_")(other)
        tangent = taeda.autograd.forward_ad.unpack_dual(dual).tangent
        assert tangent is None or not tangent.any()


def test_logical_not_written_into_numbers_has_no_slope() -> None:
    x = taeda.tensor([0.3, 0.0], requires_grad=True)
    y = x * 2
    y.logical_not_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_boxes() -> None:
    """(min(a, b) - max(c, d)).clamp_(0), the overlap of two intervals."""
    a, b, c, d = (
        taeda.tensor(v, requires_grad=True) for v in ([3.0, 2.0], [4.0, 5.0], [1.0, 2.5], [0.0, 1])
    )
    (taeda.min(a, b) - taeda.max(c, d)).clamp_(0).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1, 0], [0, 0])
    assert (c.grad.tolist(), d.grad.tolist()) == ([-1, 0], [0, 0])


# Where taeda keeps what is written and PyTorch does not, and why.
KEEPS_MORE = {
    (
        "scaled_dot_product_attention",
        "argument 1",
    ): "PyTorch keeps a scaled copy in one of its ways",
    ("cross_entropy", "argument 0"): "one pass over scores, which need not be kept twice",
    ("polar", "argument 0"): "PyTorch's formula from the result has no slope at modulus 0",
    ("polar", "argument 1"): "PyTorch's formula from the result has no slope at modulus 0",
    ("kron", "argument 0"): "PyTorch does not notice: its gradient is wrong",
    ("kron", "argument 1"): "PyTorch does not notice: its gradient is wrong",
    ("linalg_qr", "argument 0"): "wide matrices are cut in two",
    ("matmul", "argument 1"): "PyTorch copies a broadcast factor",
}


def after_write(op: Op, framework: Any, sample: str, what: str, k: int) -> Any:
    """Gradients where result or argument number k (where `what` is empty: nothing) is written
    between the call and backward; None where that does not apply or raises."""
    made = case(op, framework, sample)
    if made is None:
        return None
    call, inputs = made
    try:
        arguments = [x * 1 for x in inputs]
        results = [y for y in call(arguments) if inexact(y)]
        target = (results if what == "result" else arguments)[k : k + 1]
        if what and (not target or (what == "result" and not target[0].requires_grad)):
            return None
        if what:
            target[0].add_(1)
        numbers = [(y.real if y.is_complex() else y).sum() for y in results if y.requires_grad]
        if not numbers:
            return None
        sum(numbers).backward()
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return [None if x.grad is None else x.grad.reshape(-1).tolist() for x in inputs]


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if a is None or b is None:
        return a is b or not any(a or b)  # zeros
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * max(1, abs(b))


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=[op.ident for op in DIFFERENTIABLE])
def test_writes_after_the_call(op: Op) -> None:
    torch = pytest.importorskip("torch")
    for sample in grid.samples(op):
        expected = after_write(op, taeda, sample, "", 0)
        for what, k in [("result", 0), ("result", 1), *(("argument", i) for i in range(3))]:
            allowed = after_write(op, torch, sample, what, k) is not None
            if not allowed or (op.name, f"{what} {k}") in KEEPS_MORE:
                continue
            found = after_write(op, taeda, sample, what, k)
            assert found is not None, f"{op.name}({sample}), {what} {k} written: raises"
            assert close(found, expected), f"{op.name}({sample}), {what} {k} written"
