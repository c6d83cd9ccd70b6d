"""Random numbers: seeds and states of the default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from taeda import _C, _missing
from taeda._C import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Restores the generators' states at the end of the block: the CPU's and CUDA devices'.

    Args:
        devices: the CUDA devices; None for all that this process works with.
        enabled: False for a block that restores nothing.
    """
    if not enabled:
        yield
        return
    generators = [default_generator]
    if devices is None:
        devices = range(_C._cuda_device_count() if _C._cuda_is_initialized() else 0)
    for device in devices:
        from taeda.cuda._devices import device_index

        _C._cuda_initialize("torch.random.fork_rng with devices needs one")
        generators.append(_C._cuda_default_generator(device_index(device)))
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


__getattr__, __dir__ = _missing.attributes(__name__)
