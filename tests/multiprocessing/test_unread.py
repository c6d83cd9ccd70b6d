"""Messages that nobody will receive give their memory back."""

import contextlib
import gc
import os
import signal
import threading
import time
from multiprocessing.reduction import ForkingPickler

import pytest

import taeda as torch
from taeda import _C
from taeda import multiprocessing as mp

SECONDS = 60
METHODS = ["fork", "spawn", "forkserver"]
FLOATS = 1 << 18  # of a tensor of 1 MiB


def blocks_of(n):
    """The addresses of so many blocks that are free now."""
    tensors = [torch.empty(FLOATS).share_memory_() for _ in range(n)]
    return {x.data_ptr() for x in tensors}


def send(put, n=4):
    """Sends tensors that live in the messages only; where they are."""
    tensors = [torch.ones(FLOATS).share_memory_() for _ in range(n)]
    for x in tensors:
        with contextlib.suppress(BrokenPipeError):  # of a reader that has been killed by now
            put(x)
    return {x.data_ptr() for x in tensors}


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_a_queue_that_goes_keeps_nothing(kind, how):
    queue = getattr(mp.get_context("fork"), kind)()
    addresses = send(queue.put)
    queue.get()
    if how == "closed":
        queue.close()
    del queue
    gc.collect()
    assert addresses <= blocks_of(16)


def take_one_and_die(connection):
    connection.recv()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", METHODS)
def test_a_pipe_whose_reader_was_killed_keeps_nothing(method):
    context = mp.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=take_one_and_die, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    addresses = send(ours.send)
    process.join(SECONDS)
    ours.close()
    assert addresses <= blocks_of(16)


def wait(connection):
    time.sleep(1000)


def test_what_another_process_can_still_read_stays():
    context = mp.get_context("fork")
    ours, theirs = context.Pipe()
    x = torch.full((FLOATS,), 3.0)
    ours.send(x)
    address = x.data_ptr()
    ours.close()
    del x
    assert address not in blocks_of(16)
    assert theirs.recv().eq(3).all()
    theirs.close()
    assert address in blocks_of(16)


def test_what_was_received_stays_when_its_sender_closes():
    ours, theirs = mp.Pipe()
    ours.send(torch.full((FLOATS,), 4.0))
    got = theirs.recv()
    theirs.close()
    ours.close()
    assert got.data_ptr() not in blocks_of(16) and got.eq(4).all()


