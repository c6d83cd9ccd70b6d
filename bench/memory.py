"""What one framework does with memory, in a process of its own: for the suite `memory` of run.py.

    python bench/memory.py taeda 1

prints a JSON list, in the order of MEASURES: what layers that work in place, or only need shapes,
keep for backward, the time of a fresh result over that of a result written in place, how much of
what was freed stays resident, and how far sizes that vary let the process grow.
"""

from __future__ import annotations

import gc
import importlib
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEGA = 1 << 20


def resident() -> float:
    """Megabytes of this process in main memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MEGA


def milliseconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    for _ in range(4):
        run()
    return (time.perf_counter() - start) / 4 * 1000


def fresh_over_out(torch: Any) -> float:
    """x + 1 on 64 MB into a new tensor, over the same into one that is there."""
    x, out = torch.ones(16 * MEGA), torch.empty(16 * MEGA)
    fresh, given = [], []
    for _ in range(15):
        fresh.append(milliseconds(lambda: x + 1))
        given.append(milliseconds(lambda: torch.add(x, 1, out=out)))
    return statistics.median(fresh[2:]) / statistics.median(given[2:])


def kept_after_freeing(torch: Any) -> float:
    """Megabytes that are left of 512 after the tensors are gone and the cache, if any, is empty."""
    empty_cache = getattr(torch.cpu, "empty_cache", gc.collect)
    empty_cache()
    before = resident()
    tensors = [torch.ones(4 * MEGA) for _ in range(32)]
    del tensors
    empty_cache()
    return max(0.0, resident() - before)


def growth_of_varying_sizes(torch: Any) -> float:
    """How far a thousand results of 1 to 64 MB, four alive at a time, let the process grow, over
    what four of the largest need."""
    draw = random.Random(0)
    before, most = resident(), 0.0
    alive: list[Any] = []
    for _ in range(1000):
        alive = [*alive[-3:], torch.ones(draw.randint(MEGA // 4, 16 * MEGA))]
        most = max(most, resident() - before)
    return most / 256


def kept_for_backward(layers: Callable[[Any, Any], Any]) -> Callable[[Any], float]:
    """Megabytes that 64 MB take after `layers`, with a gradient to come, beyond the input's."""

    def measure(torch: Any) -> float:
        empty_cache = getattr(torch.cpu, "empty_cache", gc.collect)
        layers(torch, torch.ones(64, 64, requires_grad=True))  # loads the code
        x = torch.ones(4096, 4096, requires_grad=True)
        empty_cache()
        before = resident()
        y = layers(torch, x)
        empty_cache()
        kept = resident() - before
        del y
        return kept

    return measure


# Layers that overwrite a product and need their result alone for backward, or, like dropout in
# evaluation, leave it where it is.
IN_PLACE: list[Callable[[Any, Any], Any]] = [
    lambda torch, x: torch.nn.functional.relu_(x),
    lambda torch, x: torch.nn.functional.leaky_relu_(x, 0.1),
    lambda torch, x: torch.nn.functional.elu_(x),
    lambda torch, x: torch.nn.functional.celu_(x),
    lambda torch, x: torch.nn.functional.selu_(x),
    lambda torch, x: torch.nn.functional.relu6(x, inplace=True),
    lambda torch, x: torch.sigmoid_(x),
    lambda torch, x: torch.nn.functional.dropout(x, training=False),
]


def most_for_activations(torch: Any) -> float:
    """Megabytes that the activation which keeps most leaves of 64 MB."""

    def of_product(layer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda torch, x: layer(torch, x * 2)

    return max(kept_for_backward(of_product(layer))(torch) for layer in IN_PLACE)


def shapes(torch: Any, x: Any) -> Any:
    """Numbers, views and sums need no values for backward: one sum of a row is left."""
    return ((x * 2 + 1) / 3 - 4).view(64, -1).transpose(0, 1).neg().sum(1)


# name, unit, the most that taeda may take, what is measured
MEASURES: list[tuple[str, str, float, Callable[[Any], float]]] = [
    ("kept of 64 MB for in-place activations", "MB", 70, most_for_activations),
    ("kept of 64 MB for numbers and views", "MB", 4, kept_for_backward(shapes)),
    ("x + 1 on 64 MB, a fresh result over out=", "x", 1.1, fresh_over_out),
    ("left of 512 MB that were freed", "MB", 8, kept_after_freeing),
    ("sizes that vary, over what is alive", "x", 2, growth_of_varying_sizes),
]


def main() -> None:
    torch = importlib.import_module(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps([measure(torch) for *_, measure in MEASURES]))


if __name__ == "__main__":
    main()
