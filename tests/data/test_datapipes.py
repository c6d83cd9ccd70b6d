"""Data pipes beside PyTorch's."""

from importlib import import_module

import pytest

import taeda
from taeda.utils.data import DataLoader, IterDataPipe, functional_datapipe, graph_settings

theirs = pytest.importorskip("torch.utils.data.datapipes.iter")
ours = import_module("taeda.utils.data.datapipes.iter")

CHAINS = {
    "map": lambda p: p.IterableWrapper(range(5)).map(lambda x: x * x),
    "columns": lambda p: p.IterableWrapper([(1, 2), (3, 4)]).map(sum_of, input_col=[0, 1]),
    "append": lambda p: p.IterableWrapper([(1, 2)]).map(str, input_col=1, output_col=-1),
    "keys": lambda p: p.IterableWrapper([{"a": 1}]).map(str, input_col="a", output_col="b"),
    "filter": lambda p: p.IterableWrapper(range(9)).filter(lambda x: x % 3 == 0),
    "batch": lambda p: p.IterableWrapper(range(7)).batch(3),
    "drop": lambda p: p.IterableWrapper(range(7)).batch(3, drop_last=True),
    "unbatch": lambda p: p.IterableWrapper([[0, [1]], [2, [3, 4]]]).unbatch(),
    "all": lambda p: p.IterableWrapper([[0, [1]], [2, [3, [4]]]]).unbatch(-1),
    "group": lambda p: p.IterableWrapper(range(9)).groupby(lambda x: x % 3, group_size=2),
    "zip": lambda p: p.IterableWrapper(range(4)).zip(p.IterableWrapper("abc")),
    "concat": lambda p: p.IterableWrapper(range(2)).concat(p.IterableWrapper("ab")),
    "mux": lambda p: p.IterableWrapper(range(3)).mux(p.IterableWrapper("ab")),
    "shard": lambda p: p.IterableWrapper(range(5)).sharding_filter(),
    "shuffle": lambda p: p.IterableWrapper(range(50)).shuffle(buffer_size=7).set_seed(3),
    "sampler": lambda p: p.Sampler([3, 4, 5]),
}


def sum_of(a, b):
    return a + b


@pytest.mark.parametrize("name", CHAINS)
def test_items_are_pytorchs(name):
    found, expected = CHAINS[name](ours), CHAINS[name](theirs)
    assert [plain(x) for x in found] == [plain(x) for x in expected]
    try:
        length = len(expected)
    except (TypeError, AttributeError):
        return
    assert len(found) == length


def plain(x):
    return list(x) if isinstance(x, list) else x


def test_own_pipes_and_loaders():
    @functional_datapipe("doubled_for_this_test")
    class Doubled(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield 2 * x

    pipe = ours.IterableWrapper(range(4)).doubled_for_this_test()
    assert list(pipe) == [0, 2, 4, 6]
    assert [b.tolist() for b in DataLoader(pipe, batch_size=2)] == [[0, 2], [4, 6]]
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("doubled_for_this_test")(Doubled)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pipe.nothing()


def test_settings_reach_all_pipes():
    inner = ours.IterableWrapper(range(30)).shuffle()
    pipe = inner.sharding_filter().batch(5)
    kinds = {type(p).__name__ for p in graph_settings.get_all_graph_pipes(pipe)}
    assert len(kinds) == 4
    graph_settings.apply_shuffle_settings(pipe, False)
    graph_settings.apply_sharding(pipe, 2, 1)
    assert next(iter(pipe)) == [1, 3, 5, 7, 9]
    graph_settings.apply_shuffle_settings(pipe, True)
    generator = taeda.Generator().manual_seed(1)
    graph_settings.apply_random_seed(pipe, generator)
    first = list(pipe)
    graph_settings.apply_random_seed(pipe, taeda.Generator().manual_seed(1))
    assert list(pipe) == first and first[0] != [1, 3, 5, 7, 9]
    plain_pipe = graph_settings.apply_shuffle_settings(ours.IterableWrapper(range(30)), True)
    assert sorted(plain_pipe) == list(range(30))


def test_loaders_turn_shuffling_on_and_off():
    pipe = ours.IterableWrapper(range(40)).shuffle()
    assert [int(x) for x in DataLoader(pipe, batch_size=None, shuffle=False)] == list(range(40))
    mixed = [int(x) for x in DataLoader(pipe, batch_size=None, shuffle=True)]
    assert mixed != list(range(40)) and sorted(mixed) == list(range(40))
    plain_pipe = ours.IterableWrapper(range(40))
    assert [int(x) for x in DataLoader(plain_pipe, batch_size=None, shuffle=True)] != list(
        range(40)
    )


def test_fetchers():
    torch = pytest.importorskip("torch")
    for package in (taeda, torch):
        fetch = import_module(f"{package.__name__}.utils.data._utils.fetch")
        taken = fetch._MapDatasetFetcher([5, 6, 7], True, list, False).fetch([2, 0])
        assert taken == [7, 5]
        assert fetch._MapDatasetFetcher([5, 6], False, str, False).fetch(1) == "6"
        steady = fetch._IterableDatasetFetcher(range(3), True, list, False)
        assert [steady.fetch([0, 0]), steady.fetch([0, 0])] == [[0, 1], [2]]
        with pytest.raises(StopIteration):
            steady.fetch([0])
        with pytest.raises(StopIteration):
            fetch._IterableDatasetFetcher(range(1), True, list, True).fetch([0, 0])
