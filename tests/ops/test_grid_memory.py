"""Every table operator on its samples: results written over arguments, and arguments or results
changed between forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gen.table import Op
from tests.ops import samples as grid
from tests.ops.test_grid import DIFFERENTIABLE, OPS

import taeda

RANDOM = ("bernoulli", "multinomial", "dropout", "rand", "normal", "poisson", "binomial", "rrelu")
# as_strided_copy reads the storage, of which a copy of its argument has another.
WITH_OUT = [
    op
    for op in OPS
    if "out" in op.variants and not op.name.startswith((*RANDOM, "as_strided_copy"))
]
INPLACE = [
    op
    for op in OPS
    if "inplace" in op.variants and f"Tensor.{op.name}" in op.python and op.name not in RANDOM
]


def arguments(op: Op, sample: str, dtype: str) -> tuple[list, dict]:
    args, kwargs = grid.maker(op, taeda, dtype, sample=sample).arguments(sample)
    return list(args), kwargs


def overlapping(first: Any, second: Any, distance: int) -> tuple[Any, Any]:
    """Tensors of the sizes and dtype of both with the values of `first`, `distance` apart."""
    n = max(first.numel(), second.numel()) + 2 * abs(distance)
    memory = taeda.zeros(n, dtype=first.dtype)
    a = memory[abs(distance) :][: first.numel()].view(first.shape)
    b = memory[abs(distance) + distance :][: second.numel()].view(second.shape)
    a.copy_(first)
    return a, b


def assert_same(result: Any, expected: Any) -> None:
    a, b = result.detach(), expected.detach()
    if a.dtype == taeda.bfloat16:
        a, b = a.float(), b.float()
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", WITH_OUT, ids=lambda op: op.ident)
def test_out_over_an_argument(op: Op) -> None:
    """Refused, or the same as with a result apart."""
    function = grid.place(op, taeda)
    assert function is not None
    dtype = next((d for d in grid.dtypes(op) if d == "float32"), grid.dtypes(op)[0])
    for sample in grid.samples(op):
        args, kwargs = arguments(op, sample, dtype)
        try:
            expected = function(*args, **kwargs)
        except (RuntimeError, NotImplementedError):
            continue
        if not isinstance(expected, taeda.Tensor) or expected.numel() == 0:
            continue
        for place, argument in enumerate(args):
            if not isinstance(argument, taeda.Tensor) or argument.dtype != expected.dtype:
                continue
            for distance in (0, 1, -1, 2):
                given = list(args)
                given[place], out = overlapping(argument, expected, distance)
                try:
                    function(*given, **kwargs, out=out)
                except (RuntimeError, TypeError, ValueError):
                    continue
                assert_same(out, expected)


@pytest.mark.parametrize("op", INPLACE, ids=lambda op: op.ident)
def test_in_place_over_another_argument(op: Op) -> None:
    dtype = next((d for d in grid.dtypes(op) if d == "float32"), grid.dtypes(op)[0])
    for sample in grid.samples(op):
        args, kwargs = arguments(op, sample, dtype)
        if not isinstance(args[0], taeda.Tensor) or args[0].numel() == 0:
            continue
        try:
            expected = getattr(args[0].clone(), op.name + "_")(*args[1:], **kwargs)
        except (RuntimeError, NotImplementedError):
            continue
        for place, argument in enumerate(args[1:]):
            if not isinstance(argument, taeda.Tensor) or argument.dtype != args[0].dtype:
                continue
            for distance in (1, -1, 2):
                given = list(args[1:])
                memory = taeda.zeros(args[0].numel() + argument.numel() + 4, dtype=argument.dtype)
                self = memory[2:][: args[0].numel()].view(args[0].shape)
                given[place] = memory[2 + distance :][: argument.numel()].view(argument.shape)
                given[place].copy_(argument)
                self.copy_(args[0])
                apart = [g.clone() if isinstance(g, taeda.Tensor) else g for g in given]
                try:
                    expected = getattr(self.clone(), op.name + "_")(*apart, **kwargs)
                    getattr(self, op.name + "_")(*given, **kwargs)
                except (RuntimeError, ValueError):
                    continue
                assert_same(self, expected)
        expanded = args[0].reshape(-1)[:1].expand(3)
        if op.name not in ("fill", "zero", "as_strided"):  # which sees other elements
            try:
                once = getattr(expanded, op.name + "_")(*args[1:], **kwargs)
            except (RuntimeError, ValueError, IndexError):
                continue
            assert once.reshape(-1).unique().numel() == 1


# A node that saves for a gradient that is cut off behind it.
CUT_OFF = {"gaussian_nll_loss"}


def tensors_of(result: Any) -> list[Any]:
    items = result if isinstance(result, tuple | list) else [result]
    return [r for r in items if isinstance(r, taeda.Tensor) and r.requires_grad and r.numel()]


def changeable(op: Op, sample: str) -> tuple[list[Any], list[Any], set[int]]:
    """Arguments that require grad, results, and the storages of what was saved between them."""
    function = grid.place(op, taeda)
    assert function is not None
    make = grid.maker(op, taeda, "float32", sample=sample, requires_grad=True)
    args, kwargs = make.arguments(sample)
    saved = set()

    def pack(t: Any) -> Any:
        saved.add(t.untyped_storage().data_ptr())
        return t

    with taeda.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        results = tensors_of(function(*args, **kwargs))
    given = [a for a in make.made if a.requires_grad and a.numel()]
    return given, results, saved


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.ident)
def test_a_saved_tensor_that_has_changed(op: Op) -> None:
    """Each argument and result that the operator has saved: changing it raises in backward."""
    function = grid.place(op, taeda)
    assert function is not None
    for sample in [] if op.ident in CUT_OFF else grid.samples(op):
        try:
            given, results, saved = changeable(op, sample)
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        was_saved = [t.untyped_storage().data_ptr() in saved for t in given + results]
        for number in range(len(was_saved)) if given and results else ():
            if not was_saved[number]:
                continue
            make = grid.maker(op, taeda, "float32", sample=sample, requires_grad=True)
            args, kwargs = make.arguments(sample)
            outputs = tensors_of(function(*args, **kwargs))
            inputs = [a for a in make.made if a.requires_grad and a.numel()]
            changed = (inputs + outputs)[number]
            with taeda.no_grad():
                try:
                    changed.copy_(changed.clone())
                except RuntimeError:
                    continue  # one of several views, or expanded
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                ones = [taeda.ones_like(r) for r in outputs]
                taeda.autograd.grad(outputs, inputs, ones, allow_unused=True)
