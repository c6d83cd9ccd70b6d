"""Forward mode inside forward mode, for every operator: its second derivatives along two directions
against differences of the first, and backward through them against the transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gen.table import Op
from tests.ops import samples as grid
from tests.ops.test_grid import DIFFERENTIABLE, gradient_case

import taeda
from taeda.func import grad, jvp, vjp

TWICE = [
    op
    for op in DIFFERENTIABLE
    if op.jvp != "none" and not {"forward_ad", "gradgrad"} & op.test.keys()
    if not grid.is_complex_only(op)
]


def random_like(tensors: Any, generator: Any) -> tuple:
    return tuple(taeda.randn(x.shape, dtype=x.dtype, generator=generator) for x in tensors)


def inner(a: Any, b: Any) -> float:
    return sum((x * y.conj()).real.sum().item() for x, y in zip(a, b))


def along(f: Any, directions: tuple) -> Any:
    """The derivative of f in these directions, as a function of the place."""
    return lambda *at: jvp(lambda *xs: f(*xs), at, directions)[1]


@pytest.mark.parametrize("op", TWICE, ids=[op.ident for op in TWICE])
def test_second_derivatives_by_forward_mode_alone(op: Op) -> None:
    for sample in grid.samples(op):
        f, inputs = gradient_case(op, sample)
        if not inputs or sum(t.numel() for t in inputs) > 40 or not f(*inputs):
            continue
        generator = taeda.Generator().manual_seed(1)
        xs = tuple(x.detach().clone() for x in inputs)
        v, w = random_like(xs, generator), random_like(xs, generator)
        first = along(f, v)
        values, second = jvp(first, xs, w)
        step = 1e-6
        after = first(*(x + step * d for x, d in zip(xs, w)))
        before = first(*(x - step * d for x, d in zip(xs, w)))
        for s, a, b in zip(second, after, before, strict=True):
            assert taeda.allclose(s, (a - b) / (2 * step), rtol=1e-3, atol=1e-4), sample
        # backward through the inner level: the transpose of the outer one
        gys = random_like(values, generator)
        pulled = vjp(first, *xs)[1](gys)
        assert inner(second, gys) == pytest.approx(inner(w, pulled), rel=1e-4, abs=1e-5), sample


IN_PLACE = {
    **{
        name: ()
        for name in (
            "abs_ acos_ asin_ asinh_ atan_ cos_ cosh_ digamma_ erf_ exp_ expm1_ lgamma_ log_ "
            "reciprocal_ sigmoid_ sin_ sinc_ sqrt_ square_ tan_ tanh_"
        ).split()
    },
    **{name: ("other",) for name in "atan2_ copysign_ div_ hypot_ mul_ pow_ sub_ xlogy_".split()},
    "clamp_": (0.2, 0.7),
    "cumprod_": (0,),
    "lerp_": ("other", 0.3),
    "pow_ of a number": (2.5,),
    "squeeze_": (),
    "t_": (),
    "transpose_": (0, 1),
    "unsqueeze_": (2,),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_writes_in_place_are_differentiated_like_results(name: str) -> None:
    x = taeda.tensor([[0.5, 0.6], [0.7, 0.3]], dtype=taeda.float64)
    v = taeda.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=taeda.float64)
    method = name.split()[0]

    def function(chosen: str) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            y = x * 1.2
            given = [x * x + 0.2 if a == "other" else a for a in IN_PLACE[name]]
            result = getattr(y, chosen)(*given)
            weights = taeda.arange(1.0, 5, dtype=x.dtype).view(result.shape)
            return ((y if chosen == method else result).sin() * weights).sum()

        return run

    written, fresh = function(method), function(method.removesuffix("_"))
    nested: list[Callable[[Any], Any]] = [
        lambda f: jvp(f, (x,), (v,))[1],
        lambda f: grad(f)(x),
        lambda f: jvp(grad(f), (x,), (v,))[1],
        lambda f: grad(lambda x: jvp(f, (x,), (v,))[1])(x),
        lambda f: jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1],
    ]
    for transform in nested:
        taeda.testing.assert_close(transform(written), transform(fresh))
