"""The slots of a queue: counted exactly, and never lost, whoever is killed."""

import contextlib
import os
import signal
import threading
import time
from queue import Empty, Full

import pytest

import taeda as torch
from taeda import multiprocessing as mp
from taeda.multiprocessing import tasks

SECONDS = 60
METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_queue_takes_as_many_as_it_says(kind):
    queue = getattr(mp.get_context("fork"), kind)(3)
    for n in range(50):
        assert queue.qsize() == 0 and not queue.full()
        for i in range(3):
            queue.put((n, i), timeout=SECONDS)
        assert queue.full() and queue.qsize() == 3
        for options in [{"block": False}, {"timeout": 0.01}]:
            with pytest.raises(Full):
                queue.put("more", **options)
        assert [queue.get(timeout=SECONDS) for _ in range(3)] == [(n, i) for i in range(3)]


def test_what_cannot_be_pickled_takes_no_slot():
    queue = mp.get_context("fork").Queue(1)
    for _ in range(3):
        with pytest.raises((AttributeError, TypeError)):
            queue.put(lambda: None)
    queue.put(1, block=False)
    assert queue.get(timeout=SECONDS) == 1


def test_messages_that_wait_for_the_thread_count():
    queue = mp.get_context("fork").Queue(3)
    large = bytes(1 << 20)
    for _ in range(3):
        queue.put(large, timeout=SECONDS)
    assert queue.qsize() == 3
    with pytest.raises(Full):
        queue.put(large, timeout=0.2)
    for n in (2, 1, 0):
        assert queue.get(timeout=SECONDS) == large
        assert queue.qsize() == n


def put_numbers(queue, n):
    for i in range(n):
        queue.put((os.getpid(), i))


def keep_size(queue, most, sizes):
    while sizes.empty():
        assert queue.qsize() <= most
    sizes.get()


@pytest.mark.parametrize("method", METHODS)
def test_many_writers_put_no_more_than_there_are_slots_for(method):
    context = mp.get_context(method)
    queue, end = context.Queue(2), context.Queue()
    writers = [context.Process(target=put_numbers, args=(queue, 100)) for _ in range(3)]
    watcher = context.Process(target=keep_size, args=(queue, 2, end))
    for process in [*writers, watcher]:
        process.start()
    got = [queue.get(timeout=SECONDS) for _ in range(300)]
    end.put(None)
    for process in [*writers, watcher]:
        process.join(SECONDS)
        assert process.exitcode == 0
    for writer in writers:
        assert [i for pid, i in got if pid == writer.pid] == list(range(100))


