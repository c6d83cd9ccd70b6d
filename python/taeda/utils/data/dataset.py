"""Datasets: collections of samples, by index or by iteration."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import taeda
from taeda import Tensor

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: subclasses define ``__getitem__`` and, for most samplers, ``__len__``.

    ``__getitems__(indices)`` may be defined to fetch a whole batch at once. Anything with these
    methods will do for a DataLoader, a list too; ``a + b`` is a `ConcatDataset`.

    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index, index**2
    >>> Squares()[3], len(Squares() + Squares())
    ((3, 9), 8)
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in the order of iteration: subclasses define ``__iter__``.

    For streams that have no indices: files that are read line by line, generators, sockets. A
    DataLoader takes them as they come; it neither shuffles nor takes a sampler.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample i is the tuple of the i-th rows.

    Args:
        tensors: of the same first size; the samples are views of them.

    >>> data = torch.utils.data.TensorDataset(torch.arange(6).view(3, 2), torch.tensor([7, 8, 9]))
    >>> data[1], len(data)
    ((tensor([2, 3]), tensor(8)), 3)
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            error = AssertionError("Size mismatch between tensors")
            sizes = ", ".join(str(tensor.size(0)) for tensor in tensors)
            error.add_note(f"Fix: the tensors' first sizes are {sizes}: make them equal")
            raise error
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Datasets side by side: sample i is the tuple, or with keywords the dict, of their i-th
    samples.

    Args:
        args: datasets of the same length; or
        kwargs: the same by name.

    >>> data = torch.utils.data.StackDataset(image=["a", "b"], label=[0, 1])
    >>> data[1], len(data)
    ({'image': 'b', 'label': 1}, 2)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        datasets = args or tuple(kwargs.values())
        self._length = len(datasets[0])
        if any(len(dataset) != self._length for dataset in datasets):
            raise ValueError("Size mismatch between datasets")
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {k: dataset[index] for k, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list) -> list:
        if isinstance(self.datasets, dict):
            columns = {k: _fetch_all(d, indices) for k, d in self.datasets.items()}
            return [{k: c[i] for k, c in columns.items()} for i in range(len(indices))]
        return list(zip(*(_fetch_all(d, indices) for d in self.datasets)))

    def __len__(self) -> int:
        return self._length


def _fetch_all(dataset: Any, indices: list) -> list:
    if callable(getattr(dataset, "__getitems__", None)):
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(
                f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
            )
        return items
    return [dataset[i] for i in indices]


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other, by index.

    Args:
        datasets: with lengths; not iterable ones.

    >>> data = torch.utils.data.ConcatDataset([["a", "b"], ["c"]])
    >>> data[2], len(data)
    ('c', 3)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = 0 if which == 0 else self.cumulative_sizes[which - 1]
        return self.datasets[which][idx - start]

    @property
    def cummulative_sizes(self) -> list[int]:
        warnings.warn(
            "cummulative_sizes attribute is renamed to cumulative_sizes",
            FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other; each is opened when the one before has ended.

    Args:
        datasets: `IterableDataset` objects.

    >>> class Upto(torch.utils.data.IterableDataset):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def __iter__(self):
    ...         return iter(range(self.n))
    >>> list(torch.utils.data.ChainDataset([Upto(2), Upto(3)]))
    [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        super().__init__()
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """Some samples of a dataset, in an order of its own.

    Args:
        dataset: by index.
        indices: of the samples in it.

    ``random_split`` makes such parts at random.

    >>> data = torch.utils.data.Subset(["a", "b", "c"], [2, 0])
    >>> data[0], len(data)
    ('c', 2)
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        positions = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(positions)
        return [self.dataset[i] for i in positions]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T_co]]:
    """Random disjoint subsets of a dataset, such as those for training and for validation.

    Args:
        dataset: with a length.
        lengths: of the subsets, which sum to the dataset's; or fractions that sum to 1, rounded
            down, what is left going to the first subsets one by one.
        generator: of the random numbers; None: the default one.

    Raises:
        ValueError: the lengths do not sum to the dataset's, or a fraction is not from 0 to 1.

    >>> train, validation = torch.utils.data.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(validation), sorted([*train, *validation]) == list(range(10))
    (8, 2, True)
    """
    count = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(count * fraction) for fraction in lengths]
        for i in range(count - sum(sizes)):  # what is left goes round
            sizes[i % len(sizes)] += 1
        lengths = sizes
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.",
                    stacklevel=2,
                )
    if sum(lengths) != count:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = taeda.randperm(count, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - n : end]) for end, n in zip(ends, lengths)]
