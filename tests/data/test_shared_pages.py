"""Forked workers and the objects of the trainer: what they read stays shared, writes are theirs."""

import ast
import multiprocessing
import random
import subprocess
import sys
import threading

import pytest
from tests.children import ENVIRONMENT

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader
from taeda.utils.data._utils.copied_memory import private_bytes

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
np = pytest.importorskip("numpy")


def private_megabytes(pid):
    return private_bytes(pid) / 2**20


class Rows(data.Dataset):
    """Objects of many kinds, small ones and such as malloc has."""

    def __init__(self, n):
        self.rows = [
            {
                "name": f"row {i}", "values": [float(i), float(i + 1)], "pair": (i, str(i)),
                "text": f"{i} " * 150, "array": np.full(3, i), "set": {i, -i},
            }
            for i in range(n)
        ]  # fmt: skip

    def __len__(self):
        return len(self.rows)

    def check(self, i):
        row = self.rows[i]
        assert row["name"] == f"row {i}" and row["values"] == [i, i + 1]
        assert row["pair"] == (i, str(i)) and row["text"] == f"{i} " * 150
        assert row["array"].tolist() == [i, i, i] and row["set"] == {i, -i}
        return i

    def __getitem__(self, i):
        return self.check(i)


class Busy(Rows):
    """What it does with its objects, and with memory, is drawn anew for each sample."""

    def __init__(self, n):
        super().__init__(n)
        self.seen, self.kept = {}, []

    def __getitem__(self, i):
        row, what = self.rows[i], random.randrange(6)
        self.check(i)
        if what == 0:  # caches something in the object
            row.setdefault("cache", [i] * random.randrange(200))
        elif what == 1:  # changes it in place
            row["count"] = row.get("count", 0) + 1
            self.seen[i] = self.seen.get(i, 0) + 1
        elif what == 2:  # replaces it
            self.rows[i] = {**row, "again": str(i)}
        elif what == 3:
            self.kept.append(bytes(random.randrange(100_000)))
        elif what == 4 and self.kept:
            del self.kept[random.randrange(len(self.kept))]
        elif what == 5:
            row["array"][0] = i  # writes the same
        assert row.get("count", 0) == self.seen.get(i, 0)
        cache = row.get("cache", [])
        assert cache == [i] * len(cache)
        return i


def read_all(loader, epochs):
    """Reads it; the private megabytes of each worker after each epoch, and what stats() says."""
    amounts = []
    for _ in range(epochs):
        seen = sorted(int(i) for batch in loader for i in batch)
        assert seen == list(range(len(loader.dataset)))
        amounts.append([private_megabytes(worker["pid"]) for worker in loader.stats()["workers"]])
    return amounts, loader.stats()["workers"]


def forked(dataset, **options):
    options = {"num_workers": 2, "batch_size": 50, "shuffle": True} | options
    return DataLoader(dataset, multiprocessing_context="fork", persistent_workers=True, **options)


ROWS = 25_000  # about 45 MB


@pytest.fixture(autouse=True)
def share_at_any_price(monkeypatch):
    monkeypatch.setenv("TAEDA_LOADER_SHARE_PAGES", "1")


def alone(function, price):
    """What a function of this module gives in a process whose heap holds its objects and little
    else: what was tested before would be looked through too."""
    program = f"from tests.data import test_shared_pages as t; print(t.{function.__name__}())"
    environment = ENVIRONMENT | {"TAEDA_LOADER_SHARE_PAGES": price}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


def read_twice():
    amounts, stats = read_all(forked(Rows(ROWS)), 2)
    return amounts, [worker["pages_dropped"] for worker in stats]


def test_workers_that_read_all_objects_keep_them_shared():
    amounts, dropped = alone(read_twice, "1")
    assert min(dropped) > 2_000
    assert all(last < 30 for last in amounts[-1]), amounts


class Plain(Rows):
    """Samples that do nothing but read an object."""

    def check(self, i):
        return self.rows[i]["pair"][0]


def read_quickly():
    return read_on(forked(Plain(2 * ROWS), num_workers=3), 4)


def read_on(loader, epochs):
    """Private megabytes after ten batches, and after each further epoch."""
    batches = iter(loader)
    for _ in range(10):
        next(batches)
    workers = loader.stats()["workers"]
    first = [private_megabytes(worker["pid"]) for worker in workers]
    for _ in batches:
        pass
    return first, read_all(loader, epochs)[0]


def test_private_memory_of_a_worker_that_only_reads_a_large_list_stays_flat_unasked():
    """In PyTorch each of the three would grow by 90 MB."""
    first, amounts = alone(read_quickly, "")
    for before, *after in zip(first, *amounts, strict=True):
        assert max(after[1:]) < before * 1.1, (first, amounts)


def read_by_one():
    return read_on(forked(Rows(4 * ROWS), num_workers=1), 2)


def test_that_of_one_worker_stays_flat_too():
    (before,), amounts = alone(read_by_one, "")
    assert max(after for (after,) in amounts) < before * 1.1, (before, amounts)


def test_the_environment_turns_sharing_off(monkeypatch):
    monkeypatch.setenv("TAEDA_LOADER_SHARE_PAGES", "0")
    amounts, stats = read_all(forked(Rows(ROWS)), 2)
    assert [worker["pages_dropped"] for worker in stats] == [0, 0]
    assert all(last > 35 for last in amounts[-1]), amounts


def change_objects():
    _, stats = read_all(forked(Busy(ROWS)), 3)
    return [worker["pages_dropped"] for worker in stats]


def test_objects_that_workers_change_stay_as_each_made_them():
    assert max(alone(change_objects, "1")) > 1_000


class Threaded(Rows):
    """Starts a thread in the worker."""

    def __getitem__(self, i):
        if not hasattr(self, "end"):
            self.end = threading.Event()
            threading.Thread(target=self.end.wait, daemon=True).start()
        return super().__getitem__(i)


def test_workers_with_threads_of_their_own_share_nothing_and_say_so():
    _, stats = read_all(forked(Threaded(ROWS)), 2)
    assert [worker["pages_dropped"] for worker in stats] == [0, 0]
    assert min(worker["sharing_skipped"] for worker in stats) > 0


def sum_in_child(rows, answer):
    answer.send(sum(row["pair"][0] for row in rows))


class Forking(Rows):
    """Forks in the worker, once much is shared."""

    def __getitem__(self, i):
        if i % 5000 == 0:
            ours, theirs = multiprocessing.Pipe(duplex=False)
            child = multiprocessing.get_context("fork").Process(
                target=sum_in_child, args=(self.rows, theirs)
            )
            multiprocessing.current_process()._config["daemon"] = False  # may have children
            child.start()
            assert ours.recv() == sum(range(len(self.rows)))
            child.join()
            assert child.exitcode == 0
        return super().__getitem__(i)


def read_and_fork():
    _, stats = read_all(forked(Forking(ROWS)), 2)
    return [worker["pages_dropped"] for worker in stats]


def test_a_worker_may_fork_while_it_shares():
    assert max(alone(read_and_fork, "1")) > 1_000


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_other_workers_have_nothing_to_share(method):
    loader = DataLoader(range(8), num_workers=2, multiprocessing_context=method)
    assert taeda.stack([x[0] for x in loader]).tolist() == list(range(8))
    assert [worker["pages_dropped"] for worker in loader.stats()["workers"]] == [0, 0]
