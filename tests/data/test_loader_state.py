"""A DataLoader that goes on in the middle of an epoch: the same batches, none loaded again."""

import random

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
WORKERS = [(0, None), (1, "fork"), (2, "fork"), (2, "thread"), (3, "fork"), (2, "forkserver")]


class Noise(data.Dataset):
    """Samples with random numbers of each library; counts what is loaded in this process."""

    loaded = 0

    def __init__(self, n=30):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        Noise.loaded += 1
        info = data.get_worker_info()
        if info is not None and info.rng is not None:
            rng = info.rng
            drawn = rng.random_generator.gauss(0, 1), rng.numpy_generator.random()
            return i, *drawn, taeda.rand(2, generator=rng.torch_generator)
        import numpy

        return i, random.gauss(0, 1), numpy.random.randn(), taeda.rand(2)


class Numbers(data.IterableDataset):
    def __init__(self, n=30):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.n - 5 * start, step))


class Resumable(data.IterableDataset):
    """Knows where it is, and does not read what was read."""

    def __init__(self, n=30):
        self.n, self.at, self.read = n, 0, 0

    def __iter__(self):
        info = data.get_worker_info()
        step, offset = (1, 0) if info is None else (info.num_workers, info.id)
        while self.at * step + offset < self.n:
            self.at += 1
            self.read += 1
            yield (self.at - 1) * step + offset, self.read
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def plain(batch):
    return [x.tolist() for x in batch] if isinstance(batch, list) else batch.tolist()


def options_of(workers):
    number, method = workers
    return {"num_workers": number, "multiprocessing_context": method}


def program_state():
    return random.getstate(), taeda.get_rng_state()


def set_program_state(state):
    random.setstate(state[0])
    taeda.set_rng_state(state[1])


@pytest.mark.parametrize("stop", [0, 1, 3, 7])
@pytest.mark.parametrize("workers", WORKERS, ids=str)
def test_the_rest_of_an_epoch_is_the_same(workers, stop):
    numpy = pytest.importorskip("numpy")

    def make():
        return DataLoader(Noise(), 4, shuffle=True, **options_of(workers))

    taeda.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    whole = make()
    batches = iter(whole)
    for _ in range(stop):
        next(batches)
    state, own, theirs = whole.state_dict(), program_state(), numpy.random.get_state()
    expected = [plain(b) for b in batches]
    again = make()
    again.load_state_dict(state)
    set_program_state(own)
    numpy.random.set_state(theirs)
    got = [plain(b) for b in again]
    if stop == 0 and workers[0]:
        return  # nothing to go on from: a new epoch
    if stop == 0:
        assert len(got) == len(expected)
    else:
        assert got == expected
    taeda.manual_seed(2)
    after = [plain(b)[0] for b in again]
    assert len(after) == 8


@pytest.mark.parametrize("workers", [(0, None), (2, "fork")], ids=str)
def test_generators_go_on_into_the_next_epochs(workers):
    def make():
        generator = taeda.Generator().manual_seed(3)
        return DataLoader(range(20), 3, shuffle=True, generator=generator, **options_of(workers))

    whole = make()
    expected = [[plain(b) for b in whole] for _ in range(3)]
    stopped = make()
    list(stopped)
    batches = iter(stopped)
    got = [plain(next(batches)), plain(next(batches))]
    again = make()
    again.load_state_dict(stopped.state_dict())
    got += [plain(b) for b in again]
    assert [got, [plain(b) for b in again]] == expected[1:]


def test_nothing_is_loaded_again():
    loader = DataLoader(Noise(1000), 10)
    batches = iter(loader)
    for _ in range(50):
        next(batches)
    Noise.loaded = 0
    again = DataLoader(Noise(1000), 10)
    again.load_state_dict(loader.state_dict())
    assert next(iter(again))[0].tolist() == list(range(500, 510)) and Noise.loaded == 10


