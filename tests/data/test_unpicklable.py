"""Batches that cannot travel to the trainer, and samples that would end a pass without a word."""

import os
import pickle
import re
import time

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader
from taeda.utils.data._utils.unpicklable import describe

PROCESSES = ["fork", "forkserver", "spawn"]


class Holder:
    """An object with an attribute that has no pickle."""

    def __init__(self):
        self.size = 3
        self.callback = lambda: 0


class Samples(data.Dataset):
    """Sample 6 is what a method makes."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return getattr(self, self.what)() if i == 6 else taeda.zeros(2)

    def function(self):
        return lambda: 0

    def object(self):
        return {"row": 1, "holder": Holder()}

    def history(self):
        return taeda.ones(2, requires_grad=True) * 2

    def stop(self):
        raise StopIteration

    def ordinary(self):
        return taeda.ones(2)


def as_list(batch):
    return batch


def as_dict(batch):
    return {"rows": batch, "n": len(batch)}


def stop_in_collate(batch):
    if bool(batch[0].any()) or len(batch) < 4 or bool(batch[2].any()):
        raise StopIteration
    return batch


def failure_of(what, method, batch_size=4, **options):
    """The exception of a pass, and the seconds since the batch before it."""
    options.setdefault("collate_fn", as_list)
    if method is not None:
        options.update(num_workers=2, multiprocessing_context=method)
    begin = time.monotonic()
    with pytest.raises(Exception) as caught:
        for _ in DataLoader(Samples(what), batch_size, **options):
            begin = time.monotonic()
    return caught.value, time.monotonic() - begin


@pytest.mark.parametrize("method", PROCESSES)
@pytest.mark.parametrize(
    "what, kind, part",
    [
        ("function", AttributeError, r"batch\[2\] \(index 6\) is a function"),
        ("object", AttributeError, r"batch\[2\]\['holder'\]\.callback \(index 6\) is a function"),
        ("history", RuntimeError, r"batch\[2\] \(index 6\) is a (torch|taeda)\.Tensor"),
    ],
)
def test_what_cannot_be_pickled_is_named_with_its_sample(what, kind, part, method):
    error, seconds = failure_of(what, method)
    assert type(error) is kind and seconds < 2 + 30 * (os.getloadavg()[0] > 3)
    text = str(error)
    assert re.search(r"\(worker 1, pid \d+: batch 1 \(indices 4, 5, 6, 7\) cannot be pickled", text)
    assert re.search(part, text), text
    assert "local object" in text or what == "history"  # the cause, in pickle's words


def test_the_path_goes_through_what_collate_fn_makes():
    error, _ = failure_of("object", "fork", collate_fn=as_dict)
    assert "batch['rows'][2]['holder'].callback (index 6) is a function" in str(error)


def test_a_single_sample_is_named_by_its_index():
    error, _ = failure_of("function", "fork", batch_size=None)
    assert "batch 6 (index 6) cannot be pickled" in str(error)
    assert "batch is a function" in str(error)


def test_threads_hand_on_what_cannot_be_pickled():
    loader = DataLoader(
        Samples("function"), 4, collate_fn=as_list, num_workers=2, multiprocessing_context="thread"
    )
    assert callable(list(loader)[1][2])


def refuse_functions(x):
    import pickle

    return pickle.dumps(x)


@pytest.mark.parametrize(
    "batch, index, part",
    [
        ([1, (2, {"a": {3: print, 4: lambda: 0}})], None, "batch[1][1]['a'][4] is a function"),
        ([lambda: 0, 1], [8, 9], "batch[0] (index 8) is a function"),
        ([[1, lambda: 0]], [8, 9], "batch[0][1] (index 9) is a function"),
    ],
)
def test_the_innermost_part_is_found(batch, index, part):
    assert describe(batch, index, refuse_functions).endswith(part)


def test_a_large_batch_is_searched_for_a_second_only():
    begin = time.process_time()
    text = describe([list(range(10**6))] * 50 + [lambda: 0], None, refuse_functions)
    assert "batch" in text and time.process_time() - begin < 10


class Stateful(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))

    def state_dict(self):
        return {"rng": lambda: 0}

    def load_state_dict(self, state):
        pass


def test_a_state_that_cannot_be_pickled_is_named():
    loader = DataLoader(Stateful(), num_workers=1, multiprocessing_context="fork", timeout=30)
    with pytest.raises(AttributeError, match=r"dataset's state_dict\(\) cannot be pickled"):
        list(loader)


# --- StopIteration ---


@pytest.mark.parametrize("method", [None, *PROCESSES, "thread"])
def test_a_sample_that_raises_stop_iteration_is_an_error(method):
    error, _ = failure_of("stop", method)
    assert type(error) is RuntimeError
    assert "sample 6 of Samples raised StopIteration" in str(error)
    if method is None:
        assert type(error.__cause__) is StopIteration
    else:
        assert "loading sample 2 of batch 1 (index 6)" in str(error)
        assert "in stop" in str(error)


@pytest.mark.parametrize("method", [None, "fork", "thread"])
def test_a_single_sample_that_raises_stop_iteration_is_an_error(method):
    error, _ = failure_of("stop", method, batch_size=None)
    assert type(error) is RuntimeError and "sample 6 of Samples raised" in str(error)


class Lists(Samples):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


@pytest.mark.parametrize("method", [None, "fork"])
def test_samples_that_are_asked_for_together_are_named_together(method):
    options = {} if method is None else {"num_workers": 1, "multiprocessing_context": method}
    with pytest.raises(RuntimeError, match=r"sample \[4, 5, 6, 7\] of Lists raised StopIter"):
        list(DataLoader(Lists("stop"), 4, **options))


@pytest.mark.parametrize("method", [None, "fork", "thread"])
def test_a_collate_fn_that_raises_stop_iteration_is_an_error(method):
    error, _ = failure_of("ordinary", method, collate_fn=stop_in_collate)
    assert type(error) is RuntimeError and "collate_fn raised StopIteration" in str(error)


def test_loading_goes_on_after_a_stop_iteration():
    batches = iter(DataLoader(Samples("stop"), 4, num_workers=2, multiprocessing_context="fork"))
    assert len(next(batches)) == 4
    with pytest.raises(RuntimeError):
        next(batches)
    assert [len(batch) for batch in batches] == [4]


class Evil(dict):
    """Raises whatever is asked of it; a KeyError, say, from its items."""

    def __init__(self, what):
        super().__init__(a=1)
        self.what = what

    def __reduce_ex__(self, protocol):
        raise TypeError("no pickle of me")

    def __getitem__(self, key):
        raise KeyError(self.what)

    def __iter__(self):
        if self.what == "iter":
            raise OSError(self.what)
        return super().__iter__()

    @property
    def __dict__(self):
        raise ValueError("no attributes")


class EvilKey:
    def __repr__(self):
        raise ValueError("no repr")


class Deep:
    def __init__(self, child=None):
        self.child = child


class EvilSamples(Samples):
    def items(self):
        return Evil("items")

    def iteration(self):
        return Evil("iter")

    def key(self):
        return {EvilKey(): lambda: 0}

    def deep(self):
        x = Deep()
        for _ in range(20_000):
            x = Deep(x)
        return x


@pytest.mark.parametrize(
    "what, kind, part",
    [
        ("items", TypeError, "test_unpicklable.Evil"),
        ("iteration", TypeError, "test_unpicklable.Evil"),
        ("key", (AttributeError, pickle.PicklingError), "is a dict"),
        ("deep", RecursionError, "test_unpicklable.Deep"),
    ],
)
def test_a_search_that_objects_stop_tells_how_far_it_came(what, kind, part):
    loader = DataLoader(
        EvilSamples(what), 4, num_workers=1, collate_fn=as_list, multiprocessing_context="fork"
    )
    with pytest.raises(kind, match=r"batch\[2\].* \(index 6\) is a") as caught:
        list(loader)
    assert part in str(caught.value)


class Forgetful(data.IterableDataset):
    """Its state cannot be asked for after a number of times."""

    def __init__(self, times):
        self.times = times

    def __iter__(self):
        return iter(range(4))

    def state_dict(self):
        self.times -= 1
        if self.times < 0:
            raise OSError("no disk")
        return {}

    def load_state_dict(self, state):
        pass


@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.parametrize("method", ["fork", "thread"])
def test_a_state_dict_that_raises_is_told(method, times):
    batches = iter(DataLoader(Forgetful(times), num_workers=1, multiprocessing_context=method))
    got = []
    with pytest.raises(OSError, match="no disk") as caught:
        got.extend(batches)
    assert "in state_dict" in str(caught.value) and "in DataLoader worker" in str(caught.value)


def stop_in_init(worker_id):
    next(iter([]))


class StopInIter(data.IterableDataset):
    def __iter__(self):
        raise StopIteration


class StopInSetstate(Samples):
    def __setstate__(self, state):
        raise StopIteration


class StopsWhenRead:
    def __init__(self, batch):
        pass

    def __reduce__(self):
        return next, (iter([]),)


@pytest.mark.parametrize("method", [*PROCESSES, "thread"])
@pytest.mark.parametrize("where", ["worker_init_fn", "__iter__", "__setstate__", "a batch"])
def test_no_stop_iteration_ends_a_pass_without_a_word(where, method):
    if (where == "__setstate__" and method in ("fork", "thread")) or (
        where == "a batch" and method == "thread"
    ):
        return  # nothing is unpickled there
    options = {
        "worker_init_fn": {"dataset": Samples("ordinary"), "worker_init_fn": stop_in_init},
        "__iter__": {"dataset": StopInIter()},
        "__setstate__": {"dataset": StopInSetstate("ordinary")},
        "a batch": {"dataset": Samples("ordinary"), "collate_fn": StopsWhenRead},
    }[where]
    batches = iter(DataLoader(num_workers=1, multiprocessing_context=method, **options))
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(batches)


def test_a_dataset_whose_iterator_raises_stop_iteration_is_told_here_too():
    with pytest.raises(RuntimeError, match=r"StopInIter.__iter__ raised StopIteration") as caught:
        list(DataLoader(StopInIter()))
    assert isinstance(caught.value.__cause__, StopIteration)
