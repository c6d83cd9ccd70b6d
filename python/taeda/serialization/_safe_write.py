"""Replacing a file so that a crash at any moment leaves the old one or the new one, and no litter.

The content goes to a file without a name where the file system has those (O_TMPFILE); it gets the
name ``.NAME.RANDOM.tmp`` only when it is complete, just before it is renamed to NAME. Elsewhere it
has that name from the start. Writers hold a lock on their file, so a later save to the same NAME
knows which of such files a killed process left behind, and removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import stat
from collections.abc import Callable
from typing import IO

__all__ = ["write_safely"]


def write_safely(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Calls ``write(file)`` on a new file and puts it in the place of ``path``, synced."""
    path = os.path.realpath(path)  # a link stays a link
    try:
        mode: int | None = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device has no "beside"
        with open(path, "wb") as file:
            write(file)
        return
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    prefix = os.path.join(folder, f".{name[:200]}.")
    _remove_litter(prefix)
    temporary = f"{prefix}{secrets.token_hex(6)}.tmp"
    try:
        with _open_beside(folder, temporary) as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if not os.path.exists(temporary):
                _give_name(file.fileno(), temporary)
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _open_beside(folder: str, temporary: str) -> IO[bytes]:
    """A locked new file in ``folder``: without a name where that is possible."""
    try:
        handle = os.open(folder or ".", os.O_TMPFILE | os.O_WRONLY, 0o666)
        if not os.path.exists(f"/proc/self/fd/{handle}"):
            os.close(handle)
            raise OSError("no way to name it later")
        file: IO[bytes] = os.fdopen(handle, "wb")
    except (OSError, AttributeError):
        file = open(temporary, "xb")
    _lock(file.fileno())
    return file


def _give_name(handle: int, path: str) -> None:
    # Only with a folder given does os.link follow the link in /proc to the file.
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        os.link(str(handle), path, src_dir_fd=folder)
    finally:
        os.close(folder)


def _lock(handle: int) -> bool:
    """Whether this process holds the file now; file systems without locks count as held."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _remove_litter(prefix: str) -> None:
    """Removes what writers of the same file left behind that are not at work any more."""
    for path in glob.glob(glob.escape(prefix) + "*.tmp"):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        except OSError:
            pass  # somebody is writing it, or there are no locks here
        finally:
            os.close(handle)


def _sync_folder(folder: str) -> None:
    """Makes the renaming itself durable, where the system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
