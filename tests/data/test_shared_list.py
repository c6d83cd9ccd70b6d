"""SharedList: a list whose items are read without writing to them."""

import multiprocessing
import pickle
import random

import pytest

from taeda.utils.data import DataLoader, SharedList

ROWS = [{"name": f"row {i}", "values": [i, i / 2]} for i in range(100)]


def test_it_reads_like_a_list():
    rows = SharedList(ROWS)
    assert list(rows) == ROWS and len(rows) == 100 and rows[-3] == ROWS[-3]
    assert rows[5:50:7] == ROWS[5:50:7] and ROWS[4] in rows and rows.index(ROWS[9]) == 9
    assert random.Random(0).choice(rows) == random.Random(0).choice(ROWS)
    assert list(SharedList([])) == [] and list(SharedList(iter([None]))) == [None]
    assert repr(SharedList([])) == "SharedList(0 items, 1 bytes)"
    for i in (100, -101):
        with pytest.raises(IndexError, match=f"index {i} is out of range for 100 items"):
            rows[i]
    with pytest.raises(AttributeError):
        rows["a"]


def test_changes_of_an_item_are_not_kept():
    rows = SharedList(ROWS)
    rows[0]["name"] = "other"
    assert rows[0] == ROWS[0]


def test_a_plain_pickle_holds_it():
    assert list(pickle.loads(pickle.dumps(SharedList(ROWS)))) == ROWS


def as_list(batch):
    return batch


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_read_it(method):
    loader = DataLoader(
        SharedList(ROWS), 10, num_workers=2, collate_fn=as_list, multiprocessing_context=method
    )
    assert [row for batch in loader for row in batch] == ROWS


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_")) << 10


def test_private_memory_of_a_worker_stays_flat():
    """Of 20 MB of objects, nothing is copied by reading all of them in random order."""
    rows = SharedList({"name": f"row {i}" * 8, "values": [i, i + 1]} for i in range(100_000))
    loader = DataLoader(
        rows, 100, shuffle=True, num_workers=1, collate_fn=len,
        multiprocessing_context=multiprocessing.get_context("fork"),
    )  # fmt: skip
    batches = iter(loader)
    for _ in range(100):
        next(batches)
    before = private_bytes(batches._workers[0].pid)
    assert sum(batches) == 90_000
    assert before > 0
    batches = iter(loader)
    for _ in range(999):
        next(batches)
    assert private_bytes(batches._workers[0].pid) < 1.1 * before + (4 << 20)  # of 20 MB
