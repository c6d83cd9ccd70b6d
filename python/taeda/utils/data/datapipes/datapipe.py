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

    >>> from torch.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).map(lambda x: x * x).batch(2))
    [[0, 1], [4, 9], [16]]
    """

    functions: dict[str, Callable] = {}

    def reset(self) -> None:
        """Called by those that read it again."""


class MapDataPipe(_Chains, Dataset):
    """A data set by index that other pipes can follow."""

    functions: dict[str, Callable] = {}


class functional_datapipe:
    """A decorator: pipes of this class follow others by a method of this name."""

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
