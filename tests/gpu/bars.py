"""What is measured on a card, beside its bound: bandwidths, launches, sorting, the allocator.

A bandwidth counts the bytes that an operator has to read and write once, and is compared with that
of the driver's own copy in the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.gpu.rows import Row, Settings, bar

import taeda

BYTES = 256 << 20  # of each array whose bandwidth is measured
ROW = 4096
SHARE = 0.85
LAUNCH_US = 5.0
SORTED, SORT_RATIO = 64 << 20, 1.3
ALLOCATION_US = 1.0
DTYPES = (taeda.float32, taeda.bfloat16)
LAUNCH, ALLOCATION = "a launch from Python", "an allocation that the cache serves, or its release"


def milliseconds(framework: Any, work: Callable[[], Any], repeats: int = 20) -> float:
    """The median time of `work` on the device, each of several calls that follow one another: the
    host's time to launch the first one is not much of it."""
    calls = 1 if taeda._C._cuda_is_simulated() else 8
    work()
    times = []
    for _ in range(repeats):
        start, end = (framework.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls)
    return sorted(times)[repeats // 2]


def cases(dtype: Any, n: int, device: str = "cuda") -> dict[str, tuple[float, Callable[[], Any]]]:
    """Operators by name: arrays' worth of bytes, and the call."""
    F = taeda.nn.functional
    x, y = (taeda.ones(n, dtype=dtype, device=device) for _ in range(2))
    rows, z = x.view(-1, ROW), taeda.empty_like(x)
    weight, bias = (taeda.ones(ROW, dtype=dtype, device=device) for _ in range(2))
    other = taeda.bfloat16 if dtype == taeda.float32 else taeda.float32
    converted = taeda.empty(n, dtype=other, device=device)
    mixed = 1 + other.itemsize / dtype.itemsize
    return {
        "add": (3, lambda: taeda.add(x, y, out=z)),
        "mul by a number": (2, lambda: taeda.mul(x, 2.0, out=z)),
        "gelu": (2, lambda: F.gelu(x)),
        "copy to another type": (mixed, lambda: converted.copy_(x)),
        "softmax": (2, lambda: rows.softmax(-1)),
        "layer_norm": (2, lambda: F.layer_norm(rows, (ROW,), weight, bias)),
        "sum": (1, lambda: x.sum()),
        "sum of rows": (1, lambda: rows.sum(1)),
        "sum of columns": (1, lambda: rows.sum(0)),
    }


def bandwidths(settings: Settings) -> Iterator[Row]:
    bytes_each, repeats = (2 * ROW * 4, 1) if settings.simulated else (BYTES, 20)
    for dtype in DTYPES:
        name, n = str(dtype).removeprefix("torch."), bytes_each // dtype.itemsize

        def gigabytes(arrays: float, work: Callable[[], Any]) -> float:
            return arrays * bytes_each / milliseconds(taeda, work, repeats) / 1e6

        source, target = (taeda.ones(n, dtype=dtype, device="cuda") for _ in range(2))
        copy = gigabytes(2, lambda a=source, b=target: b.copy_(a))
        yield bar(settings, f"copy by the driver, {name}", copy, "GB/s")
        for operator, (arrays, work) in cases(dtype, n).items():
            what = f"{SHARE:.0%} of the driver's copy"
            row, speed = f"{operator}, {name}", gigabytes(arrays, work)
            yield bar(settings, row, speed, "GB/s", at_least=SHARE * copy, what=what)


def microseconds(call: Callable[[], Any], calls: int) -> float:
    """Of the host, the least of five rounds."""
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - start) / calls * 1e6)
        taeda.cuda.synchronize()
    return min(rounds)


def launch(settings: Settings) -> Row:
    x = taeda.ones(8, device="cuda")
    us = microseconds(lambda: x.add_(1), 20 if settings.simulated else 1000)
    return bar(settings, LAUNCH, us, "us", at_most=LAUNCH_US)


def allocation(settings: Settings) -> Row:
    """Half of a pair, from Python with the calls' own overhead; the block is there."""
    allocate, release = taeda._C._cuda_allocate, taeda._C._cuda_release
    stream = taeda._C._cuda_current_stream(0)
    release(allocate(4096, 0, stream), 0)
    us = microseconds(lambda: release(allocate(4096, 0, stream), 0), 20_000) / 2
    return bar(settings, ALLOCATION, us, "us", at_most=ALLOCATION_US)


def sort_name(n: int) -> str:
    return f"sort of {n >> 20} M int32"


def sort(settings: Settings) -> Row:
    n = 1 << 12 if settings.simulated else SORTED
    name = sort_name(n)
    x = taeda.randint(-(2**31), 2**31 - 1, (n,), dtype=taeda.int32, device="cuda")
    ours = milliseconds(taeda, lambda: x.sort(), 1 if settings.simulated else 5)
    torch = settings.torch
    if torch is None or settings.rival != "cuda":
        why = "PyTorch with CUDA is not here to compare"
        return bar(settings, name, ours, "ms", what=why)
    values = torch.randint(-(2**31), 2**31 - 1, (n,), dtype=torch.int32, device="cuda")
    theirs = milliseconds(torch, lambda: values.sort(), 5)
    what = f"{SORT_RATIO} times PyTorch's {theirs:.4g} ms"
    return bar(settings, name, ours, "ms", at_most=SORT_RATIO * theirs, what=what)


def names(settings: Settings) -> list[str]:
    found = [LAUNCH, ALLOCATION]
    for dtype in DTYPES:
        operators = ["copy by the driver", *cases(dtype, ROW, "meta")]
        found += [f"{o}, {str(dtype).removeprefix('torch.')}" for o in operators]
    return [*found, sort_name(SORTED)]


def rows(settings: Settings) -> Iterator[Row]:
    yield launch(settings)
    yield allocation(settings)
    yield from bandwidths(settings)
    yield sort(settings)
