"""One framework in one process, told through its standard input what to time.

    python bench/worker.py taeda 2

The frameworks are taeda, torch and, for what it has an equal for, numpy.

A line `SUITE\\tCASE\\tLOOPS` is answered by the seconds that LOOPS calls took (in the suite `part`
would take, on all of the data); LOOPS 0 prepares the case and answers how many take about 40 ms.
What cannot run answers `error WHY`.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import cases


def seconds(run: Callable[[], Any], loops: int) -> float:
    gc.disable()
    start = time.perf_counter()
    for _ in range(loops):
        run()
    took = time.perf_counter() - start
    gc.enable()
    return took


TARGET = 0.04  # seconds that a measurement takes


def loops_for(run: Callable[[], Any]) -> int:
    run()  # opens libraries, compiles kernels: not to be counted
    loops = 1
    while True:
        took = seconds(run, loops)
        if took > TARGET / 4 or loops >= 1 << 22:
            return max(1, round(loops * TARGET / max(took, 1e-9)))
        loops *= 4


def main() -> None:
    framework = sys.argv[1]
    if framework != "numpy":  # which takes the cores that it is given, for products
        importlib.import_module(framework).set_num_threads(int(sys.argv[2]))
    prepared: dict[tuple[str, str], tuple[Callable[[], Any], float]] = {}
    for line in sys.stdin:
        suite, name, loops_text = line.rstrip("\n").split("\t")
        loops, key = int(loops_text), (suite, name)
        try:
            if key not in prepared:
                prepared.clear()
                prepared[key] = cases.make(suite, name, framework)
            call, times = prepared[key]
            answer: object = loops_for(call) if loops == 0 else seconds(call, loops) * times
        except Exception as error:
            prepared.clear()
            answer = (
                f"error {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            )
        print(answer, flush=True)


if __name__ == "__main__":
    main()
