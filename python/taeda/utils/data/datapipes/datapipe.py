"""What pipes are: data sets with methods for the pipes that may follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.utils.data.dataset import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Chains:
    """``pipe.map(f)`` is ``Mapper(pipe, f)``, for what is registered as a function."""

    functions: dict[str, Callable] = {}

    def __getattr__(self, name: str) -> Any:
        functions = type(self).functions
        if name not in functions:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        cls = functions[name]
        return lambda *args, **kwargs: cls(self, *args, **kwargs)

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes ``pipe.function_name(...)`` give ``cls_to_register(pipe, ...)``."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register

    register_function = register_datapipe_as_function


class IterDataPipe(_Chains, IterableDataset):
    """An iterable data set that other pipes can follow.

    >>> numbers = torch.utils.data.datapipes.iter.IterableWrapper(range(5))
    >>> list(numbers.map(lambda x: x * x).batch(2))
    [[0, 1], [4, 9], [16]]
    """

    functions: dict[str, Callable] = {}

    def reset(self) -> None:
        """Called by those that read it again."""


class MapDataPipe(_Chains, Dataset):
    """A data set by index that other pipes can follow: each `functional_datapipe` for such pipes is
    a method of all of them.

    Subclasses define ``__getitem__(index)`` and ``__len__()``. There are no ready-made ones here.

    >>> class Squares(torch.utils.data.MapDataPipe):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 4
    >>> list(torch.utils.data.DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4, 9])]
    """

    functions: dict[str, Callable] = {}


class functional_datapipe:
    """A decorator of pipes: `pipe.NAME(...)` makes one that reads `pipe`.

    Args:
        name: of the method, of all pipes of the same kind (`IterDataPipe` or `MapDataPipe`).
        enable_df_api_tracing: accepted, and without effect.

    >>> @torch.utils.data.functional_datapipe("only_even")
    ... class OnlyEven(torch.utils.data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (x for x in self.source if x % 2 == 0)
    >>> numbers = torch.utils.data.datapipes.iter.IterableWrapper(range(6))
    >>> list(numbers.only_even())
    [0, 2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        if not isinstance(cls, type):
            raise TypeError("Can only decorate IterDataPipe")
        base = next((b for b in (IterDataPipe, MapDataPipe) if issubclass(cls, b)), None)
        if base is None:
            raise TypeError("functional_datapipe decorates classes of data pipes")
        base.register_datapipe_as_function(self.name, cls)
        return cls
