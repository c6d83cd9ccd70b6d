"""SharedList: a list whose items are read without writing to them."""

import multiprocessing
import pickle
import random

import pytest

from taeda.utils.data import ConcatDataset, DataLoader, Dataset, SharedList, Subset
from taeda.utils.data._utils.copied_memory import private_bytes

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
    for index in ("a", 1.0, None):
        with pytest.raises(TypeError, match="indices must be integers or slices, not"):
            rows[index]


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


class Held(Dataset):
    def __init__(self, n):
        self.rows, self.pairs = [{"i": i} for i in range(n)], tuple((i, str(i)) for i in range(n))
        self.names, self.again = ["few"], self.rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]["i"], self.pairs[i][1], self.names[0]


def test_packing_a_dataset_replaces_its_large_lists_and_leaves_it_alone():
    held = Held(1000)
    packed = SharedList.pack(held)
    assert type(packed) is Held and [packed[i] for i in range(1000)] == [
        *map(held.__getitem__, range(1000))
    ]
    assert type(packed.rows) is type(packed.pairs) is SharedList and packed.again is packed.rows
    assert packed.names is held.names and type(held.rows) is list
    assert type(SharedList.pack(Held(999)).rows) is list
    assert type(SharedList.pack(Held(10), at_least=10).rows) is SharedList


def test_packing_reaches_the_datasets_that_one_consists_of():
    held = Held(1200)
    both = ConcatDataset([held, Subset(held, range(1100)), Subset(held, list(range(5)))])
    packed = SharedList.pack(both)
    assert [packed[i] for i in range(len(both))] == [both[i] for i in range(len(both))]
    first, second, third = packed.datasets
    assert type(first.rows) is SharedList and second.dataset is third.dataset is first
    assert type(held.rows) is list


def test_packing_leaves_classes_of_lists_and_other_objects_alone():
    class Rows(list):
        pass

    held = Held(1000)
    held.rows, held.me = Rows(held.rows), held
    packed = SharedList.pack(held)
    assert packed.rows is held.rows and type(packed.pairs) is SharedList
    assert packed.me is packed
    numbers = list(range(3))
    assert SharedList.pack(numbers) is numbers
