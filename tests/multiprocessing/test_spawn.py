"""spawn and start_processes: several processes that succeed or fail together."""

import os
import pickle
import signal
import sys
import time

import pytest

import taeda as torch
from taeda import multiprocessing as mp

METHODS = ["fork", "spawn", "forkserver"]
SECONDS = 120


def fill(i, x):
    x[i] = i + 1


@pytest.mark.parametrize("method", METHODS)
def test_each_process_has_its_index(method):
    x = torch.zeros(3).share_memory_()
    assert mp.start_processes(fill, (x,), nprocs=3, start_method=method) is None
    assert x.tolist() == [1, 2, 3]


def test_spawn_starts_fresh_interpreters():
    x = torch.zeros(2).share_memory_()
    mp.spawn(fill, (x,), nprocs=2)
    assert x.tolist() == [1, 2]
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        context = mp.spawn(fill, (x,), nprocs=1, join=False, start_method="fork")
    assert context.join(SECONDS) and context.join()


def test_the_processes_of_a_fork_server_may_start_at_once(monkeypatch):
    monkeypatch.setenv(mp.ENV_VAR_PARALLEL_START, "1")
    x = torch.zeros(3).share_memory_()
    mp.start_processes(fill, (x,), nprocs=3, start_method="forkserver")
    assert x.tolist() == [1, 2, 3]


def fail(i, text):
    if i == 1:
        raise ValueError(text)
    time.sleep(SECONDS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [10, 300_000])
def test_an_exception_of_any_length_arrives(method, length):
    """A pipe would be full at 65,536 bytes, and the process would wait for a reader for ever."""
    text = "no luck " * (length // 8)
    with pytest.raises(mp.ProcessRaisedException, match="-- Process 1 terminated") as caught:
        mp.start_processes(fail, (text,), nprocs=2, start_method=method)
    assert text.strip() in str(caught.value) and "in fail" in str(caught.value)
    assert caught.value.error_index == 1 and caught.value.error_pid > 0


def end(i, how):
    if how < 0:
        os.kill(os.getpid(), -how)
        time.sleep(SECONDS)
    sys.exit(how)


@pytest.mark.parametrize("method", METHODS)
def test_the_way_a_process_ended_is_named(method):
    with pytest.raises(mp.ProcessExitedException, match=r"process 0 .* exit code 3") as caught:
        mp.start_processes(end, (3,), start_method=method)
    assert caught.value.exit_code == 3 and caught.value.signal_name is None
    with pytest.raises(mp.ProcessExitedException, match=r"process 0 .* SIGKILL") as caught:
        mp.start_processes(end, (-signal.SIGKILL,), start_method=method)
    assert caught.value.signal_name == "SIGKILL"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.exit_code, again.signal_name, str(again)) == (
        -signal.SIGKILL,
        "SIGKILL",
        str(caught.value),
    )


def ignore_termination(i, queue):
    if i == 0:
        queue.get()
        raise RuntimeError("first")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    queue.put("ready")
    time.sleep(SECONDS)


def test_a_process_that_does_not_end_is_killed_after_the_grace_period():
    queue = mp.get_context("spawn").SimpleQueue()
    context = mp.spawn(ignore_termination, (queue,), nprocs=2, join=False)
    with pytest.raises(mp.ProcessRaisedException, match="first"):
        while not context.join(grace_period=0.1):
            pass
    assert context.processes[1].exitcode == -signal.SIGKILL
    assert len(context.pids()) == 2


def test_join_waits_no_longer_than_asked():
    context = mp.spawn(fail, ("x",), nprocs=1, join=False)
    assert context.join(timeout=0.01) is False
    context.processes[0].kill()
    with pytest.raises(mp.ProcessExitedException):
        context.join()


def test_the_module_is_multiprocessing_s():
    import multiprocessing

    from taeda.multiprocessing.pool import Pool
    from taeda.multiprocessing.queue import Queue

    assert all(hasattr(mp, name) for name in multiprocessing.__all__)
    assert mp.get_start_method() == multiprocessing.get_start_method()
    for method in METHODS:
        context = mp.get_context(method)
        assert isinstance(context, multiprocessing.context.BaseContext)
        assert context.get_context() is context
        assert mp.get_context(method) is context
    assert type(mp.Queue()) is Queue
    with mp.Pool(1) as pool:
        assert type(pool) is Pool
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("threads")
    lock, event, barrier = mp.Lock(), mp.Event(), mp.Barrier(1)
    with lock:
        event.set()
    assert event.is_set() and barrier.wait() == 0


def test_sharing_strategies_are_accepted():
    torch_mp = pytest.importorskip("torch.multiprocessing")
    assert mp.get_all_sharing_strategies() == torch_mp.get_all_sharing_strategies()
    assert mp.get_sharing_strategy() == torch_mp.get_sharing_strategy()
    try:
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system"
        assert torch.ones(3).share_memory_().is_shared()
    finally:
        mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("telepathy")


def test_names_are_pytorch_s():
    torch_mp = pytest.importorskip("torch.multiprocessing")
    missing = [name for name in torch_mp.__all__ if not hasattr(mp, name)]
    spawn = [
        name for name in torch_mp.spawn.__globals__["__all__"] if name not in mp.spawn.__globals__
    ]
    assert not missing and not spawn


def fail_in_the_second(i):
    if i == 1:
        raise ValueError("no second")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_error_files_say_why_a_process_failed(method):
    context = mp.start_processes(fail_in_the_second, nprocs=2, join=False, start_method=method)
    for process in context.processes:
        process.join(60)
    texts = []
    for path in context.error_files:
        with open(path) as file:
            texts.append(file.read())
    assert texts[0] == "" and "ValueError: no second" in texts[1]
    with pytest.raises(mp.ProcessRaisedException, match="no second"):
        while not context.join():
            pass
