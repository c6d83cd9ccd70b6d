"""Signals during operators: handlers run between the blocks of a long one, and what they raise ends
it and leaves everything usable."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import taeda as torch
import taeda.nn.functional as F

HUGE = 2**40


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


class Stop(Exception):
    pass


class Alarm:
    """Calls `action` on SIGALRM after `first` seconds, and then every `each`."""

    def __init__(self, action: Callable[[], None], first: float = 0.05, each: float = 0) -> None:
        self.action, self.first, self.each, self.calls = action, first, each, 0

    def __enter__(self) -> Alarm:
        self.before = signal.signal(signal.SIGALRM, self.handle)
        signal.setitimer(signal.ITIMER_REAL, self.first, self.each)
        return self

    def handle(self, *_: Any) -> None:
        self.calls += 1
        self.action()

    def __exit__(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def stop() -> None:
    raise Stop


# Operators on tensors of one element that is repeated 2^40 times: they would take an hour.
ENDLESS = {
    "sum": lambda x: x.sum(),
    "sum of halves": lambda x: x[0].half().expand(HUGE).sum(),
    "sum of pairs": lambda x: x[0].expand(HUGE // 2, 2).sum(0),
    "mean": lambda x: x.mean(),
    "prod": lambda x: x.prod(),
    "max": lambda x: x.max(),
    "aminmax": lambda x: x.aminmax(),
    "all": lambda x: x.all(),
    "any": lambda x: torch.zeros(1).expand(HUGE).any(),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "var": lambda x: x.var(),
    "count_nonzero": lambda x: x.count_nonzero(),
    "nansum": lambda x: x.nansum(),
    "dot": lambda x: torch.dot(x, x),
    "product": lambda x: x[0].expand(4, HUGE) @ x[0].expand(4, HUGE).t(),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_exception_ends_an_operator(name: str, threads: int) -> None:
    x = torch.ones(1).expand(HUGE)
    with Alarm(stop), pytest.raises(Stop):
        ENDLESS[name](x)
    assert torch.ones(100_000).sum().item() == 100_000


def long_calls() -> dict[str, Callable[[], Any]]:
    """Operators that take a second or so on one thread."""
    floats, doubles = torch.randn(6_000_000), torch.randn(3000, 3000, dtype=torch.float64)
    square, image = torch.randn(3200, 3200), torch.randn(16, 64, 112, 112)
    ids = torch.randint(0, 1 << 60, (6_000_000,))
    return {
        "product": lambda: square @ square,
        "product of doubles": lambda: doubles @ doubles,
        "sort": lambda: torch.cat([floats] * 4).sort(),
        "sort of integers": lambda: torch.cat([ids] * 4).sort(),
        "unique": lambda: ids.unique(),
        "kthvalue": lambda: torch.cat([floats] * 3).kthvalue(1_000_000),
        "randn": lambda: torch.randn(100_000_000),
        "randperm": lambda: torch.randperm(30_000_000),
        "exponential": lambda: torch.sin(torch.cat([floats] * 12)),
        "cumsum": lambda: torch.cat([floats] * 16).cumsum(0),
        "convolution": lambda: F.conv2d(image, torch.ones(128, 64, 5, 5)),
        "attention": lambda: F.scaled_dot_product_attention(*[torch.ones(1, 8, 4096, 64)] * 3),
        "convolution of one image": lambda: F.conv2d(
            torch.ones(1, 16, 2500, 2500), torch.ones(16, 16, 5, 5)
        ),
        "multinomial": lambda: torch.multinomial(torch.rand(1 << 23), 1 << 23),
        "topk": lambda: torch.cat([floats] * 6).topk(6_000_000),
        "unique_consecutive": lambda: (ids % 3).repeat(6).unique_consecutive(return_inverse=True),
        "unique rows": lambda: (ids.repeat(2) % 9).view(-1, 2).unique(dim=0),
        "max_pool2d": lambda: F.max_pool2d(torch.ones(1, 1, 12000, 12000), 15, 1, 7),
        "svd": lambda: torch.linalg.svd(square[:1100, :1100]),
        "eigh": lambda: torch.linalg.eigh(square[:1500, :1500]),
        "eig": lambda: torch.linalg.eig(square[:800, :800]),
        "qr": lambda: torch.linalg.qr(square[:2000, :2000]),
        "inv": lambda: torch.linalg.inv(doubles[:2200, :2200]),
        "solve": lambda: torch.linalg.solve(doubles, doubles[:, :500]),
        "lu": lambda: torch.linalg.lu_factor(doubles),
        "combinations": lambda: torch.combinations(torch.arange(7000)),
    }


def expect_handlers_during(call: Callable[[], Any]) -> None:
    # Signals that come while nobody looks are one when somebody does.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with Alarm(lambda: None, 0.02, 0.02) as alarm:
            calls, start = alarm.calls, time.perf_counter()
            call()
            if alarm.calls - calls < 2 and time.perf_counter() - start < 0.25:
                pytest.skip("over before the second look")
            assert alarm.calls - calls >= 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "name",
    [
        "product", "product of doubles", "sort", "sort of integers", "unique", "kthvalue", "randn",
        "randperm", "exponential", "cumsum", "convolution", "attention",
        "convolution of one image", "multinomial", "topk", "unique_consecutive", "unique rows",
        "max_pool2d", "svd", "eigh", "eig", "qr", "inv", "solve", "lu",
        "combinations",
    ],
)  # fmt: skip
def test_handlers_run_during_an_operator(name: str) -> None:
    expect_handlers_during(long_calls()[name])


# One long row, or millions of small objects; what is called takes half a second or so. More kernels
# are tested in tests/kernels/cpu/interrupt_test.cc.
LONG_ROWS: dict[str, Callable[[], Callable[[], Any]]] = {
    "unfold": lambda: lambda x=torch.ones(1, 1, 4000, 4000): F.unfold(x, 4),
    "avg_pool1d": lambda: lambda x=torch.ones(1, 1, 16_000_000): F.avg_pool1d(x, 100, 1),
    "tolist": lambda: torch.ones(2_000_000, 1).tolist,
    "stack": lambda: lambda x=[torch.ones(1)] * 4_000_000: torch.stack(x),
    "cat": lambda: lambda x=[torch.ones(1)] * 4_000_000: torch.cat(x),
    "unbind": lambda: torch.ones(3_000_000).unbind,
    "split": lambda: lambda x=torch.ones(4_000_000): x.split(1),
    "iteration": lambda: lambda x=torch.ones(4_000_000): list(x),
    "tensor of arrays": lambda: lambda x=[np.ones(2)] * 1_500_000: torch.tensor(x),
}


@pytest.mark.filterwarnings("ignore:making a tensor from a list")
@pytest.mark.parametrize("name", LONG_ROWS)
def test_handlers_run_within_long_rows(name: str) -> None:
    expect_handlers_during(LONG_ROWS[name]())


# Whose parts took seconds each.
LONG_PARTS: dict[str, Callable[[], Any]] = {
    "convolution of integers": lambda: F.conv2d(
        torch.ones(1, 3, 700, 700).long(), torch.ones(32, 3, 7, 7).long()
    ),
    "convolution of complex numbers": lambda: F.conv2d(
        torch.ones(1, 3, 900, 900).cfloat(), torch.ones(64, 3, 7, 7).cfloat()
    ),
    "product of integers": lambda: torch.ones(1200, 1200).long() @ torch.ones(1200, 1200).long(),
    "randperm": lambda: torch.randperm(60_000_000),
    "sort of doubles": lambda: torch.rand(20_000_000).double().sort(),
    "gradients of a complex convolution": lambda: complex_convolution().sum().abs().backward(),
    "repeat_interleave": lambda: torch.repeat_interleave(torch.ones(40_000_000).long()),
    "unique_consecutive": lambda: torch.arange(40_000_000).unique_consecutive(),
    "indices of a triangle": lambda: torch.tril_indices(13000, 13000),
    "one long bag": lambda: F.embedding_bag(
        torch.zeros(40_000_000).long(), torch.ones(10, 640), torch.zeros(1).long()
    ),
    "backward of many nodes": lambda: chain(4_000_000).backward(),
    "stack of columns": lambda: torch.stack([torch.ones(8192)] * 20_000, 1),
    "gradient of pooling": lambda: (
        F.max_pool1d(torch.ones(1, 1, 30_000_000, requires_grad=True), 2, 1, return_indices=True)[0]
        .sum()
        .backward()
    ),
}


def chain(length: int) -> torch.Tensor:
    y = torch.ones(1, requires_grad=True)
    for _ in range(length):
        y = y + 1
    return y


def complex_convolution() -> torch.Tensor:
    image = torch.randn(1, 16, 1000, 1000, dtype=torch.complex64, requires_grad=True)
    filters = torch.randn(16, 16, 3, 3, dtype=torch.complex64, requires_grad=True)
    return F.conv2d(image, filters)


@pytest.mark.parametrize("name", LONG_PARTS)
def test_handlers_wait_at_most_half_a_second(name: str) -> None:
    """Of the thread's own time, which other programs do not lengthen."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    times = [time.thread_time()]
    try:
        with Alarm(lambda: times.append(time.thread_time()), 0.02, 0.02):
            LONG_PARTS[name]()
    finally:
        torch.set_num_threads(before)
    times.append(time.thread_time())
    assert max(b - a for a, b in pairwise(times)) < 0.5


