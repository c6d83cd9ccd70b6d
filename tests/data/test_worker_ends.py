"""How workers end: by any exception, seen by waitpid or not, and while Ctrl-C comes."""

import gc
import os
import signal
import weakref

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader, _multiprocess

METHODS = ["fork", "forkserver"]


class OwnBase(BaseException):
    pass


class NewNeedsTwo(Exception):
    def __new__(cls, one, two):
        return super().__new__(cls, one, two)


class Ending(data.Dataset):
    """Sample 5 does something."""

    def __init__(self, what="nothing"):
        self.what = what

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i == 5:
            getattr(self, self.what)()
        return i

    def nothing(self):
        pass

    def interrupt(self):
        raise KeyboardInterrupt("as if by hand")

    def own(self):
        raise OwnBase("of its own")

    def generator(self):
        raise GeneratorExit

    def exit(self):
        raise SystemExit(4)

    def exit_at_once(self):
        os._exit(7)

    def group(self):
        raise ExceptionGroup("two", [ValueError("the cause"), KeyError("another")])

    def new(self):
        raise NewNeedsTwo("the cause", 2)


def loader(what, method, **options):
    return DataLoader(
        Ending(what), 2, num_workers=2, multiprocessing_context=method, timeout=100, **options
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "what, name",
    [
        ("interrupt", "KeyboardInterrupt: as if by hand"),
        ("own", "OwnBase: of its own"),
        ("generator", "GeneratorExit"),
        ("exit", "SystemExit: 4"),
    ],
)
def test_what_ends_a_worker_is_told_with_its_traceback(what, name, method):
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(loader(what, method))
    text = str(caught.value)
    assert "(worker 0, loading sample 1 of batch 2 (index 5))" in text
    assert f"in {what}" in text and name in text


@pytest.mark.parametrize("method", ["fork", "thread"])
@pytest.mark.parametrize("what", ["group", "new"])
def test_exceptions_that_take_several_arguments_arrive_with_their_text(what, method):
    with pytest.raises(RuntimeError, match="the cause"):
        list(loader(what, method))


def _reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


@pytest.mark.parametrize("handler", [signal.SIG_IGN, _reap])
def test_deaths_are_seen_where_the_program_waits_for_children_itself(handler):
    old = signal.signal(signal.SIGCHLD, handler)
    try:
        batches = iter(loader("exit_at_once", "fork"))
        with pytest.raises(RuntimeError, match=r"exited unexpectedly \(its exit code is not"):
            list(batches)
        assert len(list(loader("nothing", "fork"))) == 6
    finally:
        signal.signal(signal.SIGCHLD, old)
    assert not any(worker.is_alive() for worker in batches._workers)


def test_ctrl_c_while_an_iterator_is_destroyed_is_not_lost(monkeypatch):
    end_workers = _multiprocess.end_workers

    def end_interrupted(workers):
        signal.raise_signal(signal.SIGINT)
        end_workers(workers)
        ended.append(workers)

    gc.collect()
    ended = []
    batches = iter(loader("nothing", "fork"))
    next(batches)
    gone = weakref.ref(batches)
    monkeypatch.setattr(_multiprocess, "end_workers", end_interrupted)
    handler = signal.default_int_handler  # a shell's background jobs ignore interrupts
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            del batches
            for _ in range(2):  # Python looks for signals here
                pass
        assert gone() is None and signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1 and not any(worker.is_alive() for worker in ended[0])


class Lazy:
    @property
    def nbytes(self):
        raise ValueError("not now")


def first(batch):
    return batch[0]


def test_threads_give_objects_whose_size_cannot_be_asked_for():
    endless: list = []
    endless.append(endless)
    samples = [Lazy(), endless, taeda.ones(2)]
    got = list(
        DataLoader(samples, 1, num_workers=1, collate_fn=first, multiprocessing_context="thread")
    )
    assert all(x is y for x, y in zip(got, samples, strict=True))
