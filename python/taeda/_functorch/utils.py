"""Small helpers that PyTorch's transforms share with libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

argnums_t = int | tuple[int, ...]


def exposed_in(module: str) -> Callable[[Any], Any]:
    """Decorator: the function or class says that it is of `module`."""

    def wrapper(fn: Any) -> Any:
        fn.__module__ = module
        return fn

    return wrapper


def unwrap_dead_wrappers(args: tuple) -> tuple:
    """The arguments: tensors of a level that has ended say so when they are used."""
    return tuple(args)


@contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """A block in which autograd functions run at one level: as they always do."""
    yield
