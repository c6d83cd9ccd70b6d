"""A reader that is killed inside get() leaves the queue to the others."""

import os
import threading
import time
from queue import Empty

import pytest

import taeda as torch
from taeda import multiprocessing as mp
from taeda.multiprocessing.file_lock import FileLock

SECONDS = 60


def read_one(queue, started):
    started.send(os.getpid())
    queue.get()


def read_and_answer(queue, answer):
    answer.send(queue.get())


def wait_until_locked(lock):
    end = time.monotonic() + SECONDS
    while lock.acquire(False):
        lock.release()
        assert time.monotonic() < end, "nobody reads"
        time.sleep(0.001)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_others_read_on_when_a_reader_is_killed(method, kind):
    context = mp.get_context(method)
    queue = getattr(context, kind)()
    ours, theirs = context.Pipe()
    killed = context.Process(target=read_one, args=(queue, theirs), daemon=True)
    killed.start()
    assert ours.recv() == killed.pid
    wait_until_locked(queue._rlock)
    other = context.Process(target=read_and_answer, args=(queue, theirs), daemon=True)
    other.start()
    killed.kill()
    killed.join(SECONDS)
    queue.put(torch.arange(3))
    try:
        assert ours.poll(SECONDS), "the other reader waits for a dead one"
        assert ours.recv().tolist() == [0, 1, 2]
    finally:
        other.kill()
        other.join(SECONDS)


def receive_part(queue):
    queue._rlock.acquire()
    queue._reader._receive_packet()
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_the_rest_of_a_half_received_message_is_skipped(kind):
    context = mp.get_context("fork")
    queue = getattr(context, kind)()
    large = os.urandom(1 << 20)
    sender = threading.Thread(target=queue.put, args=(large,))
    sender.start()
    child = context.Process(target=receive_part, args=(queue,), daemon=True)
    child.start()
    child.join(SECONDS)
    putter = threading.Thread(target=queue.put, args=("next",))
    putter.start()
    assert queue.get() == "next"
    for thread in (sender, putter):
        thread.join(SECONDS)


def test_threads_of_one_process_exclude_each_other():
    lock, first, order = FileLock(), threading.Event(), []

    def second():
        first.wait(SECONDS)
        assert not lock.acquire(False) and not lock.acquire(True, 0.01)
        order.append("waits")
        with lock:
            order.append("has it")

    thread = threading.Thread(target=second)
    thread.start()
    with lock:
        first.set()
        while not order:
            time.sleep(0.001)
        order.append("lets go")
    thread.join(SECONDS)
    assert order == ["waits", "lets go", "has it"]


def hold(lock, connection):
    with lock:
        connection.send(True)
        connection.recv()


def test_a_lock_says_whether_anybody_has_it():
    context = mp.get_context("fork")
    lock = FileLock()
    ours, theirs = context.Pipe()
    assert not lock.is_held()
    with lock:
        assert lock.is_held()
    child = context.Process(target=hold, args=(lock, theirs), daemon=True)
    child.start()
    assert ours.recv() and lock.is_held() and not lock.acquire(False)
    child.kill()
    child.join(SECONDS)
    assert not lock.is_held() and lock.acquire(True, SECONDS)
    lock.release()


def test_a_get_in_time_raises_empty_while_another_process_reads():
    context = mp.get_context("fork")
    queue = context.Queue()
    ours, theirs = context.Pipe()
    child = context.Process(target=hold, args=(queue._rlock, theirs), daemon=True)
    child.start()
    assert ours.recv()
    queue.put(1)
    for block, timeout in [(False, None), (True, 0.05)]:
        with pytest.raises(Empty):
            queue.get(block, timeout)
    ours.send(None)
    assert queue.get(timeout=SECONDS) == 1
    child.join(SECONDS)


def test_the_end_of_a_pipe_is_no_damage():
    reader, writer = mp.Pipe(duplex=False)
    writer.close()
    for _ in range(2):
        with pytest.raises(EOFError):
            reader.recv()
