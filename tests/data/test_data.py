"""Datasets, samplers and the loader: by themselves, and in PyTorch's order for the same seed."""

from collections import OrderedDict, namedtuple

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader

Point = namedtuple("Point", ["x", "y"])


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i * i

    def __len__(self):
        return self.n


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def _lists(loader):
    return [batch.tolist() for batch in loader]


def test_batches_in_order():
    assert _lists(DataLoader(Squares(5), batch_size=2)) == [[0, 1], [4, 9], [16]]
    assert _lists(DataLoader(Squares(5), batch_size=2, drop_last=True)) == [[0, 1], [4, 9]]
    assert len(DataLoader(Squares(5), batch_size=2)) == 3
    assert list(DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]
    assert _lists(DataLoader(Squares(4), sampler=[3, 1], batch_size=2)) == [[9, 1]]
    assert _lists(DataLoader(Squares(4), batch_sampler=[[0], [1, 2]])) == [[0], [1, 4]]
    assert list(DataLoader(Squares(3), batch_size=2, collate_fn=tuple)) == [(0, 1), (4,)]


def test_iterable_datasets():
    assert _lists(DataLoader(Count(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert _lists(DataLoader(Count(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(3), batch_size=None)) == [0, 1, 2]
    assert len(DataLoader(Count(5), batch_size=2)) == 3
    assert _lists(DataLoader(Count(2) + Count(3), batch_size=9)) == [[0, 1, 0, 1, 2]]
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Count(3), shuffle=True)


def test_datasets():
    x, y = taeda.arange(6).view(3, 2), taeda.arange(3)
    pairs = data.TensorDataset(x, y)
    assert [t.tolist() for t in pairs[1]] == [[2, 3], 1] and len(pairs) == 3
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(x, taeda.arange(4))
    both = Squares(3) + Squares(2)
    assert [both[i] for i in range(5)] == [0, 1, 4, 0, 1] and both[-1] == 1 and len(both) == 5
    assert list(data.Subset(Squares(9), [2, 4])) == [4, 16]
    assert data.StackDataset(Squares(3), Squares(3))[2] == (4, 4)
    assert data.StackDataset(a=Squares(3), b=Squares(3))[2] == {"a": 4, "b": 4}
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(Squares(3), Squares(2))


def test_random_split():
    parts = data.random_split(Squares(10), [7, 3])
    assert sorted(list(parts[0]) + list(parts[1])) == [i * i for i in range(10)]
    assert [len(p) for p in data.random_split(Squares(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(Squares(10), [7, 4])


def test_orders_equal_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = torch.utils.data

    def orders(torch, data):
        torch.manual_seed(11)
        result = []
        loader = data.DataLoader(range(20), batch_size=6, shuffle=True)
        for _ in range(2):
            result.append([b.tolist() for b in loader])
        result.append(torch.rand(1).tolist())
        g = torch.Generator()
        g.manual_seed(3)
        loader = data.DataLoader(range(10), batch_size=4, shuffle=True, generator=g)
        result.append([b.tolist() for b in loader])
        result.append(list(data.RandomSampler(range(5), replacement=True, num_samples=70)))
        result.append(list(data.RandomSampler(range(5), num_samples=13)))
        result.append(list(data.SubsetRandomSampler([7, 8, 9, 10])))
        result.append(list(data.WeightedRandomSampler([0.1, 0.7, 0.2], 9)))
        result.append(list(data.WeightedRandomSampler([0.1, 0.7, 0.2], 2, replacement=False)))
        result.append([list(s.indices) for s in data.random_split(range(10), [3, 7])])
        for rank in range(3):
            for drop_last in (False, True):
                s = data.DistributedSampler(range(10), 3, rank, seed=5, drop_last=drop_last)
                s.set_epoch(2)
                result.append(list(s))
        return result

    for ours, expected in zip(orders(taeda, data), orders(torch, theirs)):
        assert ours == expected


def test_default_collate():
    c = data.default_collate
    assert c([1, 2]).tolist() == [1, 2] and c([1, 2]).dtype == taeda.int64
    assert c([1.5, 2.0]).dtype == taeda.float64
    assert c(["a", "b"]) == ["a", "b"]
    assert c([taeda.ones(2), taeda.zeros(2)]).shape == (2, 2)
    first, second = c([(1, "a"), (2, "b")])
    assert first.tolist() == [1, 2] and second == ("a", "b")
    assert c([{"k": 1}, {"k": 2}])["k"].tolist() == [1, 2]
    assert type(c([OrderedDict(k=1)])) is OrderedDict
    point = c([Point(1, 2), Point(3, 4)])
    assert type(point) is Point and point.x.tolist() == [1, 3]
    assert [t.tolist() for t in c([[1, 2], [3, 4]])] == [[1, 3], [2, 4]]
    with pytest.raises(RuntimeError, match="equal size"):
        c([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors"):
        c([object()])


def test_collate_numpy():
    np = pytest.importorskip("numpy")
    c = data.default_collate
    assert c([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert c([np.float32(1), np.float32(2)]).tolist() == [1, 2]
    assert isinstance(data.default_convert({"a": [np.ones(2)]})["a"][0], taeda.Tensor)
    with pytest.raises(TypeError, match="batch must contain"):
        c([np.array("a")])


def test_getitems_fetches_a_batch_at_once():
    class Batched(Squares):
        def __getitems__(self, indices):
            return [-i for i in indices]

    assert _lists(DataLoader(Batched(3), batch_size=2)) == [[0, -1], [-2]]
    assert _lists(DataLoader(data.Subset(Batched(9), [5, 6]), batch_size=2)) == [[-5, -6]]


def test_bad_arguments():
    s = Squares(3)
    for kwargs, error, text in (
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs"),
        ({"sampler": [0], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "mutually exclusive with batch"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer"),
    ):
        text = text.replace("with batch", "")
        with pytest.raises(error, match=text):
            DataLoader(s, **kwargs)
    loader = DataLoader(s)
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    with pytest.raises(ValueError, match="num_samples should be a positive"):
        data.RandomSampler(Squares(0))


def test_pin_memory_warns_without_an_accelerator():
    if taeda.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert _lists(DataLoader(Squares(2), pin_memory=True)) == [[0], [1]]


def test_wrong_length_of_an_iterable_dataset_warns():
    class Wrong(Count):
        def __len__(self):
            return 1

    loader = DataLoader(Wrong(3), batch_size=None)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1"):
        assert list(loader) == [0, 1, 2]


def test_an_iterable_dataset_shorter_than_a_huge_batch():
    class Five(taeda.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    loader = taeda.utils.data.DataLoader(Five(), batch_size=1 << 62)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3, 4]]
    assert list(taeda.utils.data.DataLoader(Five(), batch_size=1 << 62, drop_last=True)) == []
