"""Runs tests that were written for the CPU with their tensors on another device.

The device becomes the default one. What such tests do only on the CPU goes on: NumPy reads copies,
its arrays become tensors on the device, and random numbers are the CPU's, which PyTorch's are
compared with; the device has numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map


@contextmanager
def by_default(device: str) -> Iterator[None]:
    """Within: tensors are made on ``device`` where nothing else is said."""
    numpy, array, from_numpy = taeda.Tensor.numpy, taeda.Tensor.__array__, taeda.from_numpy

    def on_host(method: Any) -> Any:
        def read(self: taeda.Tensor, *args: Any, **kwargs: Any) -> Any:
            return method(self.cpu() if self.device.type == device else self, *args, **kwargs)

        return read

    with (
        patch.object(taeda.Tensor, "numpy", on_host(numpy)),
        patch.object(taeda.Tensor, "__array__", on_host(array)),
        patch.object(taeda, "from_numpy", lambda values: from_numpy(values).to(device)),
        taeda.device(device),
        RandomOnHost(device),
    ):
        yield


class RandomOnHost(TorchDispatchMode):
    """Operators that draw random numbers do it on the CPU."""

    _sees_table = True  # their schemas have the generator that PyTorch's spelling leaves out

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = taeda.device(device)

    def _moved(self, values: Any, to: taeda.device) -> Any:
        def move(value: Any) -> Any:
            if isinstance(value, taeda.Tensor):
                return value.to(to)
            return to if isinstance(value, taeda.device) else value

        return tree_map(move, values)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        elsewhere = args and getattr(args[0], "device", self.device).type != self.device.type
        if elsewhere or "Generator?" not in str(func._schema):
            return func(*args, **kwargs)
        host = taeda.device("cpu")
        drawn = func(*self._moved(args, host), **self._moved(kwargs, host))
        if func._schema.is_mutable:
            return args[0].copy_(drawn)
        return self._moved(drawn, self.device)
