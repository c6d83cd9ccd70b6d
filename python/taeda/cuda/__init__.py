"""CUDA: no device can be used by this build, and everything here says so.

Questions have answers (``is_available()`` is False, ``device_count()`` 0, no memory is in use),
seeds are accepted, and what needs a device raises what a PyTorch without CUDA raises: functions
AssertionError, classes RuntimeError.
"""

from __future__ import annotations

from typing import Any, NoReturn

_MESSAGE = "no CUDA device was found: torch.cuda.{} needs one"


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def is_current_stream_capturing() -> bool:
    return False


def device_count() -> int:
    return 0


def get_arch_list() -> list[str]:
    return []


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


manual_seed_all = manual_seed


def seed() -> None:
    """Nothing to seed."""


seed_all = seed


def empty_cache() -> None:
    """Nothing is cached."""


def _no_memory(device: Any = None) -> int:
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _no_memory
memory_cached = max_memory_cached = _no_memory


def _no_statistics(device: Any = None) -> None:
    """Nothing is counted."""


reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = _no_statistics


def memory_stats(device: Any = None) -> dict[str, int]:
    return {}


def get_rng_state_all() -> list:
    return []


def set_rng_state_all(states: Any) -> None:
    for _ in states:
        _fail("set_rng_state_all")


def _fail(name: str, kind: type[Exception] = AssertionError) -> NoReturn:
    raise kind(_MESSAGE.format(name))


def _needs_device(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        _fail(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "AssertionError: there is no CUDA device."
    return function


for _name in (
    "init current_device set_device synchronize get_device_name get_device_properties "
    "get_device_capability current_stream default_stream set_stream mem_get_info memory_summary "
    "memory_snapshot can_device_access_peer get_rng_state set_rng_state utilization initial_seed "
    "ipc_collect current_blas_handle"
).split():
    globals()[_name] = _needs_device(_name)


class _NeedsDevice:
    """A class of which no object can be made without a device."""

    _error: type[Exception] = RuntimeError

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _fail(type(self).__name__, self._error)


class Stream(_NeedsDevice):
    pass


class Event(_NeedsDevice):
    pass


class CUDAGraph(_NeedsDevice):
    pass


class device:
    """Context manager: the current device, which only None and negative numbers can name here."""

    def __init__(self, device: Any) -> None:
        if device is not None and not (isinstance(device, int) and device < 0):
            _fail("device", RuntimeError)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class stream:
    """Context manager: the current stream; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        if stream is not None:
            _fail("stream", RuntimeError)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def __getattr__(name: str) -> Any:
    """``torch.cuda.amp`` without an import of its own, and ``torch.cuda.FloatTensor``."""
    found: Any
    if name == "amp":
        import taeda.cuda.amp as found
    elif name.endswith("Tensor"):
        found = type(name, (_NeedsDevice,), {"__module__": "torch.cuda", "_error": TypeError})
    else:
        raise AttributeError(f"module 'taeda.cuda' has no attribute '{name}'")
    globals()[name] = found
    return found
