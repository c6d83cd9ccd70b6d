"""A training step as a CUDA graph: the parameters' bits are those of eager steps, in less time.

Products run on the CPU until devices have kernels for them, and what runs there cannot be captured:
the model does without (a normalisation, weights of its own, dropout, a loss).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.gpu.rows import Row, Settings, bar, checked

import taeda

STEPS = 5


class Model(taeda.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        nn = taeda.nn
        self.norm = nn.LayerNorm(width)
        self.scale, self.shift = (nn.Parameter(taeda.randn(16, width)) for _ in range(2))

    def forward(self, x: Any) -> Any:
        h = taeda.nn.functional.gelu(self.norm(x) * self.scale + self.shift)
        return taeda.nn.functional.dropout(h, 0.1).mean(1)


class Training:
    """A model, its optimizer, a batch."""

    def __init__(self, width: int) -> None:
        taeda.manual_seed(1)
        self.model = Model(width).to("cuda")
        self.optimizer = taeda.optim.AdamW(self.model.parameters(), lr=0.01, capturable=True)
        self.x = taeda.randn(8, 16, width).to("cuda")
        self.target = taeda.arange(8).to("cuda") % width

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        loss = taeda.nn.functional.cross_entropy(self.model(self.x), self.target)
        loss.backward()
        self.optimizer.step()

    def captured(self) -> Callable[[], Any]:
        side = taeda.cuda.Stream()
        side.wait_stream(taeda.cuda.current_stream())
        with taeda.cuda.stream(side):
            for _ in range(3):
                self.step()
        taeda.cuda.current_stream().wait_stream(side)
        graph = taeda.cuda.CUDAGraph()
        with taeda.cuda.graph(graph):
            self.step()
        self.graph = graph
        return graph.replay

    def parameters(self) -> list[Any]:
        return [p.detach().cpu() for p in self.model.parameters()]


def trained(width: int, captured: bool) -> list[Any]:
    training = Training(width)
    if captured:
        work = training.captured()
    else:
        work = training.step
        for _ in range(3):
            work()
    for _ in range(STEPS):
        work()
    return training.parameters()


def same_bits(settings: Settings) -> str:
    width = 32 if settings.simulated else 512
    eager, replayed = trained(width, False), trained(width, True)
    for a, b in zip(eager, replayed, strict=True):
        assert taeda.equal(a, b), f"largest difference {(a - b).abs().max().item():.3g}"
    start = Training(width).parameters()
    assert not any(taeda.equal(a, b) for a, b in zip(start, replayed, strict=True))
    return f"{STEPS} steps, {len(eager)} parameters"


def seconds(work: Callable[[], Any], calls: int) -> float:
    work()
    taeda.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    taeda.cuda.synchronize()
    return (time.perf_counter() - start) / calls


SAME_BITS = "a captured training step gives the bits of eager ones"
TIME = "a captured training step"


def names(settings: Settings) -> list[str]:
    return [SAME_BITS, TIME]


def rows(settings: Settings) -> Iterator[Row]:
    yield checked(SAME_BITS, lambda: same_bits(settings))
    width, calls = (32, 3) if settings.simulated else (512, 200)
    eager = seconds(Training(width).step, calls)
    training = Training(width)
    replayed = seconds(training.captured(), calls)
    what = "an eager step's time"
    yield bar(settings, TIME, replayed * 1e6, "us", at_most=eager * 1e6, what=what)
