"""Python threads that use the core at the same time; `make tsan` runs these under the sanitizer."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest
from tests.models import convnet, train_step

import taeda as torch
from taeda import multiprocessing as mp
from taeda import nn
from taeda.nn import functional as F

THREADS, STEPS = 8, 15


@pytest.fixture(autouse=True)
def two_pool_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def in_threads(work: Callable[[int], object], count: int = THREADS) -> list:
    """work(0), work(1), ... each on a thread of its own; their results."""
    results: list = [None] * count
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return results


def network() -> nn.Module:
    torch.manual_seed(3)
    return convnet(channels=1)[0]


def test_training_on_eight_threads_is_training_on_one() -> None:
    """Every thread has a model of its own; in-place updates, convolutions, reductions, indexing."""
    x = torch.linspace(-1, 1, 4 * 64).reshape(4, 1, 8, 8)
    labels = torch.tensor([0, 1, 2, 3])
    models = [network() for _ in range(THREADS + 1)]

    def train(i: int) -> list:
        optimizer = torch.optim.Adam(models[i].parameters())
        losses = []
        for _ in range(STEPS):
            loss = train_step(optimizer, lambda: F.cross_entropy(models[i](x), labels))
            x[i % 4].mul(2).add_(1).clamp_(0, 1).sum().item()
            losses.append(loss.item())
        return losses

    expected = train(THREADS)
    assert in_threads(train) == [expected] * THREADS


def test_gradients_of_a_shared_parameter_add_up() -> None:
    w = torch.ones(50, 20, requires_grad=True)
    x = torch.ones(8, 50)

    def work(i: int) -> None:
        for _ in range(STEPS):
            (x @ w).sum().backward()

    in_threads(work)
    assert w.grad is not None
    assert (w.grad == 8.0 * STEPS * THREADS).all()


def test_backward_through_one_graph_from_all_threads() -> None:
    w = torch.linspace(0, 1, 100).requires_grad_()
    y = (w * w).exp().sum()
    grads = in_threads(lambda i: torch.autograd.grad(y, w, retain_graph=True)[0])
    assert all(torch.equal(g, grads[0]) for g in grads)


def test_tensors_made_on_one_thread_end_on_another() -> None:
    made = in_threads(lambda i: [torch.ones(n).requires_grad_() * 2 for n in range(1, 200)])

    def drop(i: int) -> float:
        return sum(t.sum().item() for t in made[(i + 1) % THREADS])

    assert in_threads(drop) == [2.0 * sum(range(1, 200))] * THREADS
    in_threads(lambda i: made[i].clear())
    assert made == [[] for _ in range(THREADS)]


def test_views_and_versions_of_a_shared_tensor() -> None:
    base = torch.zeros(THREADS, 1000)

    def work(i: int) -> None:
        for _ in range(STEPS):
            base[i].add_(1)

    in_threads(work)
    assert (base == STEPS).all()


def test_random_numbers_from_all_threads() -> None:
    torch.manual_seed(0)
    drawn = in_threads(lambda i: [torch.rand(100).sum().item() for _ in range(STEPS)])
    assert len({x for row in drawn for x in row}) == THREADS * STEPS


# --- Hogwild: processes that train one model without locks ---


def hogwild(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(60):
        train_step(optimizer, lambda: F.mse_loss(model(x), y))


def test_hogwild_learns() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    model.share_memory()
    x = torch.randn(64, 4)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    before = F.mse_loss(model(x), y).item()
    context = mp.get_context("spawn")
    processes = [context.Process(target=hogwild, args=(model, x, y)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert F.mse_loss(model(x), y).item() < before / 20


# --- fork ---


@pytest.mark.skipif(
    "thread" in os.environ.get("TAEDA_SANITIZER", ""),
    reason="the thread sanitizer starts no threads after a fork",
)
def test_a_child_of_fork_computes() -> None:
    """Pool threads have run, others are inside operators: the child ends well."""
    torch.set_num_threads(2)
    x = torch.ones(600, 600)
    expected = (x @ x).sum().item()
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            (x @ x).sum()

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a hang ends by a signal
                status = 1
                try:
                    w = torch.ones(600, 600, requires_grad=True)
                    (x @ w).sum().backward()
                    status = int((x @ x).sum().item() != expected)
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
