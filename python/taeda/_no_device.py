"""What torch.mps, torch.xpu and torch.mtia answer: there is no such device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def answers(module: str, error: type[Exception], message: str) -> Callable[[str], Any]:
    """Makes the functions of a device's module that need one; `message` has {name} for theirs."""

    def absent(name: str) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            raise error(message.format(name=name))

        function.__name__ = function.__qualname__ = name
        function.__module__ = module
        function.__doc__ = f"{error.__name__}: {message.format(name=name)}."
        return function

    return absent


def publish(names: dict[str, Any], common: str, needing: str, absent: Callable[[str], Any]) -> None:
    """Fills a device's module: `common` of the functions below, and those that need a device."""
    names |= {name: globals()[f"_{name}"] for name in common.split()}
    names |= {name: absent(name) for name in needing.split()}


def _is_available() -> bool:
    return False


_is_initialized = _is_available


def _is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no device."""
    return False


_is_tf32_supported = _is_bf16_supported


def _device_count() -> int:
    return 0


def _memory_allocated(device: Any = None) -> int:
    """0: no memory is used."""
    return 0


_max_memory_allocated = _memory_reserved = _max_memory_reserved = _memory_allocated


def _empty_cache() -> None:
    """Nothing is cached."""


def _reset_peak_memory_stats(device: Any = None) -> None:
    """There are no counts."""


_reset_accumulated_memory_stats = _reset_peak_memory_stats


def _memory_stats(device: Any = None) -> dict[str, Any]:
    return {}


_memory_stats_as_nested_dict = _memory_stats


def _manual_seed(seed: int) -> None:
    """Nothing to seed: what is seeded now has no device to come to."""


_manual_seed_all = _manual_seed


def _seed() -> None:
    """Nothing to seed."""


_seed_all = _seed


def _get_rng_state_all() -> list:
    return []


def _set_rng_state_all(new_states: Any) -> None:
    """There are no devices whose states could be set."""


_get_arch_list = _memory_snapshot = _get_rng_state_all