def test_a_handler_that_returns_changes_nothing(threads: int) -> None:
    a = torch.randint(-3, 4, (2500, 2500)).float()
    want = a.numpy() @ a.numpy()
    with Alarm(lambda: None, 0.02, 0.02):
        got = a @ a
    np.testing.assert_array_equal(got.numpy(), want)


def test_a_handler_may_call_operators_in_the_programs_modes(threads: int) -> None:
    seen = []

    def act() -> None:
        w = torch.ones(3, requires_grad=True)
        loss = (w * torch.randn(3)).sum()
        loss.backward()
        seen.append((torch.is_grad_enabled(), loss.requires_grad, w.grad is not None))
        seen.append((torch.randn(40_000) @ torch.ones(40_000)).requires_grad)

    x = torch.ones(3_000_000, requires_grad=True)
    for call in (
        lambda: torch.randn(60_000_000),
        lambda: torch.sin(x.expand(20, -1)).sum().backward(),
        lambda: F.dropout(torch.ones(60_000_000)),
    ):
        seen.clear()
        with Alarm(act, 0.01):
            call()
        assert seen == [(True, True, True), False]


@pytest.mark.parametrize("write", ["digamma_", "normal_", "index_fill_"])
def test_an_interrupted_write_counts_as_one(write: str, threads: int) -> None:
    x = torch.ones(100_000_000)
    index = torch.randint(0, 100_000_000, (20_000_000,)) if write == "index_fill_" else None
    calls = {
        "digamma_": lambda: x.digamma_(),
        "normal_": lambda: x.normal_(),
        "index_fill_": lambda: x.index_fill_(0, index, 2),
    }
    version = x._version
    with Alarm(stop, 0.03), pytest.raises(Stop):
        calls[write]()
    assert x._version == version + 1 and x.shape == (100_000_000,)
    x.zero_()
    assert x[:100_000].sum().item() == 0