def fill_and_stay(queue, n, connection):
    """Puts messages that its thread cannot send at once, since nobody reads."""
    for _ in range(n):
        queue.put(bytes(1 << 20))
    connection.send(True)
    time.sleep(1000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_slots_that_a_killed_writer_had_come_back(method, kind):
    context = mp.get_context(method)
    queue = getattr(context, kind)(4)
    for _ in range(3):
        ours, theirs = context.Pipe()
        writer = context.Process(target=fill_and_stay, args=(queue, 4, theirs), daemon=True)
        writer.start()
        assert ours.recv()
        assert queue.full()
        writer.kill()
        writer.join(SECONDS)
        while True:  # what it had sent
            try:
                queue.get(timeout=0.1)
            except Empty:
                break
        assert queue.qsize() == 0
    for i in range(4):
        queue.put(i, block=False)
    assert [queue.get(timeout=SECONDS) for _ in range(4)] == list(range(4))


def receive_and_die(queue):
    """As a reader that is killed when it has a message and has not said so."""
    queue._rlock.acquire()
    queue._reader.receive()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", METHODS)
def test_slots_of_messages_that_a_killed_reader_took_come_back(method):
    context = mp.get_context(method)
    queue = context.Queue(2)
    for _ in range(2):
        queue.put(1, timeout=SECONDS)
        reader = context.Process(target=receive_and_die, args=(queue,), daemon=True)
        reader.start()
        reader.join(SECONDS)
    queue.put(2, block=False)
    queue.put(3, timeout=SECONDS)
    assert queue.full()
    assert [queue.get(timeout=SECONDS), queue.get(timeout=SECONDS)] == [2, 3]


def wait_for_slot(queue, connection):
    connection.send(True)
    queue.put("never")


def test_one_that_is_killed_while_it_waits_is_in_nobodys_way():
    context = mp.get_context("fork")
    queue = context.Queue(1)
    queue.put("first")
    ours, theirs = context.Pipe()
    waiting = context.Process(target=wait_for_slot, args=(queue, theirs), daemon=True)
    waiting.start()
    assert ours.recv()
    while not queue._capacity._words[5]:  # until it waits
        time.sleep(0.001)
    with pytest.raises(Full):
        queue.put("not", block=False)
    waiting.kill()
    waiting.join(SECONDS)
    assert queue.get(timeout=SECONDS) == "first"
    queue.put("second", timeout=SECONDS)
    assert queue.get(timeout=SECONDS) == "second"


def take_and_die(queue):
    queue.get()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_join_waits_for_no_task_that_a_killed_process_kept(method):
    context = mp.get_context(method)
    queue = context.JoinableQueue()
    ours, theirs = context.Pipe()
    writer = context.Process(target=fill_and_stay, args=(queue, 3, theirs), daemon=True)
    writer.start()
    assert ours.recv()
    writer.kill()
    writer.join(SECONDS)
    got = 0
    while True:
        try:
            queue.get(timeout=0.1)
        except Empty:
            break
        got += 1
        queue.task_done()
    assert got < 3
    thread = threading.Thread(target=queue.join, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def ask_when_told(queue, connection):
    signal.alarm(SECONDS)
    connection.send(True)
    connection.recv()
    connection.send(queue.qsize())
    queue.join()
    connection.send("joined")


def fill_and_fork(queue, connection):
    """Its child inherits all that it knows of the queue, and puts nothing itself."""
    for _ in range(3):
        queue.put(bytes(1 << 20))
    context = mp.get_context("fork")
    context.Process(target=ask_when_told, args=(queue, connection)).start()
    time.sleep(1000)


def test_a_forked_process_does_not_count_what_its_killed_parent_had():
    context = mp.get_context("fork")
    queue = context.JoinableQueue()
    ours, theirs = context.Pipe()
    parent = context.Process(target=fill_and_fork, args=(queue, theirs))
    parent.start()
    assert ours.poll(SECONDS) and ours.recv()
    parent.kill()
    os.waitpid(parent.pid, 0)  # join() waits for its child too
    with contextlib.suppress(Empty):
        while True:  # what it had sent
            queue.get(timeout=0.1)
            queue.task_done()
    ours.send("now")
    assert ours.poll(SECONDS) and ours.recv() == 0
    assert ours.poll(SECONDS) and ours.recv() == "joined"


class Interrupted(BaseException):
    """As a signal's handler raises it."""


def interrupt(owner, name, when):
    """The next call of a method is interrupted, just before it begins or when it has ended."""
    whole = getattr(owner, name)

    def call(*args, **options):
        setattr(owner, name, whole)
        if when == "after":
            whole(*args, **options)
        raise Interrupted

    setattr(owner, name, call)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("size", [1, 1 << 20], ids=["at once", "by the thread"])
@pytest.mark.parametrize(
    "owner, name",
    [
        ("_capacity", "acquire"),
        ("_capacity", "_count"),
        ("_capacity", "new_number"),
        ("_capacity", "take_back_number"),
        ("_capacity", "sent"),
        ("_writer", "try_send_message"),
        ("_notempty", "notify"),
        ("tasks", "begin"),
    ],
)
def test_an_interrupted_put_keeps_no_slot_and_no_task(owner, name, size, when):
    queue = mp.get_context("fork").JoinableQueue(2)
    for _ in range(3):
        interrupt(queue._capacity.tasks if owner == "tasks" else getattr(queue, owner), name, when)
        with contextlib.suppress(Interrupted):
            queue.put(bytes(size), timeout=SECONDS)
        vars(queue._capacity).pop(name, None)  # where it was not called
        vars(queue._writer).pop(name, None)
        with contextlib.suppress(Empty):
            while True:
                queue.get(timeout=0.1)
                queue.task_done()
        assert queue.qsize() == 0
    for i in range(2):
        queue.put(i, block=False)
    with pytest.raises(Full):
        queue.put("more", block=False)
    for i in range(2):
        assert queue.get(timeout=SECONDS) == i
        queue.task_done()
    thread = threading.Thread(target=queue.join, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_join_is_woken_by_the_last_task(monkeypatch):
    monkeypatch.setattr(tasks, "_SECONDS_BETWEEN_LOOKS", 10 * SECONDS)  # it does not look itself
    queue = mp.get_context("fork").JoinableQueue()
    for _ in range(2):
        for i in range(3):
            queue.put(i)
        threads = [threading.Thread(target=queue.join, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        while queue._capacity._words[tasks._JOINING] < 2:  # until they wait
            time.sleep(0.001)
        for _ in range(3):
            queue.get(timeout=SECONDS)
            queue.task_done()
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive()


def end_task_and_die(queue):
    queue._capacity.tasks._lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def test_who_is_killed_inside_task_done_keeps_no_lock():
    context = mp.get_context("fork")
    queue = context.JoinableQueue()
    queue.put(1)
    child = context.Process(target=end_task_and_die, args=(queue,), daemon=True)
    child.start()
    child.join(SECONDS)
    queue.get()
    queue.task_done()
    queue.join()
    with pytest.raises(ValueError, match="too many times"):
        queue.task_done()


def put_for_ever(queue, seed):
    i = 0
    while True:
        queue.put((seed, i, torch.full(([10, 5000, 300_000][i % 3],), float(i))))
        i += 1


def get_for_ever(queue, answers):
    while True:
        seed, i, x = queue.get()
        assert x[0] == i == x[-1]
        answers.put((seed, i))


@pytest.mark.parametrize("method, kills", [("fork", 60), ("forkserver", 12), ("spawn", 6)])
def test_readers_and_writers_that_are_killed_at_random_stop_nobody(method, kills):
    context = mp.get_context(method)
    queue, answers = context.Queue(6), context.Queue()

    def start(i):
        target, args = (put_for_ever, (queue, i)) if i % 2 else (get_for_ever, (queue, answers))
        process = context.Process(target=target, args=args, daemon=True)
        process.start()
        return process

    processes = [start(i) for i in range(4)]
    for kill in range(kills):
        for _ in range(5):
            answers.get(timeout=SECONDS)
        processes[kill % 4].kill()
        processes[kill % 4].join(SECONDS)
        processes[kill % 4] = start(kill % 4)
    for _ in range(20):
        answers.get(timeout=SECONDS)
    for process in processes:
        process.kill()
        process.join(SECONDS)
    try:
        while True:
            queue.get(timeout=0.2)
    except Empty:
        pass
    assert queue.qsize() == 0
    for i in range(6):
        queue.put(i, block=False)
    with pytest.raises(Full):
        queue.put("more", block=False)
