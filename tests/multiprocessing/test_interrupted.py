"""A signal's handler that raises while a queue's locks are being taken leaves none taken."""

import random
import signal
from queue import Full

import pytest

from taeda import multiprocessing as mp
from taeda.multiprocessing.file_lock import FileLock

SECONDS = 60
ROUNDS = 200
CAPACITY = 4


class Interrupted(BaseException):
    """What the handler raises."""


def interrupt(*_):
    raise Interrupted


def work_until_interrupted(work, draw):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0002, 0.003))
        while True:
            work()
    except Interrupted:
        pass


def check_queue(queue):
    """All slots are free, and no lock is taken."""
    while queue.qsize():
        queue.get(timeout=SECONDS)
    for i in range(CAPACITY):
        queue.put(i, timeout=SECONDS)
    with pytest.raises(Full):
        queue.put("more", block=False)
    assert [queue.get(timeout=SECONDS) for _ in range(CAPACITY)] == list(range(CAPACITY))


def check_simple_queue(queue):
    assert not queue._wlock.is_held() and not queue._rlock.is_held()
    while not queue.empty():
        queue.get()


def use_lock(lock):
    with lock:
        pass
    with lock.held(timeout=1) as is_taken:
        assert is_taken
    with lock.held(block=False) as is_taken:
        assert is_taken


def check_lock(lock):
    assert not lock.is_held()


def interrupt_often(kind, answer):
    signal.signal(signal.SIGALRM, interrupt)
    context, draw = mp.get_context("fork"), random.Random(0)
    if kind == "lock":
        made, check = FileLock(), check_lock
    elif kind == "SimpleQueue":
        made, check = context.SimpleQueue(), check_simple_queue
    else:
        made, check = getattr(context, kind)(CAPACITY), check_queue

    def work():
        if kind == "lock":
            use_lock(made)
            return
        made.put(1)
        made.get()
        if kind == "JoinableQueue":
            made.task_done()

    for _ in range(ROUNDS):
        work_until_interrupted(work, draw)
        check(made)
    answer.send("done")


@pytest.mark.parametrize("kind", ["lock", "Queue", "JoinableQueue", "SimpleQueue"])
def test_a_handler_that_raises_leaves_no_lock_taken_and_no_slot(kind):
    context = mp.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=interrupt_often, args=(kind, theirs), daemon=True)
    process.start()
    theirs.close()
    assert ours.poll(4 * SECONDS), "it hangs"
    assert ours.recv() == "done"  # EOFError where a check failed, which the process has printed
    process.join(SECONDS)
    assert process.exitcode == 0


def test_a_lock_that_is_waited_for_can_be_interrupted():
    """And is not taken then, by its thread or by its process."""
    lock = FileLock()
    child_ours, child_theirs = mp.get_context("fork").Pipe()
    child = mp.get_context("fork").Process(target=hold, args=(lock, child_theirs), daemon=True)
    child.start()
    assert child_ours.recv() == "taken"
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for timeout in (None, SECONDS):
            with pytest.raises(Interrupted):
                signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)  # until one is seen
                with lock.held(timeout=timeout):
                    pytest.fail("it was free")
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert not lock.is_taken_here()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    child_ours.send("let go")
    with lock.held(timeout=SECONDS) as is_taken:
        assert is_taken
    child.join(SECONDS)


def hold(lock, connection):
    with lock:
        connection.send("taken")
        connection.recv()
