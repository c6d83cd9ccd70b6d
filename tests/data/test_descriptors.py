"""Loaders that have too few file descriptors for their workers."""

import errno
import gc
import os
import re
import resource

import pytest

import taeda
from taeda.utils.data import DataLoader
from taeda.utils.data._utils.processes import WorkerProcess
from taeda.utils.data._utils.start import check_descriptors

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
PROCESSES = ["fork", "forkserver", "spawn"]


@pytest.fixture
def leave():
    """Sets a limit that leaves so many descriptors; takes it back after the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leave(n):
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
        free = sorted(set(range(max(numbers) + n + 2)) - set(numbers))
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[n], hard))

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(file.read().split())


def descriptors():
    taeda.empty(1).share_memory_()  # its allocator drops its pipes to ended children
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def load(method, workers=16):
    return DataLoader(range(32), 2, num_workers=workers, multiprocessing_context=method)


def warm_up(method):
    """Starts what multiprocessing keeps: a server of forks, a tracker of resources."""
    assert len(list(load(method, 1))) == 16


@pytest.mark.parametrize("method", PROCESSES)
def test_too_few_descriptors_are_told_with_numbers_and_advice(method, leave):
    warm_up(method)
    before = descriptors(), children()
    leave(30)
    with pytest.raises(OSError) as caught:
        iter(load(method))
    assert caught.value.errno == errno.EMFILE
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    text = str(caught.value)
    assert re.search(r"to start 16 workers: they need about 92, and 3[01] are free", text)
    assert f"RLIMIT_NOFILE, is {limit}" in text and "Raise the limit" in text
    del caught
    assert (descriptors(), children()) == before


@pytest.mark.parametrize("method", PROCESSES)
def test_as_many_descriptors_as_are_asked_for_suffice(method, leave):
    warm_up(method)
    before = descriptors()
    leave(2 * 5 + 12 + 3)
    batches = iter(load(method, 2))
    assert descriptors() - before <= 2 * 5 + 2
    assert len(list(batches)) == 16


@pytest.mark.parametrize("method", PROCESSES)
def test_workers_that_have_started_end_when_a_later_one_cannot(method, monkeypatch):
    warm_up(method)
    before = descriptors(), children()
    start, started = WorkerProcess.__init__, []

    def fail_third(self, *args):
        if len(started) == 2:
            raise OSError(errno.EMFILE, "Too many open files")
        start(self, *args)
        started.append(self.process)

    monkeypatch.setattr(WorkerProcess, "__init__", fail_third)
    with pytest.raises(OSError, match="Too many open files") as caught:
        iter(load(method, 4))
    assert len(started) == 2 and not any(process.is_alive() for process in started)
    del caught
    started.clear()
    assert (descriptors(), children()) == before


def test_a_loader_works_again_when_there_are_descriptors(leave):
    loader = load("fork", 8)
    leave(20)
    for _ in range(2):
        with pytest.raises(OSError, match="too few file descriptors"):
            list(loader)
    leave(200)
    assert len(list(loader)) == 16


def test_threads_need_none(leave):
    loader = load("thread")
    leave(8)
    assert len(list(loader)) == 16


def test_other_errors_are_told_as_they_are(monkeypatch):
    def fail(value):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "eventfd", fail)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        check_descriptors(2)
