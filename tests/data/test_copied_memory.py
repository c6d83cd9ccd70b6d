"""Workers that copy much of the trainer's memory by reading objects in it are told of, once."""

import mmap
import warnings

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader
from taeda.utils.data._utils import copied_memory

ROWS = 150_000


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """Objects of some 40 MB are as good as many."""
    monkeypatch.setattr(copied_memory, "WARNING_BYTES", 8 << 20)
    monkeypatch.setenv("TAEDA_LOADER_SHARE_PAGES", "0")


class Rows(data.Dataset):
    def __init__(self):
        self.rows = [{"name": f"row {i}", "values": [float(i), i + 0.5]} for i in range(ROWS)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return len(row["name"]) + len(row["values"])


class Growing(data.Dataset):
    """Keeps what it makes, which is the program's own doing."""

    def __init__(self):
        self.kept = []

    def __len__(self):
        return 2_000

    def __getitem__(self, i):
        memory = mmap.mmap(-1, 100_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(b"x" * 100_000)  # what malloc gives may be the trainer's, freed before
        self.kept.append(memory)
        return i


def told(loader, passes=2):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(passes):
            for _ in loader:
                pass
    return [w for w in seen if "has copied" in str(w.message)]


def loader(dataset, **options):
    return DataLoader(dataset, 64, shuffle=True, multiprocessing_context="fork", **options)


@pytest.mark.parametrize("workers", [1, 2])
def test_copies_are_told_of_once_with_the_cure(workers):
    kept = loader(Rows(), num_workers=workers, persistent_workers=True)
    (warning,) = told(kept)
    text = str(warning.message)
    assert "SharedList.pack(dataset)" in text and f"num_workers={workers}" in text
    assert warning.filename == __file__
    assert max(worker["copied_bytes"] for worker in kept.stats()["workers"]) > 8 << 20


def test_packed_objects_are_not_copied():
    dataset = data.SharedList.pack(Rows())
    assert told(loader(dataset, num_workers=2)) == []


def test_memory_that_workers_allocate_is_no_copy():
    assert told(loader(Growing(), num_workers=1), passes=1) == []


@pytest.mark.parametrize("method", ["forkserver", "thread"])
def test_other_workers_copy_nothing(method):
    kept = DataLoader(range(8), num_workers=2, multiprocessing_context=method)
    assert taeda.stack([x[0] for x in kept]).tolist() == list(range(8))
    assert [worker["copied_bytes"] for worker in kept.stats()["workers"]] == [0, 0]