@pytest.mark.parametrize("stop", [1, 4, 6])
@pytest.mark.parametrize("workers", [(0, None), (2, "fork"), (2, "thread"), (3, "fork")], ids=str)
def test_iterable_datasets_are_read_up_to_there(workers, stop):
    def make():
        return DataLoader(Numbers(), 3, **options_of(workers))

    whole = make()
    batches = iter(whole)
    for _ in range(stop):
        next(batches)
    state = whole.state_dict()
    expected = [plain(b) for b in batches]
    again = make()
    again.load_state_dict(state)
    assert [plain(b) for b in again] == expected


@pytest.mark.parametrize("workers", [(0, None), (2, "fork")], ids=str)
def test_iterable_datasets_with_a_state_go_on_without_reading(workers):
    def make():
        return DataLoader(Resumable(), 3, **options_of(workers))

    whole = make()
    batches = iter(whole)
    for _ in range(5):
        next(batches)
    state = whole.state_dict()
    expected = [plain(b)[0] for b in batches]
    again = make()
    again.load_state_dict(state)
    got = [plain(b) for b in again]
    assert [x for x, _ in got] == expected and got[0][1] == [1, 2, 3]


@pytest.mark.parametrize("workers", [(0, None), (1, "fork"), (2, "fork"), (1, "thread")], ids=str)
def test_a_dataset_with_a_state_that_has_ended_does_not_start_over(workers):
    def make():
        return DataLoader(Resumable(11), 3, **options_of(workers))

    whole = make()
    batches = iter(whole)
    for _ in range(4):
        last = next(batches)[0].tolist()
    state = whole.state_dict()
    assert len(last) == 2 and list(batches) == []
    again = make()
    again.load_state_dict(state)
    assert list(again) == []
    assert sorted(x for b in again for x in b[0].tolist()) == list(range(11))


def test_batches_out_of_order_are_neither_lost_nor_repeated():
    loader = DataLoader(range(40), 2, num_workers=2, in_order=False, multiprocessing_context="fork")
    batches = iter(loader)
    first = [x for _ in range(7) for x in next(batches).tolist()]
    again = DataLoader(range(40), 2, num_workers=2, in_order=False, multiprocessing_context="fork")
    again.load_state_dict(loader.state_dict())
    rest = [x for batch in again for x in batch.tolist()]
    assert sorted(first + rest) == list(range(40))


def test_the_state_stays_after_a_loop_is_left():
    loader = DataLoader(range(10), 2, num_workers=1, multiprocessing_context="fork")
    for batch in loader:
        if batch[0] == 4:
            break
    again = DataLoader(range(10), 2, num_workers=1, multiprocessing_context="fork")
    again.load_state_dict(loader.state_dict())
    assert [b.tolist() for b in again] == [[6, 7], [8, 9]]
    assert [b.tolist()[0] for b in again] == [0, 2, 4, 6, 8]


def test_persistent_workers_go_on_too():
    def make():
        return DataLoader(
            Noise(),
            4,
            num_workers=2,
            persistent_workers=True,
            shuffle=True,
            multiprocessing_context="fork",
        )

    whole = make()
    list(whole)
    batches = iter(whole)
    for _ in range(3):
        next(batches)
    state = whole.state_dict()
    expected = [plain(b) for b in batches]
    whole.load_state_dict(state)
    assert [plain(b) for b in whole] == expected


@pytest.mark.parametrize("method", ["fork", "forkserver", "thread"])
@pytest.mark.parametrize("left_after", [1, 4, None])
def test_the_random_numbers_of_later_epochs_go_on_too(method, left_after):
    def make():
        return DataLoader(
            Noise(44), 4, num_workers=3, persistent_workers=True, multiprocessing_context=method
        )

    whole = make()
    for _, batch in zip(range(left_after or 100), whole):
        assert len(batch[0]) == 4
    batches = iter(whole)
    next(batches)
    state = whole.state_dict()
    expected = [plain(b) for b in batches]
    again = make()
    again.load_state_dict(state)
    assert [plain(b) for b in again] == expected
    assert [plain(b) for b in again] == [plain(b) for b in whole]


