"""How a DataLoader gets to the index that it goes on from."""

import itertools
import warnings

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader
from taeda.utils.data.sampler import iter_from


class Backwards(data.Sampler):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n - 1, -1, -1))


class Odd(data.RandomSampler):
    """Another order than its base's."""

    def __iter__(self):
        return (2 * i + 1 for i in super().__iter__())


def generator():
    return taeda.Generator().manual_seed(5)


SAMPLERS = {
    "sequential": lambda: data.SequentialSampler(range(100)),
    "random": lambda: data.RandomSampler(range(100), generator=generator()),
    "random, default generator": lambda: data.RandomSampler(range(100)),
    "random, fewer": lambda: data.RandomSampler(range(100), num_samples=70, generator=generator()),
    "random, more": lambda: data.RandomSampler(range(30), num_samples=100, generator=generator()),
    "replacement": lambda: data.RandomSampler(
        range(50), replacement=True, num_samples=101, generator=generator()
    ),
    "subset": lambda: data.SubsetRandomSampler(list(range(200, 300)), generator()),
    "weighted": lambda: data.WeightedRandomSampler([1.0, 2.0, 0.5], 100, generator=generator()),
    "backwards": lambda: Backwards(100),
    "odd": lambda: Odd(range(100), generator=generator()),
    "distributed": lambda: data.DistributedSampler(range(200), 2, 1, seed=4),
    "list": lambda: list(range(50, 150)),
}
STARTS = [0, 1, 29, 30, 31, 32, 33, 60, 64, 69, 70, 90, 96, 99, 100]


def states(sampler):
    own = getattr(sampler, "generator", None)
    return taeda.get_rng_state().tolist(), None if own is None else own.get_state().tolist()


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("start", STARTS)
def test_seeking_gives_what_reading_gives_and_leaves_the_same_generators(name, start):
    taeda.manual_seed(1)
    read = SAMPLERS[name]()
    expected = iter(read)
    list(itertools.islice(expected, start))
    between = states(read)
    rest, after = list(expected), states(read)
    taeda.manual_seed(1)
    sought = SAMPLERS[name]()
    got = iter_from(sought, start)
    assert start == 0 or states(sought) == between
    assert list(got) == rest and states(sought) == after


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_are_sought_too(name, drop_last):
    for start in (0, 1, 4, 14):
        taeda.manual_seed(1)
        expected = list(data.BatchSampler(SAMPLERS[name](), 7, drop_last))[start:]
        taeda.manual_seed(1)
        assert list(iter_from(data.BatchSampler(SAMPLERS[name](), 7, drop_last), start)) == expected


class Counting:
    """A dataset that is asked for its length only."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_no_batch_is_drawn_again(workers, shuffle, monkeypatch):
    options = {"num_workers": workers, "shuffle": shuffle}
    if workers:
        options["multiprocessing_context"] = "fork"

    def make():
        return DataLoader(Counting(20_000), 2, generator=generator(), **options)

    whole = make()
    batches = iter(whole)
    for _ in range(9000):
        next(batches)
    state = whole.state_dict()
    expected = [b.tolist() for b in batches]
    drawn, real = [], data.BatchSampler._batches

    def count(self, indices):
        for batch in real(self, indices):
            drawn.append(batch)
            yield batch

    monkeypatch.setattr(data.BatchSampler, "_batches", count)
    again = make()
    again.load_state_dict(state)
    batches = iter(again)
    assert next(batches).tolist() == expected[0]
    assert len(drawn) <= 16  # what is under way, of 9,000 batches
    assert [b.tolist() for b in batches] == expected[1:]


# --- iterable datasets ---


class Numbers(data.IterableDataset):
    def __iter__(self):
        return iter(range(20))


@pytest.mark.parametrize("method", [None, "fork", "thread"])
def test_reading_again_is_warned_of(method):
    options = {} if method is None else {"num_workers": 1, "multiprocessing_context": method}
    loader = DataLoader(Numbers(), 3, **options)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    again = DataLoader(Numbers(), 3, **options)
    again.load_state_dict(loader.state_dict())
    with pytest.warns(UserWarning, match="Numbers has no state_dict .* first 12 samples are read"):
        assert next(iter(again)).tolist() == [12, 13, 14]


class Endless(data.IterableDataset):
    """Goes on where it is, each time it is iterated, to the next multiple of 50."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        info = data.get_worker_info()
        step, offset = (1, 0) if info is None else (info.num_workers, info.id)
        while True:
            self.at += 1
            yield (self.at - 1) * step + offset
            if self.at % (50 // step) == 0:
                return

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def plain(batches):
    return [b.tolist() for b in batches]


@pytest.mark.parametrize("method, workers", [(None, 0), ("fork", 1), ("fork", 2), ("thread", 1),
                                             ("forkserver", 2), ("spawn", 1)])  # fmt: skip
@pytest.mark.parametrize("left_after", [0, 1, 3])
def test_a_dataset_with_a_state_goes_on_where_the_program_left_it(method, workers, left_after):
    """Persistent workers that had read ahead go back; and so does a loader that goes on."""
    options = {}
    if workers:
        options = {"num_workers": workers, "multiprocessing_context": method}
        options["persistent_workers"] = True

    def make():
        return DataLoader(Endless(), 2, **options)

    whole = make()
    batches = iter(whole)
    first = [next(batches).tolist() for _ in range(left_after)]
    batches = iter(whole)  # leaves that pass
    second = [next(batches).tolist() for _ in range(4)]
    numbers = [x for b in first + second for x in b]
    if workers < 2:
        assert numbers == list(range(len(numbers)))
    assert len(set(numbers)) == len(numbers)
    state = whole.state_dict()
    expected = plain(batches)
    again = make()
    again.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain(again) == expected
    assert expected[0][0] > max(numbers) - 2 * max(workers, 1)
