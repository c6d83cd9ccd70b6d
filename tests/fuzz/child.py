"""Runs programs, or other work, in a forked child; the parent sees in shared memory how far it is.

The child may die of any of them. The parent then knows which one, from the number that was written
before it began.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.children import limit_child
from tests.fuzz.programs import Program

MEMORY_BYTES = 3 << 29  # huge sizes fail unfilled
FILE_BYTES = 1 << 26
BAD_TEXTS = (
    *["unknown C++ exception", "std::", "vector::", "basic_string", "map::at", "bad_alloc"],
    *["INTERNAL ASSERT", "bug in PyTorch", "without a Python exception", "error return without"],
)
# A mistake of the framework's own, not of the caller.
BAD_TYPES = (SystemError, NameError, RecursionError)
SILENT = (StopIteration, KeyError, MemoryError, AssertionError, NotImplementedError, SystemExit)


class Progress:
    """Counters in shared memory: the program that runs, and how many ended how."""

    LAYOUT = struct.Struct("qqqd")

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4096)
        self.write(-1, 0, 0, 0.0)

    def write(self, current: int, results: int, exceptions: int, cpu: float) -> None:
        self.LAYOUT.pack_into(self.memory, 0, current, results, exceptions, cpu)

    def read(self) -> tuple[int, int, int, float]:
        return self.LAYOUT.unpack_from(self.memory, 0)


def wrong(error: BaseException) -> bool:
    """Whether an exception says nothing that the caller could use."""
    text = str(error)
    if isinstance(error, BAD_TYPES) or any(bad in text for bad in BAD_TEXTS):
        return True
    return not text and not isinstance(error, SILENT)


def namespace(framework: str) -> dict[str, Any]:
    import copy
    import io
    import pickle

    import numpy as np

    torch = sys.modules[framework]
    return {"torch": torch, "np": np, "io": io, "copy": copy, "pickle": pickle}


def restore(torch: ModuleType) -> None:
    """Undoes what one call may change for all that follow."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def limit(torch: ModuleType) -> None:
    torch.set_num_threads(1)
    limit_child(memory=MEMORY_BYTES, file_bytes=FILE_BYTES)


def run(framework: str, programs: list[Program], progress: Progress, report: int) -> None:
    """Runs all programs; lines of JSON go to the descriptor `report`."""
    torch = sys.modules[framework]
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    limit(torch)
    results = exceptions = 0
    reached = []
    for i, program in enumerate(programs):
        progress.write(i, results, exceptions, time.process_time())
        try:
            restore(torch)
            exec(compile(program.text, "<program>", "exec"), namespace(framework))
            results += 1
            reached.append(program.target)
        except BaseException as error:  # any Python exception is an answer
            exceptions += 1
            if wrong(error):
                found = {"wrong": i, "error": f"{type(error).__name__}: {error}"[:400]}
                os.write(report, (json.dumps(found) + "\n").encode())
    progress.write(len(programs), results, exceptions, time.process_time())
    os.write(report, (json.dumps({"reached": sorted(set(reached))}) + "\n").encode())


def spawn(work: Callable[[int], None]) -> tuple[int, Any]:
    """Calls work(descriptor of the report) in a child, in an empty folder. Returns the process id,
    and the file of its report, its output and its stderr."""
    log = tempfile.TemporaryFile()
    pid = os.fork()
    if pid:
        return pid, log
    faulthandler.disable()  # pytest's writes to the terminal
    status = 70
    try:
        with tempfile.TemporaryDirectory() as folder:  # calls may write files named by themselves
            os.chdir(folder)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            work(log.fileno())
            os.chdir("/")
            status = 0
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
