"""Ten thousand training steps, and cycles through closures, hooks and functions, leave nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from tests.marks import caching
from tests.models import mlp, train_step

import taeda as torch
from taeda import _C, nn

pytestmark = caching  # sanitizers' builds count no blocks, and their own memory grows


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks in other threads' lists count as used."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def in_use() -> dict[str, int]:
    gc.collect()
    return {**_C._blocks_in_use(), "bytes": _C._cpu_memory_stats()["live_bytes"]}


def check_in_use(expected: dict[str, int]) -> None:
    now = in_use()
    assert {name: n - expected[name] for name, n in now.items() if n > expected[name]} == {}


def test_ten_thousand_training_steps() -> None:
    model, x = mlp(inputs=6, outputs=2, batch=4)
    model.insert(1, nn.BatchNorm1d(30))
    optimizer = torch.optim.Adam(model.parameters())
    y = torch.randint(0, 2, (4,))

    def step() -> None:
        train_step(optimizer, lambda: nn.functional.cross_entropy(model(x), y))

    for _ in range(500):
        step()
    used, resident = in_use(), resident_bytes()
    for _ in range(10_000):
        step()
    check_in_use(used)
    assert resident_bytes() - resident < 1 << 20


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x  # not save_for_backward: a cycle for the collector
        ctx.own = ctx
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g


def hook_on_itself() -> None:
    x = torch.ones(30, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * y)
    y.sum().backward()


def hook_that_is_never_run() -> None:
    y = torch.ones(30, requires_grad=True) * 2
    y.register_hook(lambda g: y and None)


def attribute_on_itself() -> None:
    x = torch.ones(30)
    x.own = [x]
    x[1:].base = x


def function_that_holds_its_input() -> None:
    Square.apply(torch.ones(30, requires_grad=True)).sum().backward()


def module_hooks() -> None:
    model = nn.Linear(3, 3)
    model.register_forward_hook(lambda m, a, b: model and None)
    model(torch.ones(2, 3)).sum().backward()


def saved_tensor_hooks() -> None:
    x = torch.ones(30, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, x), lambda p: p[0]):
        (x.exp() * x).sum().backward()


def exchange() -> None:
    x = torch.ones(30)
    torch.from_dlpack(x)
    x.__dlpack__()
    torch.from_numpy(x.numpy())
    memoryview(x.untyped_storage())


CYCLES = [
    *[hook_on_itself, hook_that_is_never_run, attribute_on_itself, function_that_holds_its_input],
    *[module_hooks, saved_tensor_hooks, exchange],
]


@pytest.mark.parametrize("make", CYCLES)
def test_cycles_are_collected(make: Callable[[], None]) -> None:
    make()
    used = in_use()
    for _ in range(200):
        make()
    check_in_use(used)
