"""Which implementation of attention to use: taeda chooses, by what is asked for; all agree."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from taeda import _missing

__all__ = [
    "SDPBackend",
    "WARN_FOR_UNFUSED_KERNELS",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """The implementations that PyTorch distinguishes."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict]:
    """Within the context, attention may use ``backends``; all compute the same."""
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, list) or not all(isinstance(b, SDPBackend) for b in backends):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend")
    yield {}


def list_flash_attention_impls() -> list[str]:
    """The names of registered implementations of attention: there is one, without a name."""
    return []


def current_flash_attention_impl() -> str | None:
    """None: no other implementation is active."""
    return None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """The implementation was never another."""


__getattr__, __dir__ = _missing.attributes(__name__)
