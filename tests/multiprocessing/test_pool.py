"""Pools whose workers are killed: replaced, and the tasks that they had raise."""

import gc
import os
import signal
import time

import pytest

import taeda as torch
from taeda import multiprocessing as mp

SECONDS = 60
METHODS = ["fork", "spawn", "forkserver"]


def square(x):
    return x * x


def pid_of(_):
    return os.getpid()


def die(how):
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(1000)


def die_at_three(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * x


def large(x):
    return bytes(x) if x < 1 << 22 else os._exit(4)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_works_on_when_idle_workers_are_killed(method):
    with mp.get_context(method).Pool(2) as pool:
        assert pool.map_async(square, range(8)).get(SECONDS) == [x * x for x in range(8)]
        for _ in range(3):
            victims = list(pool._pool)
            for worker in victims:
                os.kill(worker.pid, signal.SIGKILL)
            for worker in victims:
                worker.join(SECONDS)
            got = pool.map_async(square, [torch.arange(3.0)] * 4).get(SECONDS)
            assert [x.tolist() for x in got] == [[0, 1, 4]] * 4
        assert not {worker.pid for worker in victims} & {worker.pid for worker in pool._pool}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "how, words",
    [
        ("SIGKILL", "was killed by signal SIGKILL while it ran die"),
        ("SIGSEGV", "was killed by signal SIGSEGV while it ran die"),
        ("exit", "exited with code 3 while it ran die"),
    ],
)
def test_the_task_of_a_killed_worker_raises(how, words, method):
    with mp.get_context(method).Pool(2) as pool:
        lost = pool.apply_async(die, (how,))
        with pytest.raises(RuntimeError, match=rf"worker process \S+ \(pid \d+\) {words}"):
            lost.get(SECONDS)
        assert pool.map_async(square, range(5)).get(SECONDS) == [0, 1, 4, 9, 16]


def test_a_map_raises_and_a_stream_goes_on():
    with mp.get_context("fork").Pool(2) as pool:
        with pytest.raises(RuntimeError, match="while it ran die_at_three"):
            pool.map_async(die_at_three, range(6), chunksize=1).get(SECONDS)
        results, got = pool.imap(die_at_three, range(6)), []
        for _ in range(6):
            try:
                got.append(results.next(SECONDS))
            except RuntimeError as error:
                got.append("SIGKILL" in str(error))
        assert got == [0, 10, 20, True, 40, 50]


def test_results_that_came_before_a_worker_died_count():
    with mp.get_context("fork").Pool(1) as pool:
        for _ in range(30):
            done = pool.apply_async(pid_of, (0,))
            os.kill(done.get(SECONDS), signal.SIGKILL)


def test_a_worker_that_dies_while_it_sends_a_large_result_is_told():
    with mp.get_context("fork").Pool(1) as pool:
        assert len(pool.apply_async(large, (3 << 20,)).get(SECONDS)) == 3 << 20
        with pytest.raises(RuntimeError, match="exited with code 4"):
            pool.apply_async(large, (1 << 22,)).get(SECONDS)


def test_workers_that_end_as_they_should_lose_nothing():
    with mp.get_context("fork").Pool(2, maxtasksperchild=2) as pool:
        assert pool.map_async(square, range(40), chunksize=1).get(SECONDS) == [
            x * x for x in range(40)
        ]
        pool.close()
        pool.join()


def test_what_cannot_be_pickled_raises_and_the_pool_works_on():
    with mp.get_context("fork").Pool(1) as pool:
        with pytest.raises(Exception, match="pickle"):
            pool.apply_async(square, (lambda: 0,)).get(SECONDS)
        assert pool.apply_async(square, (4,)).get(SECONDS) == 16
        assert not pool._quick_put.__self__._running


def first_of(x, started=None):
    return x[0].item()


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.001)


@pytest.mark.parametrize("call", ["apply_async", "map_async", "starmap_async"])
def test_a_write_after_the_call_is_seen(call, tmp_path):
    """Of tensors of all sizes, though the worker comes to them later only."""
    with mp.get_context("fork").Pool(1) as pool:
        go = tmp_path / "go"
        pool.apply_async(wait_for, (str(go),))
        tensors = [torch.zeros(n) for n in (1, 1000, 1 << 20) for _ in range(20)]
        if call == "apply_async":
            results = [pool.apply_async(first_of, (x,)) for x in tensors]
        elif call == "map_async":
            results = [pool.map_async(first_of, tensors, chunksize=7)]
        else:
            results = [pool.starmap_async(first_of, [(x,) for x in tensors])]
        for i, x in enumerate(tensors):
            x.fill_(i + 1)
        go.touch()
        got = [result.get(SECONDS) for result in results]
        got = got if call == "apply_async" else got[0]
    assert got == [i + 1 for i in range(len(tensors))]


def test_memory_that_cannot_move_is_copied_by_the_call(tmp_path):
    with mp.get_context("fork").Pool(1) as pool:
        go = tmp_path / "go"
        pool.apply_async(wait_for, (str(go),))
        x = torch.full((1000,), 5.0)
        alias = x.numpy()
        with pytest.warns(UserWarning, match="sends a copy"):
            result = pool.apply_async(first_of, (x,))
        alias[:] = 7
        go.touch()
        assert result.get(SECONDS) == 5


def test_tasks_of_a_pool_that_ends_keep_no_memory(tmp_path):
    with mp.get_context("fork").Pool(1) as pool:
        pool.apply_async(wait_for, (str(tmp_path / "never"),))
        x = torch.zeros(1 << 20).share_memory_()
        address = x.data_ptr()
        for _ in range(500):
            pool.apply_async(first_of, (x, bytes(4000)))
        del x
    del pool
    gc.collect()
    tensors = [torch.zeros(1 << 20).share_memory_() for _ in range(8)]
    assert address in {x.data_ptr() for x in tensors}


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40])
def test_chunks_are_those_of_a_full_pool(n):
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map_async(square, iter(range(n))).get(SECONDS) == [x * x for x in range(n)]
        assert pool.starmap(pow, [(x, 2) for x in range(n)]) == [x * x for x in range(n)]


class NeedsTwo(Exception):
    """Its pickle has one argument."""

    def __init__(self, one, two):
        super().__init__(one)


class Unreadable:
    def __reduce__(self):
        return int, ("zz",)


def raise_needs_two(x):
    raise NeedsTwo(x, x)


def unreadable(x):
    return Unreadable() if x == 1 else x


@pytest.mark.parametrize("method", METHODS)
def test_a_result_that_cannot_be_unpickled_is_its_tasks_error(method):
    with mp.get_context(method).Pool(2) as pool:
        with pytest.raises(RuntimeError, match="raise_needs_two returned or raised cannot") as got:
            pool.apply_async(raise_needs_two, (1,)).get(SECONDS)
        assert isinstance(got.value.__cause__, TypeError)
        tasks = [pool.apply_async(unreadable, (x,)) for x in range(3)]
        assert tasks[0].get(SECONDS) == 0 and tasks[2].get(SECONDS) == 2
        with pytest.raises(RuntimeError, match=r"unreadable returned .* ValueError: invalid lit"):
            tasks[1].get(SECONDS)
        with pytest.raises(RuntimeError, match="unreadable returned"):
            pool.map_async(unreadable, range(4), chunksize=2).get(SECONDS)
        assert pool.map_async(square, range(4)).get(SECONDS) == [0, 1, 4, 9]