def test_killed_receivers_cost_nothing_in_the_long_run():
    context = mp.get_context("fork")
    before = _C._shared_memory_stats()["own_segments"]
    for _ in range(60):
        ours, theirs = context.Pipe()
        process = context.Process(target=wait, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        send(ours.send, 8)
        process.kill()
        process.join(SECONDS)
        ours.close()
    assert _C._shared_memory_stats()["own_segments"] <= before + 1
    assert len(blocks_of(16)) == 16


def test_sending_to_a_closed_end_is_a_broken_pipe_each_time():
    ours, theirs = mp.Pipe()
    ours.send(1)
    theirs.close()
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            ours.send(2)


def test_names_of_received_messages_are_forgotten():
    ours, theirs = mp.Pipe()
    x = torch.ones(3)
    for _ in range(2000):
        ours.send(x)
        theirs.recv()
    assert len(ours._unread) <= 256


def read_all(queue, n, done):
    for _ in range(n):
        assert queue.get()[0] == 1
    done.put(True)


def put_ten(queue):
    for _ in range(10):
        queue.put(torch.ones(100))


def test_a_sender_that_closes_early_loses_nothing():
    context = mp.get_context("fork")
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=read_all, args=(queue, 40, done), daemon=True)
    process.start()
    threads = [threading.Thread(target=put_ten, args=(queue,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    del queue, threads, thread
    gc.collect()
    assert done.get(timeout=SECONDS)
    process.join(SECONDS)


def send_and_close(method):
    """The addresses of tensors whose sender has closed its end when their receiver is killed."""
    context = mp.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=wait, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    addresses = send(ours.send)
    ours.close()
    assert not addresses & blocks_of(4), "they can still be read"
    process.kill()
    process.join(SECONDS)
    return addresses


def in_new_memory(target, method):
    """In a process of its own, in which 80 blocks are more than a segment has."""
    process = mp.get_context("spawn").Process(target=target, args=(method,))
    process.start()
    process.join()
    assert process.exitcode == 0


def close_before_the_kill(method):
    addresses = send_and_close(method)
    assert addresses <= blocks_of(80)
    assert _C._shared_memory_stats()["own_segments"] <= 2


@pytest.mark.parametrize("method", METHODS)
def test_messages_come_back_whose_sender_closed_before_the_receiver_was_killed(method):
    in_new_memory(close_before_the_kill, method)


def keep_end(connection, tensors, done):
    """Sends on what somebody else has made, to one that lives on and reads nothing."""
    for x in tensors:
        connection.send(x)
    done.send(True)
    time.sleep(1000)


def forward_and_die(method):
    context = mp.get_context(method)
    ours, theirs = context.Pipe()
    tensors = [torch.ones(FLOATS).share_memory_() for _ in range(4)]
    addresses = {x.data_ptr() for x in tensors}
    sent, done = context.Pipe()
    sender = context.Process(target=keep_end, args=(theirs, tensors, done), daemon=True)
    sender.start()
    theirs.close()
    assert sent.recv()
    sender.kill()
    sender.join(SECONDS)
    del tensors
    assert not addresses & blocks_of(80), "the messages can still be read"
    ours.close()
    assert addresses <= blocks_of(200)


@pytest.mark.parametrize("method", METHODS)
def test_messages_of_a_killed_sender_come_back_with_the_end_they_are_in(method):
    in_new_memory(forward_and_die, method)


def put_and_stay(queue, tensors, connection):
    """Its thread has them, behind a message that nobody reads."""
    queue.put(bytes(1 << 24))
    for x in tensors:
        queue.put(x)
    connection.send(True)
    time.sleep(1000)


def die_before_sending(method):
    context = mp.get_context(method)
    queue = context.Queue()
    ours, theirs = context.Pipe()
    tensors = [torch.ones(FLOATS).share_memory_() for _ in range(4)]
    addresses = {x.data_ptr() for x in tensors}
    sender = context.Process(target=put_and_stay, args=(queue, tensors, theirs), daemon=True)
    sender.start()
    assert ours.recv()
    sender.kill()
    sender.join(SECONDS)
    del tensors
    assert addresses <= blocks_of(200)


@pytest.mark.parametrize("method", METHODS)
def test_messages_that_a_killed_sender_had_not_sent_come_back(method):
    in_new_memory(die_before_sending, method)


def test_what_is_in_a_living_socket_stays_however_much_memory_is_wanted():
    ours, theirs = mp.get_context("fork").Pipe()
    addresses = send(ours.send)
    ours.close()
    kept = [torch.empty(FLOATS).share_memory_() for _ in range(200)]
    assert not addresses & {x.data_ptr() for x in kept}
    assert all(theirs.recv().eq(1).all() for _ in range(4))


def unpickle_late(method):
    """Received, and not unpickled before both ends are gone and all memory was wanted again."""
    for n in (1, 40, 3000):  # in one packet, and in several
        ours, theirs = mp.get_context(method).Pipe()
        x = torch.full((FLOATS,), float(n)).share_memory_()
        address = x.data_ptr()
        ours.send([x.view(-1, 64)[i].untyped_storage() for i in range(n)])
        message = theirs.recv_bytes()
        theirs.close()
        ours.close()
        del x
        gc.collect()
        kept = blocks_of(200)
        assert address not in kept
        got = ForkingPickler.loads(message)
        assert len(got) == n and got[-1].data_ptr() == address
        assert torch.tensor([], dtype=torch.float32).set_(got[0]).eq(n).all()
        del got
        gc.collect()
        assert address in blocks_of(400)


@pytest.mark.parametrize("method", METHODS)
def test_what_was_received_can_be_unpickled_when_both_ends_are_gone(method):
    in_new_memory(unpickle_late, method)


def outnumber():
    """In a process whose memory is new, so that 80 blocks are more than a segment has."""
    x = torch.ones(FLOATS).share_memory_()
    address, pids = x.data_ptr(), []
    hold, release = os.pipe()
    for _ in range(270):
        pid = os.fork()
        if pid == 0:
            os.close(release)
            os.read(hold, 1)
            os._exit(0)
        pids.append(pid)
    del x
    assert address not in blocks_of(16)
    for pid in pids[:-1]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert address not in blocks_of(80), "the last one, which got no number, has it"
    os.close(release)
    os.waitpid(pids[-1], 0)
    assert address in blocks_of(80)


def test_more_processes_than_a_segment_has_numbers_leak_nothing():
    process = mp.get_context("fork").Process(target=outnumber)
    process.start()
    process.join()
    assert process.exitcode == 0
