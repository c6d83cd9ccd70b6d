"""Tensors sent to another process, which looks at the last element and answers.

Each case starts its consumer by `spawn` and sends fresh tensors, except where they are shared
already. "As bytes" pickles the tensor itself and sends that through the standard library's queue:
what sharing memory saves.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]

FLOATS = {"4 floats": 4, "1 KiB": 1 << 8, "64 KiB": 1 << 14, "1 MiB": 1 << 18, "16 MiB": 1 << 22}


def consume(framework: str, source: Any, answer: Any) -> None:
    """In the other process: until there is nothing more to read."""
    importlib.import_module(framework).set_num_threads(1)
    while True:
        x = source.get()
        if isinstance(x, bytes):
            x = pickle.loads(x)
        answer.send(x[-1].item())
        del x


def consumer(torch: Any, context: Any, source: Any) -> Any:
    """Starts one; what it answers by."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context.Process(target=consume, args=(torch.__name__, source, theirs), daemon=True).start()
    return ours


def fresh(torch: Any, n: int) -> Run:
    """queue.put(x) until x.item() is back."""
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    answer = consumer(torch, context, queue)

    def run() -> None:
        queue.put(torch.ones(n))
        assert answer.recv() == 1

    return run


def shared(torch: Any, n: int) -> Run:
    context = torch.multiprocessing.get_context("spawn")
    queue, x = context.Queue(), torch.ones(n).share_memory_()
    answer = consumer(torch, context, queue)

    def run() -> None:
        queue.put(x)
        assert answer.recv() == 1

    return run


def as_bytes(torch: Any, n: int) -> Run:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    answer = consumer(torch, context, queue)

    def run() -> None:
        queue.put(pickle.dumps(torch.ones(n)))
        assert answer.recv() == 1

    return run


def _case(make: Callable[[Any, int], Run], n: int) -> Callable[[Any], Run]:
    return lambda torch: make(torch, n)


PROCESSES: dict[str, Callable[[Any], Run]] = {
    **{f"queue, {size}": _case(fresh, n) for size, n in FLOATS.items()},
    "queue, 16 MiB, shared before": _case(shared, FLOATS["16 MiB"]),
    **{f"as bytes, {size}": _case(as_bytes, n) for size, n in FLOATS.items()},
}