def test_states_are_plain_values_that_checkpoints_hold(tmp_path):
    loader = DataLoader(Noise(), 4, num_workers=2, shuffle=True, multiprocessing_context="fork")
    batches = iter(loader)
    next(batches)
    taeda.save(loader.state_dict(), tmp_path / "state.pt")
    loaded = taeda.load(tmp_path / "state.pt")
    assert loaded == loader.state_dict()


def test_the_epoch_of_a_distributed_sampler_is_kept():
    def make():
        sampler = data.DistributedSampler(range(20), 2, 1, seed=4)
        return DataLoader(range(20), 2, sampler=sampler)

    whole = make()
    whole.sampler.set_epoch(3)
    batches = iter(whole)
    next(batches)
    state, expected = whole.state_dict(), [plain(b) for b in batches]
    again = make()
    again.load_state_dict(state)
    assert [plain(b) for b in again] == expected


def test_states_of_other_loaders_are_refused():
    loader = DataLoader(range(8), num_workers=2, multiprocessing_context="fork")
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="num_workers=2, this one has 0"):
        DataLoader(range(8)).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="expected what state_dict"):
        DataLoader(range(8)).load_state_dict({})


@pytest.mark.parametrize("workers", [(0, None), (2, "fork")])
@pytest.mark.parametrize(
    "n, options, told",
    [
        (8, {"batch_size": 3}, "with batch_size=2, this one has batch_size=3"),
        (8, {"batch_size": None}, "this one has batch_size=None"),
        (
            8,
            {"shuffle": True},
            "with sampler=SequentialSampler, this one has sampler=RandomSampler",
        ),
        (8, {"drop_last": True}, "with drop_last=False, this one has drop_last=True"),
        (6, {}, "with samples=8, this one has samples=6"),
        (6, {"batch_size": 1}, "batch_size=2, samples=8, this one has batch_size=1, samples=6"),
    ],
)
def test_states_of_loaders_with_other_batches_are_refused(n, options, told, workers):
    loader = DataLoader(range(8), **{**options_of(workers), "batch_size": 2})
    next(iter(loader))
    other = DataLoader(range(n), **{**options_of(workers), "batch_size": 2, **options})
    with pytest.raises(ValueError, match=told):
        other.load_state_dict(loader.state_dict())


def test_what_is_no_state_is_refused():
    loader = DataLoader(range(8), 2)
    next(iter(loader))
    for x in (None, [], 3):
        with pytest.raises(TypeError, match="expected the dict that state_dict"):
            loader.load_state_dict(x)
    state = loader.state_dict()
    for name in state:
        part = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=f"{name}'|got version None"):
            loader.load_state_dict(part)
    with pytest.raises(TypeError, match="'loader'"):
        loader.load_state_dict({**state, "loader": None})
    loader.load_state_dict(state)
    assert len(list(loader)) == 3


@pytest.mark.parametrize("taken_after", [None, 0, 3, 4, 5, "the iterator"])
def test_the_loaders_own_generator_goes_on_from_any_state(taken_after):
    def make(seed):
        generator = taeda.Generator()
        generator.manual_seed(seed)
        return DataLoader(range(8), 2, shuffle=True, generator=generator)

    whole, again = make(5), make(77)
    rest = whole
    if taken_after == "the iterator":
        list(whole)
    elif taken_after is not None:
        rest = iter(whole)
        for _ in range(taken_after):
            next(rest, None)
    again.load_state_dict(whole.state_dict())
    if taken_after not in (5, "the iterator"):
        assert [plain(b) for b in again] == [plain(b) for b in rest]
    for _ in range(2):
        assert [plain(b) for b in again] == [plain(b) for b in whole]


def test_what_is_of_another_kind_is_refused_by_its_name():
    loader = DataLoader(range(10), 2, num_workers=1, multiprocessing_context="fork")
    next(iter(loader))
    state = loader.state_dict()
    for name in state.keys() - {"version"}:
        with pytest.raises(TypeError, match=rf"state_dict\(\)\['{name}'\] to be .*, got str"):
            loader.load_state_dict(state | {name: "other"})
