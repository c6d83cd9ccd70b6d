"""Memory for the bytes of pickles."""

from __future__ import annotations

__all__ = ["keep_buffers"]

_SMALLEST, _LARGEST = 1 << 17, (1 << 25) - (1 << 14)  # what glibc returns to the system or may keep
_kept = _SMALLEST


def keep_buffers(nbytes: int) -> None:
    """Has malloc keep buffers as large as those that a pickle of so many bytes passes through.

    glibc gets each large block from the system anew and returns it, which costs a page fault every
    4 KiB, more than copying does, until it has seen a larger one freed. So one is, that nobody has
    touched, the first time. From then on up to twice its size stays in the process.
    """
    global _kept
    wanted = min(2 * nbytes, _LARGEST)
    if nbytes >= _SMALLEST and wanted > _kept:
        _kept = wanted
        bytes(wanted)
