"""A file that says that some process is at work."""

from __future__ import annotations

import os
import time
import warnings

__all__ = ["FileBaton"]


class FileBaton:
    """A lock between processes, by a file that one of them makes.

    Args:
        wait_seconds: how often ``wait`` looks.
        warn_after_seconds: when ``wait`` warns that it takes long.
    """

    def __init__(
        self,
        lock_file_path: str,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool | None:
        """Whether the lock is now ours."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Returns when the file is gone."""
        start, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            late = self.warn_after_seconds is not None and not warned
            if late and time.monotonic() - start > (self.warn_after_seconds or 0):
                warned = True
                warnings.warn(
                    f'Waited on lock file "{self.lock_file_path}" for '
                    f"{self.warn_after_seconds} seconds.",
                    stacklevel=2,
                )

    def release(self) -> None:
        """Gives the lock back."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
