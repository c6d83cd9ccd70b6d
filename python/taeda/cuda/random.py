"""Random numbers of CUDA devices: seeds and states of their default generators.

Seeds may be set where there is no device; they count nothing then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda import _C
from taeda.cuda import _devices
from taeda.cuda._devices import device_index as _device_index


def _generators() -> tuple[Any, ...]:
    """The default generators of all devices."""
    return tuple(map(_C._cuda_default_generator, range(_devices.device_count())))


def _generator(device: Any, name: str) -> Any:
    _C._cuda_initialize(f"torch.cuda.{name} needs one")
    return _C._cuda_default_generator(_device_index(device, optional=True))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    if _devices.is_available():
        _generator(None, "manual_seed").manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for generator in _generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator from the system's entropy."""
    if _devices.is_available():
        _generator(None, "seed").seed()


def seed_all() -> None:
    """Seeds the generators of all devices with one number from the system's entropy."""
    generators = _generators()
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None, "initial_seed").initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, as bytes."""
    return _generator(device, "get_rng_state").get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Goes on from a state that `get_rng_state` gave."""
    _generator(device, "set_rng_state").set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' generators."""
    return [generator.get_state() for generator in _generators()]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Goes on from states that `get_rng_state_all` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
