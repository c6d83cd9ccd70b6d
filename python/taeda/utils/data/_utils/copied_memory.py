"""How much of the trainer's memory a forked worker has copied by reading objects in it."""

from __future__ import annotations

import contextlib
import os
import resource
import warnings
from typing import Any

__all__ = ["CopiedMemory", "warn_of_copies"]

WARNING_BYTES = 100 << 20  # that a worker has copied
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BATCHES_BETWEEN_LOOKS = 8
_OWN_BYTES = 8 << 20  # that a worker writes without reading any sample


class CopiedMemory:
    """Counts page faults, which cost next to nothing to count, and looks at the memory itself when
    there were enough of them, and then after half as many again each time, since looking takes long
    where there is much memory."""

    def __init__(self) -> None:
        self.nbytes = 0  # when it looked last
        self._batches = 0
        self._resident = _resident_bytes()
        self._faults = _faults() + WARNING_BYTES // _PAGE  # at which it looks next

    def after_batch(self) -> bool:
        """Whether it looked."""
        self._batches += 1
        if self._batches % _BATCHES_BETWEEN_LOOKS or _faults() < self._faults:
            return False
        self._faults = _faults() * 3 // 2
        with contextlib.suppress(OSError):
            self.nbytes = self._copied()
        return True

    def _copied(self) -> int:
        """A page that is copied was resident before, one of a new object was not."""
        new = max(_resident_bytes() - self._resident, 0)
        return max(private_bytes() - new - _OWN_BYTES, 0)


def private_bytes(pid: int | str = "self") -> int:
    """Memory of a process that exists for it alone. A page of a file that only it has mapped just
    now, which the system calls private too, is not: others find it in the file."""
    total = 0
    private = 0
    with open(f"/proc/{pid}/smaps", "rb") as file:
        for line in file:
            if line.startswith((b"Private_Clean:", b"Private_Dirty:")):
                private += int(line.split()[1]) << 10
            elif line.startswith(b"Anonymous:"):  # after the two, once in each mapping
                total += min(private, int(line.split()[1]) << 10)
                private = 0
    return total


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _resident_bytes() -> int:
    """Without pages of files."""
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as file:
        _, resident, of_files, *_ = map(int, file.read().split())
        return (resident - of_files) * _PAGE
    return 0


def warn_of_copies(worker: Any, nbytes: int, workers: int) -> None:
    """Tells how much it is, and the cure."""
    warnings.warn(
        f"DataLoader worker {worker.id} (pid {worker.pid}) has copied {nbytes >> 20} MB of this "
        f"process's memory, and each of them may (num_workers={workers}): reading a Python object "
        "changes its reference count, which copies the page it is on. "
        "torch.utils.data.SharedList.pack(dataset) turns the dataset's large lists into shared "
        "memory that reading does not change. Forked workers that have no threads of their own "
        "share such copies by themselves. See docs/notes/data-loading.md",
        stacklevel=6,
    )
