"""When a worker that takes long is warned of, and when it is not."""

import ctypes
import time
import warnings

import pytest
from tests.alarms import interrupted_after

from taeda.utils import data
from taeda.utils.data import DataLoader, _utils
from taeda.utils.data._utils.hangs import longest_step

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.mark.parametrize(
    "slowest, seconds",
    [
        (None, 10.0),  # nothing is known
        (0.0, 2.0),
        (0.001, 2.0),
        (0.1, 2.0),
        (0.2, 4.0),  # twenty times
        (0.5, 10.0),
        (3.0, 10.0),  # what the interval says
        (4.0, 12.0),  # three times
        (60.0, 180.0),
    ],
)
def test_how_long_a_step_may_take(slowest, seconds):
    assert longest_step(slowest, 10.0) == pytest.approx(seconds)


class Hanging(data.Dataset):
    """Sample 30 never comes."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        if i == 30:
            time.sleep(1000)
        return i


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn", "thread"])
def test_a_hang_after_quick_samples_is_warned_of_long_before_the_interval(method):
    batches = iter(DataLoader(Hanging(), 4, num_workers=2, multiprocessing_context=method))
    for _ in range(7):
        next(batches)
    begin = time.monotonic()
    with pytest.raises(UserWarning) as told, warnings.catch_warnings():
        warnings.simplefilter("error")
        next(batches)
    assert 1.5 < time.monotonic() - begin < _utils.HANG_WARNING_INTERVAL - 1
    text = str(told.value)
    assert "loading sample 2 of batch 7 (index 30)" in text and "in __getitem__" in text
    batches._shutdown_workers()


class Polling(data.Dataset):
    """Sample 30 asks the system to wait, and gives what that answers."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return ctypes.CDLL(None).poll(None, 0, 3000) if i == 30 else 0


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_asking_for_a_stack_interrupts_no_system_call(method):
    with pytest.warns(UserWarning, match="in __getitem__"):
        loader = DataLoader(Polling(), 4, num_workers=1, multiprocessing_context=method)
        assert sum(int(batch.sum()) for batch in loader) == 0  # -1: interrupted


class Sluggish(data.Dataset):
    """Samples that take as long, once they are no longer the first."""

    def __init__(self, first, others):
        self.first, self.others = first, others

    def __len__(self):
        return 6

    def __getitem__(self, i):
        time.sleep(self.others if i else self.first)
        return i


def warned(loader):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert len(list(loader)) == 3
    return [str(w.message) for w in seen if "has been" in str(w.message)]


def test_a_slow_first_batch_is_warned_of_by_the_interval_alone():
    loader = DataLoader(Sluggish(2.6, 0.0), 2, num_workers=1, multiprocessing_context="fork")
    assert warned(loader) == []


def test_slow_samples_are_warned_of_until_it_is_known_how_slow(monkeypatch):
    monkeypatch.setattr(_utils, "HANG_WARNING_INTERVAL", 0.2)
    loader = DataLoader(
        Sluggish(0.6, 0.6), 2, num_workers=1, multiprocessing_context="fork",
        persistent_workers=True,
    )  # fmt: skip
    (text,) = warned(loader)
    assert "loading sample 0 of batch 0" in text
    assert warned(loader) == []


def test_each_worker_is_warned_of_once_a_pass(monkeypatch):
    monkeypatch.setattr(_utils, "HANG_WARNING_INTERVAL", 0.2)
    batches = iter(DataLoader(Hanging(), 4, num_workers=2, multiprocessing_context="fork"))
    for _ in range(7):
        next(batches)
    with interrupted_after(2.5):
        with pytest.warns(UserWarning, match="has been loading") as seen:
            with pytest.raises(InterruptedError):
                next(batches)
    assert len([w for w in seen if "has been" in str(w.message)]) == 1
    batches._shutdown_workers()


def test_the_slowest_step_is_in_the_stats():
    loader = DataLoader(Sluggish(0.3, 0.0), 2, num_workers=1, multiprocessing_context="fork")
    list(loader)
    assert 0.3 <= loader.stats()["workers"][0]["slowest_step_seconds"] < 30
