"""What is written to a tensor after it was sent: seen by the receiver; of memory that cannot move,
not. Never lost or half there."""

import threading

import pytest

import taeda as torch
from taeda import multiprocessing as mp

SECONDS = 60
CHANNELS = ["Queue", "SimpleQueue", "JoinableQueue", "Pipe"]


@pytest.fixture(params=CHANNELS)
def channel(request):
    """(put, get) of each way."""
    made = getattr(mp.get_context("fork"), request.param)()
    if request.param == "Pipe":
        return made[0].send, made[1].recv
    return made.put, made.get


@pytest.mark.parametrize("n", [1, 1000, 1 << 20])
def test_a_write_after_put_is_seen(channel, n):
    put, get = channel
    x = torch.zeros(n)
    view = x[:1]
    put(x)
    x.fill_(3)
    view.add_(1)
    got = get()
    assert got[0] == 4 and got[1:].eq(3).all()
    got.fill_(5)
    assert x.eq(5).all()


def test_memory_that_cannot_move_is_copied_by_put(channel):
    put, get = channel
    x = torch.full((1000,), 1.0)
    alias = x.numpy()
    with pytest.warns(UserWarning, match="sends a copy"):
        put(x)
    alias[:] = 2
    got = get()
    assert got.eq(1).all(), "the copy was made by put"
    got.fill_(3)
    assert x.eq(2).all()


def test_no_write_of_many_threads_is_lost():
    """Each adds to its own tensor, which is put meanwhile, as often as it says."""
    queue = mp.get_context("fork").Queue()

    def add(i):
        x = torch.zeros(50_000)
        for n in range(200):
            x.add_(1)
            if n == 20 * i:
                queue.put((i, x))
        sums[i] = x

    sums = {}
    threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    received = dict(queue.get(timeout=SECONDS) for _ in threads)
    for thread in threads:
        thread.join(SECONDS)
    for i in range(4):
        assert sums[i].eq(200).all() and received[i].eq(200).all()


def test_the_standard_queue_sees_every_write_to_memory_that_is_shared_before():
    import multiprocessing

    queue = multiprocessing.get_context("fork").Queue()
    for n in (1, 1 << 20):
        x = torch.zeros(n).share_memory_()
        queue.put(x)
        for _ in range(50):
            x.add_(1)
        got = queue.get(timeout=SECONDS)
        assert got.eq(50).all() and x.eq(50).all()
