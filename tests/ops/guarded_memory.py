"""Runs operators on tensors that begin, or end, beside a page that must not be touched: a kernel
that reads or writes an element too many dies here, also in code that no sanitizer sees (compiled at
run time, or in OpenBLAS) and in instruction sets that a sanitizer's build leaves out.

    [TAEDA_CPU=baseline] python -m tests.ops.guarded_memory DTYPES [NAMES]

DTYPES is how many dtypes of each operator are tried. Each operator runs in a forked process of its
own. The last line of the output counts calls, deaths and results that differ from unguarded ones.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gen.table import load
from tests.ops import samples as grid

import taeda as torch
import taeda.nn.functional as F

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
WIDTHS = (1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65)
Call = Callable[[], tuple[Callable, Any, Any]]  # a function and new arguments for it


def guarded(values: torch.Tensor, at_end: bool) -> torch.Tensor:
    """A copy whose first element follows such a page, or whose last one precedes it."""
    if not values.numel() or values.layout != torch.strided:
        return values
    nbytes = values.numel() * values.itemsize
    pages = -(-nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    copy = torch.frombuffer(
        memory, dtype=values.dtype, count=values.numel(),
        offset=PAGE + (pages * PAGE - nbytes if at_end else 0),
    )  # fmt: skip
    copy = copy.view(values.shape).copy_(values.detach())
    for page in (0, pages + 1):
        if LIBC.mprotect(ctypes.c_void_p(start + page * PAGE), PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return copy.requires_grad_() if values.requires_grad else copy


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(mapped(v, change) for v in value)
    return {k: mapped(v, change) for k, v in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    mapped(list(value) if isinstance(value, tuple) else value, lambda t: found.append(t) or t)
    return found


def outcome(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """The results of a call, then its gradients, as bytes compare."""
    torch.manual_seed(0)
    function, args, kwargs = call()
    args, kwargs = mapped(list(args), change), mapped(kwargs, change)
    inputs = [t for t in tensors([args, kwargs]) if t.requires_grad]
    results = tensors(function(*args, **kwargs))
    wanted = [r for r in results if r.requires_grad]
    if wanted and inputs:
        slopes = [change(torch.ones_like(r, memory_format=torch.contiguous_format)) for r in wanted]
        results = results + tensors(torch.autograd.grad(wanted, inputs, slopes, allow_unused=True))
    return [r.detach().clone() for r in results]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Equal but for the order of sums, which may depend on where memory is aligned."""
    return len(a) == len(b) and all(
        torch.allclose(x, y, 1e-3, 1e-3, equal_nan=True) for x, y in zip(a, b, strict=True)
    )


def from_table(dtypes: int, wanted: list[str]) -> dict[str, list[Call]]:
    calls: dict[str, list[Call]] = {}
    for op in load(Path(__file__).resolve().parents[2] / "ops"):
        function = grid.place(op, torch) if op.python and grid.samples(op) else None
        if function is None or (wanted and op.ident not in wanted) or op.name.startswith("empty"):
            continue
        if op.name == "detach_":  # refuses views, which guarded copies are
            continue

        def call(op: Any, function: Callable, sample: str, dtype: str) -> Any:
            make = grid.maker(op, torch, dtype, sample=sample, requires_grad=True)
            return function, *make.arguments(sample)

        calls[op.ident] = [
            lambda o=op, f=function, s=s, d=d: call(o, f, s, d)
            for d in grid.dtypes(op)[:dtypes]
            for s in grid.samples(op)
        ]
    return calls


def by_width() -> dict[str, list[Call]]:
    """What reads neighbours, in rows of all lengths beside that of a vector."""

    def of(
        function: Callable, *shapes: tuple[int, ...], dtype: Any = torch.float32, **options: Any
    ) -> Call:
        make = lambda: [torch.randn(s, dtype=dtype, requires_grad=True) for s in shapes]  # noqa: E731
        return lambda: (function, make(), options)

    calls: dict[str, list[Call]] = {}
    for n in WIDTHS:
        for name, made in {
            "depthwise": of(F.conv2d, (2, 3, 5, n), (3, 1, 3, 3), padding=1, groups=3),
            "dilated": of(F.conv2d, (1, 3, 7, n), (3, 1, 3, 3), padding=2, dilation=2, groups=3),
            "convolution": of(F.conv2d, (2, 5, 5, n), (4, 5, 3, 3), padding=1),
            "strided": of(F.conv2d, (2, 3, 6, n + 1), (4, 3, 2, 2), stride=2),
            "sequence": of(F.conv1d, (2, 3, n + 2), (4, 3, 3)),
            "transposed": of(F.conv_transpose2d, (2, 3, 3, n), (3, 2, 3, 3), stride=2),
            "average": of(F.avg_pool2d, (2, 3, 4, n + 1), kernel_size=2, stride=1),
            "largest": of(F.max_pool2d, (2, 3, 4, n + 2), kernel_size=3, padding=1),
            "resized": of(F.interpolate, (1, 2, 3, n), scale_factor=2, mode="bilinear"),
            "product": of(torch.matmul, (n, 5), (5, n)),
            "batches": of(torch.bmm, (2, 3, n), (2, n, 4)),
            "linear": of(F.linear, (3, n), (7, n), (7,)),
            "linear in panels": of(F.linear, (40, n), (3 * n, n), dtype=torch.float64),
            "attention": of(F.scaled_dot_product_attention, *[(1, 2, 5, n)] * 3),
            "softmax": of(F.softmax, (3, n), dim=-1),
            "norm": of(lambda x, w: F.layer_norm(x, w.shape, w), (3, n), (n,)),
            "batch norm": of(lambda x: F.batch_norm(x, None, None, training=True), (2, 3, n)),
            "rows": of(lambda x: x.sum(0) + x.mean() + x.var(0) + x.cumsum(1)[0], (3, n)),
            "order": of(lambda x: x.sort(-1).values + x.flip(-1), (3, n)),
            "exact": of(lambda x: F.gelu(x) * x.exp() + x.sin() / (x * x + 1), (n,)),
        }.items():
            calls.setdefault(name, []).append(made)
    return calls


def count_wrong(calls: list[Call]) -> int:
    wrong = 0
    for call in calls:
        try:
            expected = outcome(call, lambda t: t)
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            continue  # a dtype without gradients
        for at_end in (False, True):
            wrong += not same(outcome(call, lambda t, e=at_end: guarded(t, e)), expected)
    return wrong


def main() -> int:
    dtypes, wanted = int(sys.argv[1]), sys.argv[2:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    count = deaths = differences = 0
    programs = from_table(dtypes, wanted) | ({} if wanted else by_width())
    for name, calls in programs.items():
        count += 2 * len(calls)
        if (child := os.fork()) == 0:
            status = 255
            try:
                status = min(count_wrong(calls), 254)
            finally:
                os._exit(status)
        status = os.waitpid(child, 0)[1]
        deaths += os.WIFSIGNALED(status)
        differences += os.WIFEXITED(status) and os.WEXITSTATUS(status) > 0
        if status:
            print(f"{name}: status {status}", flush=True)
    print(f"{count} calls, {deaths} deaths, {differences} operators differ")
    return deaths + differences


if __name__ == "__main__":
    sys.exit(main() > 0)
