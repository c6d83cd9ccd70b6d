"""Every kernel against its definition: the ``expr`` beside it in the table, run with wider numbers.

A mode sees the kernels that the operators' samples reach, forward and backward, over dtypes,
layouts, special values and magnitudes; PyTorch is not needed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from gen.table import Op
from tests.ops import definitions
from tests.ops import samples as grid
from tests.ops.test_grid import DIFFERENTIABLE, gradient_case

import taeda
from taeda._library import aten
from taeda.autograd.forward_ad import dual_level, make_dual
from taeda.utils._python_dispatch import TorchDispatchMode

OPS = [op for op in definitions.TABLE.ops if op.python and grid.samples(op)]
LEAVES = [op for op in definitions.TABLE.ops if op.is_leaf]
# Zeros, and numbers whose squares neither overflow nor vanish (inverses of matrices may).
LARGEST = (0.0, 1e12, 1e-12)
TANGENTS = {op.ident for op in DIFFERENTIABLE}
# Tolerance by the dtype in which a kernel computes, relative to the largest element.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}
WIDE = {name: "complex128" if name == "complex64" else "float64" for name in TOLERANCE}
# Pairs of values and indices that name any of several equal elements.
ANY_OF_EQUALS = ("topk", "kthvalue", "median_dim", "nanmedian_dim", "mode")


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def wider(value: Any) -> Any:
    """The same value in the widest dtype of its kind."""
    if isinstance(value, taeda.Tensor):
        wide = WIDE.get(name_of(value.dtype))
        return value.detach() if wide is None else value.detach().to(getattr(taeda, wide))
    if isinstance(value, taeda.dtype):
        return getattr(taeda, WIDE.get(name_of(value), name_of(value)))
    return [wider(v) for v in value] if isinstance(value, (list, tuple)) else value


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def tensors(values: Any) -> list[taeda.Tensor]:
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return [v for v in flat if isinstance(v, taeda.Tensor)]


def values_of(t: taeda.Tensor) -> np.ndarray:
    wide = WIDE.get(name_of(t.dtype))
    return (t if wide is None else t.to(getattr(taeda, wide))).numpy()


def largest(t: taeda.Tensor) -> float:
    """The largest size among the finite elements."""
    sizes = np.abs(t.detach().numpy().astype(complex if t.is_complex() else float))
    return min(float(sizes.max(where=np.isfinite(sizes), initial=0.0)), 1e300)


def difference(got: Any, expected: Any, tolerance: float, scale: float) -> str:
    """What is wrong with a result; nothing where it is as defined."""
    if got is None or expected is None:
        return "" if got is expected else f"{got} for {expected}"
    if got.shape != expected.shape or wider(got.dtype) != wider(expected.dtype):
        return f"{got.dtype} {tuple(got.shape)} for {expected.dtype} {tuple(expected.shape)}"
    a, b = values_of(got.detach()), values_of(expected.to(got.dtype))
    if a.dtype == bool or np.issubdtype(a.dtype, np.integer):
        return "" if np.array_equal(a, b) else f"{a.tolist()} for {b.tolist()}"
    with np.errstate(all="ignore"):
        same = np.isclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if same.all():
        return ""
    where = np.argwhere(~same)[:3].tolist()
    return f"at {where} {a[~same][:3].tolist()} for {b[~same][:3].tolist()}"


class Compared(TorchDispatchMode):
    """Runs the definition beside every kernel that has one and keeps what differs."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.wrong: dict[str, str] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = definitions.BY_RECORD.get((func._operator_name, func._overload))
        if op is None or not op.is_leaf or op.expr is None:
            return func(*args, **kwargs)
        given = bound(op, args, kwargs)
        before = {k: wider(v) for k, v in given.items()}
        if op.mutates:
            first = op.sig.args[0].name
            before[first] = before[first].clone()
        out = func(*args, **kwargs)
        if not is_covered(op, tensors([*given.values(), results(out)])):
            return out
        self.seen[op.ident] += 1
        with taeda.no_grad():
            message = self.compare(op, given, before, results(out))
        if message:
            shown = {k: v if not isinstance(v, taeda.Tensor) else text(v) for k, v in given.items()}
            self.wrong.setdefault(f"{op.ident} {message[:12]}", f"{op.ident}{shown}: {message}")
        return out

    def __enter__(self) -> Compared:
        self.spellings = dict(aten.SPELLINGS)
        aten.SPELLINGS.clear()  # the table's own operators are to be seen
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        aten.SPELLINGS.update(self.spellings)

    def compare(self, op: Op, given: Any, before: Any, got: list[Any]) -> str:
        try:
            expected = results(definitions.evaluate(op, before))
        except Exception as error:
            return f"the definition raises {type(error).__name__}: {error}"
        kinds = [name_of(t.dtype) for t in tensors([*given.values(), *got])]
        tolerance = max([TOLERANCE.get(kind, 1e-9) for kind in kinds])
        if op.ident in ANY_OF_EQUALS:
            expected = [expected[0], *same_elements(given, expected, got)]
        scale = max(
            [largest(t) for t in tensors(expected)]
            + [largest(t) / 10 for t in tensors(before.values())]
        )
        found = [difference(a, b, tolerance, scale) for a, b in zip(got, expected, strict=True)]
        return "; ".join(f"result {i}: {what}" for i, what in enumerate(found) if what)


