"""A pytest plugin that writes each test's outcome to a file as it goes: `-p outcomes`.

OUTCOMES names the file, a JSON object a line: {"test": id, "outcome": ..., "error": ...}. A test
that has a line already is not run again, so that a run that a test has ended goes on after it: what
began and has no end there counts as a crash. LIMIT is the number of seconds of the processor that a
test may take, SHARE the percentage of the tests that are run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zlib

import pytest

FILE = os.environ["OUTCOMES"]
LIMIT = int(os.environ.get("LIMIT", "60"))
SHARE = int(os.environ.get("SHARE", "100"))


class TooLong(BaseException):
    """Not an Exception, which the test might catch."""


def write(test: str, outcome: str, error: str = "") -> None:
    with open(FILE, "a") as stream:
        stream.write(json.dumps({"test": test, "outcome": outcome, "error": error[:300]}) + "\n")


def written() -> set[str]:
    if not os.path.exists(FILE):
        return set()
    with open(FILE) as stream:
        return {json.loads(line)["test"] for line in stream}


def last_line(report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message if crash else str(report.longrepr)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0 if crash else -1] if lines else ""


def define_names_for_torchvision() -> None:
    """torchvision's compiled part is for another PyTorch: these names are enough to import it."""
    import torch

    if "taeda" not in sys.modules:
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float threshold) -> Tensor"
            )


define_names_for_torchvision()  # before a conftest.py imports it


def pytest_collection_modifyitems(items):
    done = written()
    drawn = [item for item in items if zlib.crc32(item.nodeid.encode()) % 100 < SHARE]
    items[:] = [item for item in drawn if item.nodeid not in done]


def pytest_collectreport(report):
    if report.failed and report.nodeid not in written():
        write(report.nodeid, "collection", last_line(report))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    def stop(signum, frame):
        raise TooLong(f"longer than {LIMIT} s")

    write(item.nodeid, "began")
    timers = [
        (signal.SIGPROF, signal.ITIMER_PROF, LIMIT),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * LIMIT),
    ]
    for number, timer, seconds in timers:
        signal.signal(number, stop)
        signal.setitimer(timer, seconds)
    yield
    for _, timer, _ in timers:
        signal.setitimer(timer, 0)


def pytest_runtest_logreport(report):
    if report.failed:
        write(report.nodeid, "failed", last_line(report))
    elif report.skipped:
        write(report.nodeid, "skipped")
    elif report.when == "call":
        write(report.nodeid, "passed")
