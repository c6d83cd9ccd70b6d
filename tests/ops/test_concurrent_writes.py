"""Tensors that another process writes while an operator reads them: an exception or a result, never
a dead process. Nothing that was checked may be read again to address memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numpy")

# A child flips the whole of a shared array between two states, as fast as memory allows, while the
# operator of each case runs on tensors in that array.
PROGRAM = """
import mmap, os, sys, warnings
import numpy as np
import taeda as torch
import taeda.nn.functional as F

warnings.simplefilter("ignore")
BYTES, PAGE = 1 << 20, 4096
memory = mmap.mmap(-1, PAGE + 3 * BYTES)
whole = np.frombuffer(memory, dtype=np.uint8)
control = whole[:16].view(np.int64)  # [bytes to flip, how often it was flipped]
live, first, second = (whole[PAGE + k * BYTES : PAGE + (k + 1) * BYTES] for k in range(3))

parent = os.getpid()
writer = os.fork()
if writer == 0:
    while os.getppid() == parent:
        n = int(control[0])
        np.copyto(live[:n], second[:n])
        for _ in range(3):  # good more often than bad: most checks pass
            np.copyto(live[:n], first[:n])
        control[1] += 1
    os._exit(0)

N = 1 << 15
random = np.random.default_rng(7)


def shared(good, bad):
    "A tensor that is now `good`, now `bad`."
    good = np.ascontiguousarray(good)
    bad = np.ascontiguousarray(np.broadcast_to(np.asarray(bad, good.dtype), good.shape))
    control[0] = 0
    for place, values in ((first, good), (second, bad), (live, good)):
        place[: good.nbytes] = values.reshape(-1).view(np.uint8)
    control[0] = good.nbytes
    return torch.from_numpy(live[: good.nbytes].view(good.dtype).reshape(good.shape))


def indices_below(shape, high, bad=1 << 40, dtype=np.int64):
    return shared(random.integers(0, high, shape).astype(dtype), bad)


def mask(shape):
    return shared(random.random(shape) < 0.02, True)


