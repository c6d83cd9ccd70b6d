"""A writer that is killed inside put() leaves the queue to the others, and no half message."""

import os
import socket
import threading
import time
from queue import Empty

import pytest

import taeda as torch
from taeda import multiprocessing as mp
from taeda.multiprocessing.capacity import Claim
from taeda.multiprocessing.connection import _PACKET_BYTES, Connection

SECONDS = 60
METHODS = ["fork", "spawn", "forkserver"]
KINDS = ["Queue", "SimpleQueue", "JoinableQueue"]


def hold_lock(queue, started):
    queue._wlock.acquire()
    started.send(True)
    time.sleep(1000)


def put(queue, value):
    queue.put(value)


def killed_with_lock(context, queue):
    ours, theirs = context.Pipe()
    child = context.Process(target=hold_lock, args=(queue, theirs), daemon=True)
    child.start()
    assert ours.poll(SECONDS)
    child.kill()
    child.join(SECONDS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_others_write_on_when_a_writer_is_killed(method, kind):
    context = mp.get_context(method)
    queue = getattr(context, kind)()
    killed_with_lock(context, queue)
    other = context.Process(target=put, args=(queue, torch.arange(3)), daemon=True)
    other.start()
    assert queue._reader.poll(SECONDS), "the other writer waits for a dead one"
    assert queue.get().tolist() == [0, 1, 2]
    other.join(SECONDS)
    queue.put("from here")
    assert queue.get() == "from here"


def send_part(queue, packets):
    """The first packets of a message of ten, with the lock, and no more."""
    has_slots = hasattr(queue, "_capacity")
    if has_slots:
        claim = Claim()
        queue._capacity.acquire(claim)
    queue._wlock.acquire()
    connection, sent = queue._writer, []

    def send(buffers, descriptors, flags):
        if len(sent) == packets:
            os.kill(os.getpid(), 9)
        sent.append(type(connection)._send_beside(connection, buffers, descriptors, flags))

    connection._send_beside = send
    number = queue._capacity.new_number(claim) if has_slots else 1
    connection._send_packets(b"x" * (10 * _PACKET_BYTES), [], number=number)


def killed_in_message(context, queue, packets):
    child = context.Process(target=send_part, args=(queue, packets), daemon=True)
    child.start()
    return child


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_message_is_whole_after_part_of_one(method, kind):
    context = mp.get_context(method)
    queue = getattr(context, kind)()
    killed_in_message(context, queue, 2).join(SECONDS)
    large = os.urandom(5 * _PACKET_BYTES)
    thread = threading.Thread(target=queue.put, args=(large,))
    thread.start()
    assert queue.get() == large
    thread.join(SECONDS)
    queue.put("small")
    assert queue.get() == "small"


def test_a_reader_that_waits_for_the_rest_waits_for_the_next_message_then():
    context = mp.get_context("fork")
    queue, got = context.Queue(), []
    thread = threading.Thread(target=lambda: got.append(queue.get()))
    thread.start()
    killed_in_message(context, queue, 2).join(SECONDS)
    while queue._reader.poll(0):  # until the reader has taken what came
        time.sleep(0.001)
    assert thread.is_alive() and not got
    queue.put("the next")
    thread.join(SECONDS)
    assert got == ["the next"]


@pytest.mark.parametrize("block, timeout", [(False, None), (True, 0.2)])
def test_part_of_a_message_counts_as_none(block, timeout):
    context = mp.get_context("fork")
    queue = context.Queue()
    killed_in_message(context, queue, 2).join(SECONDS)
    with pytest.raises(Empty):
        queue.get(block, timeout)


def test_the_slot_of_a_killed_writer_comes_back():
    context = mp.get_context("fork")
    queue = context.Queue(2)
    for _ in range(5):
        killed_in_message(context, queue, 2).join(SECONDS)
        with pytest.raises(Empty):
            queue.get(timeout=0.05)
    for i in range(2):
        queue.put(i, timeout=SECONDS)
    assert [queue.get(), queue.get()] == [0, 1]


def kill_in_put(queue, seed):
    """Puts messages of all sizes until it is killed."""
    sizes = [10, 1000, 3 * _PACKET_BYTES]
    for i in range(10**9):
        queue.put((seed, i, bytes([i % 251]) * sizes[i % 3]))


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_random_kills_of_writers_damage_nothing(kind):
    context = mp.get_context("fork")
    queue = getattr(context, kind)()
    for seed in range(12):
        child = context.Process(target=kill_in_put, args=(queue, seed), daemon=True)
        child.start()
        last = -1
        for _ in range(20 + seed):
            of, i, data = queue.get()
            if of == seed:
                assert i == last + 1
                last = i
            assert set(data) == {i % 251}
        child.kill()
        child.join(SECONDS)
    end = time.monotonic() + SECONDS
    threading.Thread(target=queue.put, args=("end",)).start()
    while queue.get() != "end":
        assert time.monotonic() < end


def test_join_is_not_held_up_by_a_writer_that_is_killed_in_put():
    context = mp.get_context("fork")
    queue = context.JoinableQueue()
    killed_with_lock(context, queue)
    queue.put(1)
    assert queue.get() == 1
    queue.task_done()
    thread = threading.Thread(target=queue.join)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_packets_are_no_larger_than_the_system_takes():
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    first.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
    writer, reader = Connection(first.detach()), Connection(second.detach())
    data = os.urandom(100_000)
    thread = threading.Thread(target=writer.send, args=(data,))
    thread.start()
    assert reader.recv() == data
    thread.join(SECONDS)
