"""Every operator of the table on its samples: the values of the CPU's operators, and of PyTorch's
on the same card.

Samples, dtypes and layouts are those of the operator grid (tests/ops/samples.py). Gradients are
compared with the CPU's. An operator without samples is checked by tests/device/simulated
(cases.py); which kernels neither reaches is said there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gen.table import Op, load
from tests.gpu.rows import SKIPPED, Row, Settings, checked, within_time
from tests.ops import samples as grid

import taeda

ROOT = Path(__file__).resolve().parents[2]
# Relative and absolute: the device's functions, and the order of sums, differ from the CPU's.
TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4,
    "float64": 1e-9, "complex128": 1e-9,
}  # fmt: skip
RAISED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def operators(only: str) -> list[Op]:
    ops = [op for op in load(ROOT / "ops") if op.python and grid.samples(op)]
    return [op for op in ops if re.search(only, op.ident)]


def differentiable(op: Op) -> bool:
    """Whether it has gradients that can be compared."""
    missing = op.grad and all(str(f).startswith("not_implemented(") for f in op.grad.values())
    return not (
        op.grad == {} or missing or op.types in ("bool", "integral", "integral_bool")
        or op.promote == "bool" or "grad" in op.test
    )  # fmt: skip


def flat(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    if not isinstance(result, tuple | list):
        return [result]
    return [x for part in result for x in flat(part)]


def host(t: Any) -> np.ndarray:
    """Values, half precision widened."""
    t = t.detach().cpu()
    t = (t.to_dense() if t.is_sparse else t).resolve_conj().resolve_neg()
    if str(t.dtype) in ("torch.bfloat16", "torch.float16"):
        t = t.float()
    return t.numpy()


def assert_same(found: Any, expected: Any, what: str, least: float = 0) -> None:
    """Equal dtypes and sizes, and values within the dtype's tolerance."""
    pairs = zip(flat(found), flat(expected), strict=True)
    for mine, theirs in pairs:
        if not hasattr(theirs, "dtype"):
            assert mine == theirs or (mine != mine and theirs != theirs), what
            continue
        dtype = str(theirs.dtype).removeprefix("torch.")
        assert (str(mine.dtype), tuple(mine.shape)) == (f"torch.{dtype}", tuple(theirs.shape)), what
        tolerance = max(TOLERANCE.get(dtype, 0), least)
        np.testing.assert_allclose(
            host(mine), host(theirs), rtol=tolerance, atol=tolerance, err_msg=what
        )


class Call:
    """An operator with one sample's arguments, on any device of either framework."""

    def __init__(self, op: Op, sample: str, dtype: str, layout: str) -> None:
        self.op, self.sample, self.dtype, self.layout = op, sample, dtype, layout
        self.text = f"{op.name}({sample}) {dtype} {layout}"
        self.least = op.test.get("tolerance", 0) if "32" in dtype else 0

    def _made(self, framework: Any, device: str, **how: Any) -> Any:
        how = {"device_name": device, **how}
        return grid.maker(self.op, framework, self.dtype, self.layout, self.sample, **how)

    def values(self, framework: Any, device: str) -> Any:
        args, named = self._made(framework, device).arguments(self.sample)
        result = grid.place(self.op, framework)(*args, **named)
        if device == "cuda":
            framework.cuda.synchronize()  # what a kernel found in the data is raised here
        return result

    def gradients(self, framework: Any, device: str) -> list[Any]:
        """Of the sum of all results, each weighed by another number."""
        made = self._made(framework, device, requires_grad=True)
        args, named = made.arguments(self.sample)
        results = flat(grid.place(self.op, framework)(*args, **named))
        tensors = [t for t in results if getattr(t, "requires_grad", False)]
        if not tensors:
            return []
        loss = sum(((t * t.conj()).real if t.is_complex() else t * (1 + t)).sum() for t in tensors)
        loss.backward()
        return [t.grad for t in made.made if t.grad is not None]


def calls(op: Op, settings: Settings) -> Iterator[Call]:
    dtypes, layouts = grid.dtypes(op), op.test.get("layouts", grid.LAYOUTS)
    if settings.simulated:
        dtypes, layouts = ["float32"] if "float32" in dtypes else dtypes[:1], layouts[:1]
    for sample in grid.samples(op):
        for dtype in dtypes:
            for layout in layouts:
                yield Call(op, sample, dtype, layout)


def compare(call: Call, run: Callable[[Any, str], Any], framework: Any, device: str) -> int:
    """Whether taeda on the card agrees with what is expected: 0 where that raises, as it must here,
    1 where there are values."""
    try:
        expected = run(framework, device)
    except RAISED as error:
        try:
            run(taeda, "cuda")
        except RAISED:
            return 0
        if framework is not taeda:  # it may lack a dtype
            return 0
        raise AssertionError(f"{call.text}: no error, the CPU's is {error}") from None
    assert_same(run(taeda, "cuda"), expected, call.text, call.least)
    return 1


def check(op: Op, settings: Settings, framework: Any, device: str) -> str:
    compared = sum(compare(c, c.values, framework, device) for c in calls(op, settings))
    return f"{compared} calls"


def check_gradients(op: Op, settings: Settings) -> str:
    compared = 0
    for call in calls(op, settings):
        if call.layout == "plain" and call.dtype in ("float32", "float64", "complex128"):
            compared += compare(call, call.gradients, taeda, "cpu")
    return f"{compared} calls" if compared else "nothing to compare"


def names(settings: Settings) -> list[str]:
    found = []
    for op in operators(settings.only):
        if grid.place(op, taeda) is None:
            found.append(op.ident)
            continue
        found += [f"{op.ident} as on the CPU", *[f"{op.ident} gradients"] * differentiable(op)]
        if settings.torch is not None and grid.place(op, settings.torch) is not None:
            found.append(f"{op.ident} as PyTorch")
    return found


def rows(settings: Settings) -> Iterator[Row]:
    taeda._C._set_fallback("quiet")
    for op in within_time(settings, operators(settings.only), "operators"):
        if isinstance(op, Row):
            yield op
            return
        if grid.place(op, taeda) is None:
            yield Row(f"{op.ident}", SKIPPED, "no public function")
            continue
        yield checked(f"{op.ident} as on the CPU", lambda op=op: check(op, settings, taeda, "cpu"))
        if differentiable(op):
            yield checked(f"{op.ident} gradients", lambda op=op: check_gradients(op, settings))
        torch = settings.torch
        if torch is not None and grid.place(op, torch) is not None:
            name = f"{op.ident} as PyTorch"
            yield checked(name, lambda o=op, t=torch: check(o, settings, t, settings.rival))