ROWS = 64
table, vector = torch.ones(ROWS, 4), torch.ones(ROWS)
rows, ones = torch.ones(N, 4), torch.ones(N)
square = torch.ones(ROWS, N // ROWS)
scores = torch.randn(N, 8)


def write(name, *args, x=table, **kwargs):
    getattr(x.clone(), name)(*args, **kwargs)


def loss(function, target, **kwargs):
    x = scores.clone().requires_grad_()
    function(x, target, **kwargs).backward(torch.tensor(1.0))


def bags(i, offsets, mode):
    w = table.clone().requires_grad_()
    F.embedding_bag(i, w, offsets, mode=mode).sum().backward()


def embedding(i):
    w = table.clone().requires_grad_()
    F.embedding(i, w, scale_grad_by_freq=True).sum().backward()


def pooled(indices):
    F.max_unpool1d(torch.ones(1, 1, N), indices, 2)


def bag_case(mode):
    offsets = torch.arange(0, N, 8)
    return lambda i: bags(i, offsets, mode)


def float_case(call, bad=float("nan")):
    def make():
        x = shared(random.standard_normal((ROWS, 257)), bad)
        return lambda: call(x)

    return make


def index_case(call, *args, **kwargs):
    def make():
        i = indices_below(*(args or (N, ROWS)), **kwargs)
        return lambda: call(i)

    return make


def mask_case(call, *shape):
    def make():
        m = mask(shape)
        return lambda: call(m)

    return make


def ctc(lengths):
    F.ctc_loss(torch.zeros(16, 256, 8), torch.ones(256, 16, dtype=torch.long),
               torch.full((256,), 16), lengths)


GRID = (1, ROWS, ROWS, 2)
CASES = {
    "index_select": index_case(lambda i: torch.index_select(table, 0, i)),
    "index_select of int32": index_case(lambda i: torch.index_select(table, 0, i), N, ROWS,
                                        bad=1 << 30, dtype=np.int32),
    "x[i]": index_case(lambda i: table[i]),
    "x[:, i]": index_case(lambda i: square[:, i], N // 8, N // ROWS),
    "x[i] = y": index_case(lambda i: write("__setitem__", i, rows)),
    "index_put_ that adds": index_case(lambda i: write("index_put_", (i,), rows, accumulate=True)),
    "index_add_": index_case(lambda i: write("index_add_", 0, i, rows)),
    "index_copy_": index_case(lambda i: write("index_copy_", 0, i, rows)),
    "index_fill_": index_case(lambda i: write("index_fill_", 0, i, 2.0)),
    "take": index_case(lambda i: table.take(i)),
    "put_": index_case(lambda i: write("put_", i, ones)),
    "embedding": index_case(embedding),
    "embedding with max_norm": index_case(lambda i: F.embedding(i, table.clone(), max_norm=1.0)),
    "embedding_bag, sum": index_case(bag_case("sum")),
    "embedding_bag, mean": index_case(bag_case("mean")),
    "embedding_bag, max": index_case(bag_case("max")),
    "offsets of embedding_bag": lambda: (
        lambda o: lambda: bags(torch.zeros(N, dtype=torch.long), o, "sum")
    )(shared(np.arange(0, N, 2), 1 << 40)),
    "gather": index_case(lambda i: torch.gather(vector, 0, i)),
    "gather of rows": index_case(lambda i: torch.gather(table, 0, i), (N // 4, 4), ROWS),
    "gather by columns": index_case(lambda i: torch.gather(square, 1, i), (ROWS, 512), N // ROWS),
    "gather, transposed": index_case(
        lambda i: torch.gather(square.t(), 0, i.t()), (ROWS, 512), 512),
    "take_along_dim": index_case(lambda i: torch.take_along_dim(table, i, 0), (N // 4, 4), ROWS),
    "scatter_": index_case(lambda i: write("scatter_", 0, i, ones, x=vector)),
    "scatter_ of a number": index_case(lambda i: write("scatter_", 0, i, 2.0, x=vector)),
    "scatter_add_": index_case(lambda i: write("scatter_add_", 0, i, ones, x=vector)),
    "scatter_add_ of rows": index_case(
        lambda i: write("scatter_add_", 0, i, torch.ones(N // 4, 4)), (N // 4, 4), ROWS),
    "scatter_reduce_": index_case(
        lambda i: write("scatter_reduce_", 0, i, ones, "amax", x=vector)),
    "scatter_reduce_ of means": index_case(
        lambda i: write("scatter_reduce_", 0, i, ones, "mean", include_self=False, x=vector)),
    "repeat_interleave": index_case(torch.repeat_interleave, N, 3, bad=90),
    "repeat_interleave of rows": index_case(
        lambda i: torch.repeat_interleave(rows, i, 0), N, 3, bad=0),
    "bincount": index_case(torch.bincount),
    "bincount with weights": index_case(lambda i: torch.bincount(i, ones)),
    "one_hot": index_case(lambda i: F.one_hot(i, ROWS)),
    "nll_loss": index_case(lambda t: loss(F.nll_loss, t), N, 8),
    "cross_entropy": index_case(lambda t: loss(F.cross_entropy, t), N, 8),
    "multi_margin_loss": index_case(lambda t: loss(F.multi_margin_loss, t), N, 8),
    "max_unpool1d": index_case(pooled, (1, 1, N), 2 * N),
    "unique": index_case(lambda i: torch.unique(i, return_inverse=True, return_counts=True)),
    "unique of rows": index_case(lambda i: torch.unique(i, dim=0), (N // 4, 4), ROWS),
    "unique_consecutive": index_case(torch.unique_consecutive),
    "sort of integers": index_case(torch.sort),
    "searchsorted by a sorter": index_case(
        lambda i: torch.searchsorted(torch.zeros(N), ones, sorter=i), N, N),
    "tensor_split": index_case(lambda i: torch.tensor_split(ones, i), 64, N),
    "lu_unpack": index_case(
        lambda p: torch.lu_unpack(torch.ones(512, 8, 8), p + 1), (512, 8), 8, bad=1 << 30,
        dtype=np.int32),
    "ctc_loss": index_case(ctc, 256, 8),
    "nonzero": mask_case(torch.nonzero, N * 4),
    "nonzero of a matrix": mask_case(torch.nonzero, ROWS, 999),
    "masked_select": mask_case(lambda m: torch.masked_select(torch.ones(ROWS, 999), m), ROWS, 999),
    "x[mask]": mask_case(lambda m: torch.ones(ROWS, 999)[m], ROWS, 999),
    "x[mask] of rows": mask_case(lambda m: rows[m], N),
    "x[mask] = number": mask_case(lambda m: write("__setitem__", m, 2.0, x=rows), N),
    "masked_scatter_": mask_case(lambda m: write("masked_scatter_", m, ones, x=ones), N),
    "median": float_case(lambda x: torch.median(x, 1)),
    "nanmedian": float_case(lambda x: torch.nanmedian(x, 1)),
    "kthvalue": float_case(lambda x: torch.kthvalue(x, 9, 1)),
    "mode": float_case(lambda x: torch.mode(x, 1)),
    "sort": float_case(torch.sort),
    "topk": float_case(lambda x: torch.topk(x, 5)),
    "multinomial": float_case(lambda x: torch.multinomial(x.abs(), 20)),
    "histc": float_case(lambda x: torch.histc(x, 10), 1e300),
    "grid_sample": lambda: (lambda g: lambda: F.grid_sample(torch.ones(1, 4, 9, 9), g))(
        shared(random.uniform(-1, 1, GRID).astype(np.float32), 3e38)),
    "grid_sample, bicubic": lambda: (
        lambda g: lambda: F.grid_sample(torch.ones(1, 4, 9, 9), g, mode="bicubic",
                                        padding_mode="reflection"))(
        shared(random.uniform(-1, 1, GRID).astype(np.float32), 3e38)),
}

try:
    for name, make in CASES.items():
        print(name, flush=True)
        call, raised, tried = make(), 0, 0
        for _ in range(20 * int(sys.argv[1])):
            flips = int(control[1])
            try:
                call()
            except Exception:
                raised += 1
            tried += int(control[1]) != flips  # else the writer had no processor meanwhile
            if tried == int(sys.argv[1]):
                break
    assert control[1] > 0
    print("done", flush=True)
finally:
    os.kill(writer, 9)
    os.waitpid(writer, 0)
"""


def test_no_operator_dies_of_indices_that_change() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "40"], capture_output=True, text=True, timeout=600
    )
    last = (result.stdout.splitlines() or ["nothing"])[-1]
    assert (last, result.returncode) == ("done", 0), result.stderr[-2000:]
