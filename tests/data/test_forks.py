"""Programs that fork by themselves while loaders work: in a worker, and in the trainer."""

import os

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader, default_collate

METHODS = ["fork", "forkserver"]
LARGE = 20_000  # elements, more than travel within a message


class Constants(data.Dataset):
    def __init__(self, n=80):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return taeda.full((LARGE,), float(i))


def in_child(f):
    """The exit code of a forked child that calls f()."""
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            f()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def drop_in_a_child(samples):
    batch = default_collate(samples)
    held = [batch]
    assert in_child(held.clear) == 0
    return batch


class ForkingSamples(Constants):
    def __getitem__(self, i):
        sample = super().__getitem__(i)
        assert in_child(lambda: None) == 0
        return sample


def collate_in_a_child_too(samples):
    others = [taeda.full((LARGE,), -1.0)] * len(samples)
    assert in_child(lambda: default_collate(others)) == 0
    batch = default_collate(samples)
    assert in_child(lambda: default_collate(others)) == 0
    return batch


def assert_right(loader, size):
    """That batches hold their samples, also a while after they came."""
    kept = []
    for number, batch in enumerate(loader):
        kept = [*kept[-6:], (number, batch)]
        for n, known in kept:
            assert (
                known[:, 0].tolist() == known[:, -1].tolist() == [*range(n * size, n * size + size)]
            )
    assert number == len(loader) - 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("collate", [drop_in_a_child, collate_in_a_child_too])
def test_a_collate_fn_that_forks_gives_the_right_batches(collate, method):
    loader = DataLoader(
        Constants(), 4, num_workers=1, collate_fn=collate, multiprocessing_context=method
    )
    assert_right(loader, 4)


@pytest.mark.parametrize("method", METHODS)
def test_samples_that_fork_are_right(method):
    loader = DataLoader(ForkingSamples(40), 4, num_workers=1, multiprocessing_context=method)
    assert_right(loader, 4)


USES = {
    "next": lambda loader, batches: next(batches),
    "stats": lambda loader, batches: loader.stats(),
    "state": lambda loader, batches: loader.state_dict(),
}


@pytest.mark.parametrize("method", ["fork", "thread"])
@pytest.mark.parametrize("use", USES)
def test_a_child_that_uses_its_parents_workers_is_told(use, method):
    loader = DataLoader(Constants(), 4, num_workers=1, multiprocessing_context=method)
    batches = iter(loader)
    first = next(batches)

    def refused():
        with pytest.raises(RuntimeError, match="workers belong to process"):
            USES[use](loader, batches)
        assert first[3, -1] == 3

    assert in_child(refused) == 0
    assert [batch[0, 0].item() for batch in batches] == [*range(4, 80, 4)]


def test_a_child_has_persistent_workers_of_its_own():
    loader = DataLoader(
        Constants(8), 4, num_workers=1, persistent_workers=True, multiprocessing_context="thread"
    )
    next(iter(loader))

    def load():
        assert [batch[0, 0].item() for batch in loader] == [0, 4]

    assert in_child(load) == 0
    load()
