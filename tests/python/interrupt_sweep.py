"""Looks for operators that do not look for signals: each, and its backward, is called with large
input made from its samples, and the longest time without a handler is measured. Pointwise operators
share one loop and are left out.

    .venv/bin/python -m tests.python.interrupt_sweep                  # all, half an hour
    .venv/bin/python -m tests.python.interrupt_sweep --dtype complex64 conv2d sort

Samples grow in their first dimension, their last, or all. What counts is CPU time: other programs
do not lengthen it. test_interrupt.py has what the sweep has found.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gen.table import Op, load
from tests.ops import samples as grid

import taeda

ALLOWED = 0.5  # seconds of CPU between a signal and its handler
LONG = 0.4  # calls of fewer seconds show nothing
SUSPECT = 0.25  # of such a call: it grows with the input, where operators look every 0.1 s
MOST = 2.0  # calls are ended after so many
GROWTH: dict[str, Callable[[tuple[int, ...], int], tuple[int, ...]]] = {
    "first": lambda s, f: (s[0] * f, *s[1:]),
    "last": lambda s, f: (*s[:-1], s[-1] * f),
    "all": lambda s, f: tuple(n * f for n in s),
}


class TooLong(Exception):
    pass


class Longest:
    """The longest CPU time within the block in which no handler ran; the block ends after MOST."""

    def __enter__(self) -> Longest:
        self.times, self.ended = [time.process_time()], False
        self.before = signal.signal(signal.SIGALRM, self.handle)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        return self

    def handle(self, *_: Any) -> None:
        self.times.append(time.process_time())
        if self.times[-1] - self.times[0] > MOST and not self.ended:
            self.ended = True
            raise TooLong

    def __exit__(self, kind: type | None, *_: Any) -> bool:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
        self.times.append(time.process_time())
        return kind is TooLong

    @property
    def gap(self) -> float:
        return max(b - a for a, b in itertools.pairwise(self.times))

    @property
    def total(self) -> float:
        return self.times[-1] - self.times[0]


class LargeMaker(grid.Maker):
    """Makes the tensors of a sample larger by a factor."""

    grow: Callable[[tuple[int, ...]], tuple[int, ...]]

    def x(self, *shape: int, dtype: str | None = None) -> Any:
        kind = getattr(taeda, dtype or self.dtype)
        size = self.grow(shape) if shape else ()
        if kind.is_floating_point or kind.is_complex:
            t = taeda.rand(size, dtype=kind) * (self.high - self.low) + self.low
        else:
            t = taeda.randint(math.ceil(self.low), max(int(self.high), 1) + 1, size).to(kind)
        if self.requires_grad and (t.is_floating_point() or t.is_complex()):
            t.requires_grad_()
        self.made.append(t)
        return t

    def i(self, *shape: int, high: int = 3) -> Any:
        return taeda.randint(0, high, self.grow(shape) if shape else ())

    def b(self, *shape: int) -> Any:
        return taeda.rand(self.grow(shape) if shape else ()) < 0.5


def measured(op: Op, call: Callable, sample: str, dtype: str, growth: str) -> Iterator[tuple]:
    """(what, size factor, seconds, gap) of the call and of its backward, once they are long."""
    factor = 4
    pending = {"forward", "backward"}
    while pending and factor < 1 << 26:
        low, high = op.test.get("range", [-3, 3])
        maker = LargeMaker(taeda, dtype, "plain", low, high, 0, requires_grad="backward" in pending)
        maker.grow = lambda shape: GROWTH[growth](shape, factor)  # noqa: B023
        args, kwargs = maker.arguments(sample)
        if sum(t.numel() for t in maker.made) > 1 << 27:
            return
        with Longest() as forward:
            result = call(*args, **kwargs)
        if "forward" in pending and forward.total >= LONG:
            pending.discard("forward")
            yield "forward", factor, forward.total, forward.gap
        if forward.total > MOST:
            return
        results = [r for r in grid_results(result) if r.requires_grad]
        leaves = [t for t in maker.made if t.requires_grad and t.is_leaf]
        backward = None
        if "backward" in pending and results and leaves:
            gys = [taeda.ones_like(r) for r in results]
            with Longest() as backward:
                taeda.autograd.grad(results, leaves, gys, allow_unused=True)
            if backward.total >= LONG:
                pending.discard("backward")
                yield "backward", factor, backward.total, backward.gap
        else:
            pending.discard("backward")
        slowest = max(forward.total, backward.total if backward else 0)
        factor *= 2 if growth == "all" or slowest > 0.05 else 8


def grid_results(result: Any) -> list[Any]:
    if isinstance(result, taeda.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in grid_results(r)]
    return []


def sweep(op: Op, dtype: str) -> Iterator[str]:
    call = grid.place(op, taeda)
    kinds = {d.rstrip("0123456789") for d in grid.dtypes(op)}
    if call is None or op.body == "pointwise" or dtype.rstrip("0123456789") not in kinds:
        return
    for sample, growth in itertools.product(grid.samples(op), GROWTH):
        try:
            for what, factor, total, gap in measured(op, call, sample, dtype, growth):
                verdict = "OVER" if gap > ALLOWED else "over?" if gap > SUSPECT else "fine"
                yield (
                    f"{verdict} {op.ident} {what} ({sample}) {dtype}, {growth} x {factor}: "
                    f"{total:.2f} s, gap {gap:.2f}"
                )
        except (RuntimeError, ValueError, TypeError, IndexError, MemoryError, OverflowError):
            continue  # the sample does not fit when it is enlarged, or fills the memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operators; all if none is given")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--memory", type=float, default=6, help="GiB")
    options = parser.parse_args()
    limit = math.ceil(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    for op in load(Path(__file__).parents[2] / "ops"):
        if not options.names or op.ident in options.names or op.name in options.names:
            for line in sweep(op, options.dtype):
                print(line, flush=True)


if __name__ == "__main__":
    main()
