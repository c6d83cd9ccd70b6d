"""Where a process spends its time, by Linux's perf."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

FIELDS = re.compile(r"\s*(\d+)\s+(.*?)\s+\[.\]\s*(.*?)(\s+-)*\s*")


def require() -> None:
    if not shutil.which("perf"):
        sys.exit("perf (linux-perf) is needed")


def profile(pid: int, work: Callable[[], Any]) -> list[tuple[str, str, float]]:
    """Libraries and functions with their percentages of the processor's time that process `pid`
    and its threads take while `work()` runs, most first."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", data]
        recorder = subprocess.Popen([*record, "-p", str(pid)])
        try:
            work()
        finally:
            recorder.send_signal(2)
            recorder.wait()
        report = ["perf", "report", "-i", data, "--no-children", "-g", "none", "-w", "0,0,0"]
        # Counts: percentages are rounded, and each address of generated code is a line.
        report += ["-F", "sample,dso,symbol", "-t", "\t"]
        text = subprocess.check_output(report, text=True, stderr=subprocess.DEVNULL)
    lines = (FIELDS.fullmatch(line.replace("\t", "  ")) for line in text.splitlines())
    found = [(line[2], line[3], int(line[1])) for line in lines if line]
    total = sum(count for *_, count in found)
    return [(library, function, 100 * count / total) for library, function, count in found]