def test_backward_can_be_interrupted_and_repeated(threads: int) -> None:
    x = torch.ones(1000, requires_grad=True)

    def loss() -> Any:
        y = x
        for _ in range(200):
            y = (y.expand(3000, -1) * 1.0).mean(0)
        return y.sum()

    y = loss()
    with Alarm(stop, 0.02), pytest.raises(Stop):
        for _ in range(1000):
            y.backward(retain_graph=True)
    x.grad = None
    loss().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1, rtol=1e-3)


def test_generators_are_free_after_an_interrupt(threads: int) -> None:
    for call in (
        lambda: torch.randn(300_000_000),
        lambda: torch.randperm(60_000_000),
        lambda: torch.poisson(torch.ones(60_000_000)),
        lambda: F.dropout(torch.ones(300_000_000)),
    ):
        with Alarm(stop, 0.05), pytest.raises(Stop):
            call()
        torch.manual_seed(1)
        first = torch.randn(5)
        torch.manual_seed(1)
        assert torch.equal(torch.randn(5), first)


def test_control_c_ends_a_program() -> None:
    # A process that a shell starts in the background ignores Ctrl-C.
    program = (
        "import signal, taeda\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"print('ready', flush=True)\ntaeda.ones(1).expand({HUGE}).sum()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")


# What is raised during a call of LAPACK leaves at once; the call goes on.
ABANDONED = """
import os, signal, sys
import numpy as np
import taeda as torch

class Stop(Exception):
    pass

def threads():
    return len(os.listdir("/proc/self/task"))

def stop(*_):  # once LAPACK is at work
    if threads() > before:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Stop

def check():
    b = torch.randn(300, 300, dtype=torch.float64)
    np.testing.assert_allclose((torch.linalg.inv(b) @ b).numpy(), np.eye(300), atol=1e-6)
    b = torch.randn(700, 700, dtype=torch.float64)
    np.testing.assert_allclose((torch.linalg.inv(b) @ b).numpy(), np.eye(700), atol=1e-6)

torch.set_num_threads(1)
check()
signal.signal(signal.SIGALRM, stop)
for call in (torch.linalg.svd, torch.linalg.eigvals):
    before = threads()
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        call(torch.randn(3000, 3000))
        print("not interrupted")
    except Stop:
        print("still at work:", threads() - before, flush=True)
check()
if (child := os.fork()) == 0:
    check()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_call_of_lapack_is_left_behind() -> None:
    done = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "still at work: 1\n" * 2


def test_an_exception_raised_on_another_thread_ends_its_operator() -> None:
    ended, begun = [], threading.Event()

    def work() -> None:
        begun.set()
        try:
            torch.ones(1).expand(HUGE).sum()
        except Stop:
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    ident = ctypes.c_ulong(thread.ident or 0)
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Stop)) == 1
    thread.join()
    assert ended == [True]