def same_elements(given: Any, expected: list[Any], got: list[Any]) -> list[Any]:
    """The kernel's own indices, where they name the expected elements."""
    x, dim = given["self"].detach(), given["dim"]
    index = got[1] if got[1].dim() == x.dim() else got[1].unsqueeze(dim)
    named = x.gather(dim, index).reshape(expected[0].shape)
    exact = difference(named, expected[0], 0.0, 0.0) == ""
    return [got[1]] if exact else [expected[1]]


def is_covered(op: Op, given: list[taeda.Tensor]) -> bool:
    """Whether the definition is meant for these arguments and results, and fast enough."""
    if sum(t.numel() for t in given) > 8_000 or any(t.is_meta for t in given):
        return False
    if op.mutates and 0 in given[0].stride():  # several elements are one
        return False
    inexact = [t for t in given if t.is_floating_point() or t.is_complex()]
    return op.test.get("special", True) or all(t.isfinite().all() for t in inexact)


def text(t: taeda.Tensor) -> str:
    shown = t.detach().flatten()[:8].tolist()
    return f"<{name_of(t.dtype)} {tuple(t.shape)} {shown}>"


def bound(op: Op, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name, defaults included."""
    given = dict(zip([a.name for a in op.sig.args], args)) | kwargs
    for a in op.sig.args:
        if a.name not in given:
            given[a.name] = None if a.default is None else definitions.ast.literal_eval(a.default)
        if a.type in ("int[]", "dims") and isinstance(given[a.name], int):
            given[a.name] = [given[a.name]] * max(a.repeat, 1)
        elif isinstance(given[a.name], tuple):
            given[a.name] = list(given[a.name])
        elif a.is_tensor and isinstance(given[a.name], (bool, int, float, complex)):
            given[a.name] = taeda.tensor(given[a.name])
    return given


def run(op: Op, mode: Compared, sample: str, maker: grid.Maker) -> None:
    """One call of a public operator and its backward; errors are the grid's business."""
    function = grid.place(op, taeda)
    assert function is not None
    try:
        args, options = maker.arguments(sample)
        with mode:
            with taeda.no_grad():
                function(*args, **options)
            if op.mutates:
                return
            made = results(function(*args, **options))
            wanted = [y for y in made if isinstance(y, taeda.Tensor) and y.requires_grad]
            inputs = [t for t in maker.made if t.requires_grad]
            if wanted:
                taeda.autograd.grad(wanted, inputs, [slope(y) for y in wanted], allow_unused=True)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return


def slope(y: taeda.Tensor) -> taeda.Tensor:
    """A gradient that differs from element to element."""
    return taeda.linspace(1, 2, y.numel(), dtype=taeda.float64).to(y.dtype).reshape(y.shape)


def forward(op: Op, mode: Compared, sample: str) -> None:
    """The call in forward mode, where tangents have kernels of their own."""
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError), dual_level():
        f, inputs = gradient_case(op, sample)
        duals = [make_dual(t.detach(), taeda.ones_like(t)) for t in inputs]
        with mode:
            f(*duals)


@functools.cache
def compared(ident: str) -> Compared:
    """All comparisons that the samples of one public operator lead to."""
    op = next(op for op in OPS if op.ident == ident)
    mode = Compared()
    for sample in grid.samples(op):
        make = functools.partial(grid.maker, op, taeda, sample=sample, requires_grad=True)
        for dtype in grid.dtypes(op):
            for layout in op.test.get("layouts", grid.LAYOUTS):
                run(op, mode, sample, make(dtype, layout))
            if dtype in ("float32", "float64"):
                run(op, mode, sample, make(dtype, special=True))
            magnitudes = LARGEST if op.test.get("special", True) and op.family != "lapack" else ()
            for largest_value in magnitudes if dtype == "float32" else ():
                span = {"low": -largest_value, "high": largest_value}
                run(op, mode, sample, dataclasses.replace(make(dtype), **span))
        if ident in TANGENTS:
            forward(op, mode, sample)
    return mode


@pytest.mark.parametrize("ident", [op.ident for op in OPS])
def test_a_kernel_computes_what_its_definition_says(ident: str) -> None:
    assert not compared(ident).wrong, "\n".join(compared(ident).wrong.values())


def test_every_definition_is_compared() -> None:
    """Some sample reaches each. Random numbers have none, but their backward has a definition;
    determinants call theirs below modes."""
    seen = {ident for op in OPS for ident in compared(op.ident).seen}
    x = taeda.ones(3, 4, requires_grad=True)
    with Compared() as mode:
        taeda.nn.functional.dropout(x, 0.5).sum().backward()
        taeda.ops.taeda._linalg_lu_diagonal(taeda.randn(2, 20, 20, dtype=taeda.float64))
    assert not mode.wrong
    assert {op.ident for op in LEAVES if op.expr} == seen | set(mode.seen)
