"""Samplers: the order in which samples are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import taeda

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class: subclasses define ``__iter__``, which gives indices (or lists of them).

    ``__len__`` is wanted where ``len(loader)`` is. A sampler that gives lists is a batch sampler.

    Args:
        data_source: ignored.

    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def __iter__(self):
    ...         return iter(range(self.n - 1, -1, -1))
    >>> loader = torch.utils.data.DataLoader(["a", "b", "c"], sampler=Backwards(3), batch_size=None)
    >>> list(loader)
    ['c', 'b', 'a']
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


def iter_from(sampler: Any, start: int, iterator: Iterator[Any] | None = None) -> Iterator[Any]:
    """``iter(sampler)`` past its first items, its generators as if those had been asked for.

    Samplers of this module go there at once. Of others ``iterator``, if there is one, is read.
    """
    for kind in type(sampler).__mro__:
        if "__iter__" in vars(kind):
            seek = vars(kind).get("_iter_from")  # not that of a base whose order is another
            if seek is not None:
                return seek(sampler, start)
            break
    found = iter(sampler) if iterator is None else iterator
    next(itertools.islice(found, start, start), None)
    return found


class SequentialSampler(Sampler[int]):
    """The indices of a dataset in order: 0, 1, 2, ...

    Args:
        data_source: the dataset, for its length.

    >>> list(torch.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return self._iter_from(0)

    def _iter_from(self, start: int) -> Iterator[int]:
        return iter(range(start, len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _new_generator() -> Any:
    """A generator seeded from the default one."""
    seed = int(taeda.empty((), dtype=taeda.int64).random_().item())
    generator = taeda.Generator()
    generator.manual_seed(seed)
    return generator


_DRAWN_AT_ONCE = 32  # with replacement


def _numbers_from(drawn: Iterator[Any], skip: int) -> Iterator[int]:
    """The numbers in tensors, without the first ``skip`` of the first one, which is drawn at once
    where that is any; the others when they are asked for."""
    head = next(drawn)[skip:].tolist() if skip else []
    return itertools.chain(head, itertools.chain.from_iterable(t.tolist() for t in drawn))


class RandomSampler(Sampler[int]):
    """The indices of a dataset in random order, anew at each iteration.

    Args:
        data_source: the dataset, for its length.
        replacement: whether each is drawn from all, so that some come twice.
        num_samples: how many; None: as many as there are.
        generator: of the random numbers; None: one that is seeded from the default generator.

    >>> sorted(torch.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    >>> len(list(torch.utils.data.RandomSampler(range(4), replacement=True, num_samples=10)))
    10
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, "
                f"but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        # The source may grow: ask it each time.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        yield from self._iter_from(0)

    def _iter_from(self, start: int) -> Iterator[int]:
        n = len(self.data_source)
        generator = _new_generator() if self.generator is None else self.generator
        if self.replacement:
            before = start - start % _DRAWN_AT_ONCE
            taeda.randint(high=n, size=(before,), dtype=taeda.int64, generator=generator)
            return _numbers_from(self._draws(before, n, generator), start - before)
        permutations = self._permutations(n, generator)
        for _ in range(start // n):
            next(permutations)
        return _numbers_from(permutations, start % n)

    def _draws(self, start: int, n: int, generator: Any) -> Iterator[Any]:
        for i in range(start, self.num_samples, _DRAWN_AT_ONCE):
            size = (min(_DRAWN_AT_ONCE, self.num_samples - i),)
            yield taeda.randint(high=n, size=size, dtype=taeda.int64, generator=generator)

    def _permutations(self, n: int, generator: Any) -> Iterator[Any]:
        for _ in range(self.num_samples // n):
            yield taeda.randperm(n, generator=generator)
        yield taeda.randperm(n, generator=generator)[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order, anew at each iteration.

    Args:
        indices: of the samples.
        generator: of the random numbers; None: the default one.

    >>> sorted(torch.utils.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from self._iter_from(0)

    def _iter_from(self, start: int) -> Iterator[int]:
        order = taeda.randperm(len(self.indices), generator=self.generator)[start:].tolist()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights.

    Args:
        weights: one for each sample, not negative; their sum need not be 1.
        num_samples: how many are drawn.
        replacement: whether one may be drawn several times; otherwise at most as many as have
            weight.
        generator: of the random numbers; None: the default one.

    >>> order = list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 3.0], 1000))
    >>> 0 in order, 600 < order.count(2) < 900
    (False, True)
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        weights_tensor = taeda.as_tensor(weights, dtype=taeda.double)
        if weights_tensor.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(weights_tensor.shape)}"
            )
        self.weights = weights_tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from self._iter_from(0)

    def _iter_from(self, start: int) -> Iterator[int]:
        drawn = taeda.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn[start:].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices of another sampler.

    Args:
        sampler: gives single indices.
        batch_size: how many a list has.
        drop_last: whether a shorter list at the end is left out.

    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._batches(iter(self.sampler))

    def _iter_from(self, start: int) -> Iterator[list[int]]:
        return self._batches(iter_from(self.sampler, start * self.batch_size))

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        if self.drop_last:
            return len(self.sampler) // self.batch_size
        return (len(self.sampler) + self.batch_size - 1) // self.batch_size
