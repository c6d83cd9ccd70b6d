"""Batches that go by a pipe since there is no shared memory for them: watched like the others."""

import array
import fcntl
import os
import re
import signal
import termios
import time

import pytest
from tests.alarms import interrupted_after

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader, _utils

LARGE = 600_000  # floats, more than the channel and the pipe have room for


class Large(data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return taeda.full((LARGE,), float(i))


@pytest.fixture(autouse=True)
def little_shared_memory(monkeypatch):
    real = taeda._C._WorkerChannel

    def tiny(capacity):
        return real(capacity, 1 << 21)

    tiny.event = real.event
    monkeypatch.setattr(taeda._C, "_WorkerChannel", tiny)


def make(method="fork", **options):
    options.setdefault("num_workers", 1)
    return DataLoader(Large(), batch_size=None, multiprocessing_context=method, **options)


def begin(loader, until=1):
    """A pass whose next batch is on its way, and the process that sends it."""
    batches = iter(loader)
    got = [next(batches)[0].item() for _ in range(until)]
    assert got == [float(i) for i in range(until)]
    return batches, batches._workers[0]


def wait_until_it_writes(batches):
    """Until the pipe that nobody reads is full."""
    end = time.monotonic() + 60
    pipe, held = batches._processes[0]._pipe, array.array("i", [0])
    while held[0] < fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) - 4096:
        fcntl.ioctl(pipe, termios.FIONREAD, held)
        assert time.monotonic() < end, held
        time.sleep(0.01)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_all_batches_arrive(method):
    got = [x[-1].item() for x in make(method, num_workers=2)]
    assert got == [0, 1, 2, 3, 4, 5]


def test_bytes_that_came_by_the_pipe_are_counted():
    loader = make()
    assert len(list(loader)) == 6
    stats = loader.stats()
    assert stats["bytes"] > 6 * 4 * LARGE
    assert stats["workers"][0]["bytes"] == stats["bytes"]


def test_a_death_in_the_middle_of_a_message_is_named():
    batches, worker = begin(make())
    wait_until_it_writes(batches)
    os.kill(worker.pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="is killed by signal: Killed") as caught:
        list(batches)
    assert time.monotonic() - start < 2 + 30 * (os.getloadavg()[0] > 3)
    assert re.search(r"\(worker 0, sending, batch \d \(index \d\)\)", str(caught.value))


def test_a_message_that_stops_arriving_ends_the_wait_in_time():
    batches, worker = begin(make(timeout=60))
    wait_until_it_writes(batches)
    batches._timeout = 1
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds") as caught:
            list(batches)
        assert re.search(r"\(worker 0 \(pid \d+\), sending, batch \d", str(caught.value))
    finally:
        os.kill(worker.pid, signal.SIGCONT)


def test_a_message_that_stops_arriving_is_warned_of(monkeypatch):
    batches, worker = begin(make())
    wait_until_it_writes(batches)
    monkeypatch.setattr(_utils, "HANG_WARNING_INTERVAL", 0.5)
    os.kill(worker.pid, signal.SIGSTOP)
    with interrupted_after(8):
        with pytest.warns(UserWarning, match=r"has been sending, batch \d \(index \d\) for"):
            with pytest.raises(InterruptedError):
                list(batches)
        os.kill(worker.pid, signal.SIGCONT)
    batches._shutdown_workers()
    assert not worker.is_alive()


def test_persistent_workers_may_be_left_while_one_sends():
    loader = make(persistent_workers=True)
    for _ in range(4):
        batches, _ = begin(loader, 1)
        wait_until_it_writes(batches)
    assert [x[-1].item() for x in loader] == [0, 1, 2, 3, 4, 5]


def test_workers_end_while_they_send():
    batches, worker = begin(make())
    wait_until_it_writes(batches)
    del batches
    assert not worker.is_alive()
