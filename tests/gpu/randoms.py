"""Random numbers beside PyTorch's on the same card: the same seeds give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests.device.simulated.test_random_numbers import PUBLISHED
from tests.gpu.rows import SKIPPED, Row, Settings, checked

import taeda


def on(t: Any, *sizes: int, dtype: str = "float32") -> Any:
    return t.empty(*sizes, device="cuda", dtype=getattr(t, dtype))


# By name: a draw in either framework, and by how much results may differ.
DRAWS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "rand": (lambda t: t.rand(5000, device="cuda"), 0),
    "rand of many": (lambda t: t.rand(3_000_000, device="cuda"), 0),
    "rand float64": (lambda t: t.rand(5000, device="cuda", dtype=t.float64), 0),
    "rand float16": (lambda t: t.rand(5000, device="cuda", dtype=t.float16), 0),
    "rand bfloat16": (lambda t: t.rand(5000, device="cuda", dtype=t.bfloat16), 0),
    "randn": (lambda t: t.randn(5000, device="cuda"), 1e-6),
    "randn float64": (lambda t: t.randn(5000, device="cuda", dtype=t.float64), 1e-12),
    "randint": (lambda t: t.randint(-7, 1000, (5000,), device="cuda"), 0),
    "randint of a wide range": (lambda t: t.randint(0, 1 << 40, (5000,), device="cuda"), 0),
    "randperm": (lambda t: t.randperm(4000, device="cuda"), 0),
    "uniform_": (lambda t: on(t, 70, 31).uniform_(-3, 5), 0),
    "normal_": (lambda t: on(t, 70, 31).normal_(2, 3), 1e-5),
    "bernoulli_": (lambda t: on(t, 5000).bernoulli_(0.3), 0),
    "exponential_": (lambda t: on(t, 5000).exponential_(2), 1e-6),
    "geometric_": (lambda t: on(t, 5000).geometric_(0.2), 0),
    "cauchy_": (lambda t: on(t, 5000).cauchy_(), 1e-5),
    "log_normal_": (lambda t: on(t, 5000).log_normal_(), 1e-5),
    "dropout": (lambda t: t.nn.functional.dropout(t.ones(70, 1000, device="cuda"), 0.3), 0),
    "multinomial": (
        lambda t: t.multinomial(t.arange(1.0, 200, device="cuda"), 500, replacement=True), 0
    ),
    "poisson": (lambda t: t.poisson(t.full((5000,), 4.0, device="cuda")), 0),
}  # fmt: skip


def published() -> None:
    taeda.cuda.manual_seed(0)
    np.testing.assert_allclose(taeda.rand(8, device="cuda").tolist(), PUBLISHED, atol=5e-5)


def compare(name: str, torch: Any) -> str:
    draw, tolerance = DRAWS[name]
    for seed in (0, 42):
        drawn = []
        for framework in (taeda, torch):
            framework.manual_seed(seed)
            draw(framework)  # the second draw goes on where the first ended
            values = draw(framework).cpu()
            drawn.append((values.double() if values.is_floating_point() else values).numpy())
        np.testing.assert_allclose(*drawn, rtol=tolerance, atol=tolerance)
    return "two draws of two seeds"


PUBLISHED_NAME = "torch.rand(8) of seed 0, as published"


def row_name(draw: str) -> str:
    return f"{draw} as PyTorch's"


def names(settings: Settings) -> list[str]:
    return [PUBLISHED_NAME, *map(row_name, DRAWS)]


def rows(settings: Settings) -> Iterator[Row]:
    yield checked(PUBLISHED_NAME, published)
    torch = settings.torch
    for name in DRAWS:
        if torch is None or settings.rival != "cuda":
            yield Row(row_name(name), SKIPPED, "PyTorch with CUDA is not here to compare")
        else:
            yield checked(row_name(name), lambda n=name: compare(n, torch))
