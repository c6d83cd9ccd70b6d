"""Damaged files to every reader: torch.load (zip, pickle, the old format) and safetensors.

    make fuzz-readers N=1000000 SEED=1

A loop of mutants (``mutate.py``) that keeps those which reach new lines of the readers, in forked
children. A reader may return or raise; it may not die, take over 5 s, take more memory than the
child may have, or do anything: that a file opens another, starts a process or compiles code is
noticed by an audit hook. Then the programs of ``cmake/fuzz.cmake``, with libFuzzer where clang has
it: the C++ reader of safetensors, and an interpreter in which the C++ unpickler reads pickles and
`load` whole archives.
"""

from __future__ import annotations

import argparse
import io
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from tests.children import ENVIRONMENT, ROOT
from tests.fuzz import child, corpus, embedded, mutate
from tests.fuzz.runner import Child, Outcome

import taeda
from taeda import safetensors

READERS = (os.sep + "serialization" + os.sep, "safetensors.py")
# What a file must not make happen.
FORBIDDEN = ("open", "os.", "subprocess.", "socket.", "shutil.", "exec", "compile", "ctypes.")
BATCH = 500
KEPT = 400  # files beside the honest ones


class Shared:
    """The file that is being read, for the parent to see."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 1 << 22)

    def put(self, data: bytes) -> None:
        struct.pack_into("<Q", self.memory, 0, len(data))
        self.memory[8 : 8 + len(data)] = data

    def get(self) -> bytes:
        (length,) = struct.unpack_from("<Q", self.memory)
        return self.memory[8 : 8 + length]


class Lines:
    """Which lines of the readers have run, with the line before each."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int, int]] = set()
        self.last = 0

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        if not any(part in frame.f_code.co_filename for part in READERS):
            return None
        self.seen.add((hash(frame.f_code), self.last, frame.f_lineno))
        self.last = frame.f_lineno
        return self.trace


def read(data: bytes) -> Any:
    if data[8:9] in (b"{", b"[") or data[:1] == b"\0":
        return safetensors.load(data)
    return taeda.load(io.BytesIO(data))


class Audit:
    """Events of Python's audit hooks while a file is read."""

    def __init__(self) -> None:
        self.reading = False
        self.events: list[str] = []
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple) -> None:
        if self.reading and event.startswith(FORBIDDEN):
            self.events.append(f"{event}{args!r}"[:200])


def explore(
    files: list[bytes], seed: str, count: int, shared: Shared, progress: child.Progress, report: int
) -> None:
    """The work of one child: `count` mutants of `files` and of what came of them."""
    warnings.simplefilter("ignore")
    child.limit(taeda)
    rng, lines, audit = random.Random(seed), Lines(), Audit()
    for data in files:  # what they reach is no news
        sys.settrace(lines.trace)
        try:
            read(data)
        except Exception:
            pass
        sys.settrace(None)
    results = exceptions = 0
    for i in range(count):
        data = mutate.mutant(rng, rng.choice(files))[: 1 << 21]
        shared.put(data)
        progress.write(i, results, exceptions, time.process_time())
        known, found = len(lines.seen), ""
        small = len(data) < 1 << 16  # tracing takes fifty times as long as reading
        audit.reading, audit.events = True, []
        sys.settrace(lines.trace if small else None)
        try:
            read(data)
            results += 1
        except BaseException as error:  # judged below
            exceptions += 1
            if child.wrong(error) or not isinstance(error, Exception):
                found = f"{type(error).__name__}: {error}"
        sys.settrace(None)
        audit.reading = False
        if audit.events:
            found = f"the file made this happen: {audit.events[0]}"
        if found:
            note = {"wrong": i, "error": found[:400], "file": data.hex()}
            os.write(report, (json.dumps(note) + "\n").encode())
        if len(lines.seen) > known and small:
            files.append(data)
            os.write(report, (json.dumps({"kept": data.hex()}) + "\n").encode())
    progress.write(count, results, exceptions, time.process_time())


class Session:
    def __init__(self, seed: int, found: Path):
        self.seed, self.found = seed, found
        self.honest = corpus.archives() + corpus.legacy() + corpus.safetensors()
        self.kept: list[bytes] = []
        self.counts: Counter[str] = Counter()

    def run(self, files: int) -> None:
        for number in range((files + BATCH - 1) // BATCH):
            shared = Shared()
            rng = random.Random(f"{self.seed} {number}")
            seeds = self.honest + rng.sample(self.kept, min(60, len(self.kept)))
            size = min(BATCH, files - number * BATCH)

            work = partial(explore, seeds, f"{self.seed} {number}", size, shared)
            self.take(Child(work).wait(), shared, size)

    def take(self, outcome: Outcome, shared: Shared, size: int) -> None:
        self.counts["files"] += min(outcome.at + 1, size)
        self.counts["loaded"] += outcome.results
        self.counts["exceptions"] += outcome.exceptions
        for line in outcome.notes:
            note = json.loads(line)
            if "kept" in note:
                self.kept.append(bytes.fromhex(note["kept"]))
            else:
                self.note("wrong", note["error"], bytes.fromhex(note["file"]))
        random.Random(self.seed).shuffle(self.kept)
        del self.kept[KEPT:]
        if outcome.cause:
            print(outcome.output)
            kind = "hangs" if outcome.cause == "hang" else "deaths"
            self.note(kind, outcome.cause, shared.get())

    def note(self, kind: str, what: str, data: bytes) -> None:
        self.counts[kind] += 1
        path = self.found / f"{kind}-{self.counts[kind]}.bin"
        path.write_bytes(data)
        print(f"{kind}: {what}; the file: {path}", flush=True)

    def summary(self) -> str:
        kinds = ("files", "loaded", "exceptions", "deaths", "hangs", "wrong")
        counts = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in kinds)
        return f"Python readers: {counts}; seed {self.seed}"


# The fuzz programs: name of the run -> (program, its reader, the largest file).
PROGRAMS = {
    "safetensors in C++": ("fuzz_readers", "safetensors", 4096),
    "pickle": ("fuzz_embedded", "pickle", 4096),
    "archive": ("fuzz_embedded", "archive", 16384),
    "safetensors": ("fuzz_embedded", "safetensors", 4096),
}
# libFuzzer's programs have sanitizers, under which all takes longer.
LIMITS = {True: ["-timeout=20", "-rss_limit_mb=3072"], False: ["-timeout=5", "-rss_limit_mb=1536"]}


def kind_of_end(output: str) -> str:
    """What it was that ended a fuzz program."""
    if "the file made this happen" in output:
        return "executed"
    if "runtime error: " in output or "AddressSanitizer: " in output:
        return "sanitizer report"
    if "wrong exception" in output:
        return "wrong exception"
    return "hang" if "timeout" in output or "SIGPROF" in output else "crash"


def run_program(name: str, build: Path, files: int, seed: int, found: Path) -> bool:
    """Runs a fuzz program, libFuzzer's where it was built, and says how it ended."""
    target, reader, largest = PROGRAMS[name]
    guided = build / f"{target}_libfuzzer"
    program = guided if guided.exists() else build / target
    if not program.exists():
        print(f"{name}: {target} is not built, since this Python cannot be embedded")
        return True
    artifacts = found / name.replace(" ", "-")
    artifacts.mkdir(exist_ok=True)
    environment = {
        **ENVIRONMENT,
        "TAEDA_FUZZ_READER": reader,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_abort=1",
    }
    if program == guided:  # each object and storage is a block that the sanitizer guards
        environment.update(PYTHONMALLOC="malloc", TAEDA_ALLOCATOR="system")
    with tempfile.TemporaryDirectory() as folder:
        embedded.write_corpus(reader, folder)
        command = [str(program), folder, f"-runs={files}", f"-seed={seed + 1}"]
        command += [f"-max_len={largest}", *LIMITS[program == guided], "-detect_leaks=0"]
        command += [f"-artifact_prefix={artifacts}/", "-verbosity=1"]
        if reader == "safetensors":
            command.append(f"-dict={Path(__file__).parent / 'safetensors.dict'}")
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        last = done.stderr.strip().splitlines()[-1]
        print(f"{name} ({program.name}): {last}; 0 crashes, 0 hangs, 0 reports, 0 executed")
        return True
    if done.returncode == -signal.SIGPROF:
        done.stderr += "SIGPROF"
    print(done.stderr[-6000:])
    print(f"{name} ({program.name}): {kind_of_end(done.stderr)}; the file is in {artifacts}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--found", type=Path, help="folder for files that were too much")
    options = parser.parse_args()
    found = (options.found or options.build / "fuzz-found").absolute()
    found.mkdir(parents=True, exist_ok=True)
    session = Session(options.seed, found)
    session.run(options.files)
    build = options.build.absolute()
    ends = [run_program(n, build, options.files, options.seed, found) for n in PROGRAMS]
    print(session.summary())
    return 1 if not all(ends) or sum(session.counts[k] for k in ("deaths", "hangs", "wrong")) else 0


if __name__ == "__main__":
    sys.exit(main())
