"""Damaged files to every reader: torch.load (zip, pickle, the old format) and safetensors.

    make fuzz-readers N=1000000 SEED=1

A loop of mutants (``mutate.py``) that keeps those which reach new lines of the readers, in forked
children. A reader may return or raise; it may not die, take over 5 s, take more memory than the
child may have, or do anything: that a file opens another, starts a process or compiles code is
noticed by an audit hook. Then the C++ reader, with libFuzzer where clang has it.
"""

from __future__ import annotations

import argparse
import io
import json
import mmap
import os
import random
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

from tests.fuzz import child, corpus, mutate
from tests.fuzz.runner import Child, Outcome

import taeda
from taeda import safetensors

ROOT = Path(__file__).resolve().parents[2]
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


def run_cpp(build: Path, files: int, seed: int, found: Path) -> int:
    """The C++ reader: libFuzzer's program where it was built, else the one with its own driver."""
    with tempfile.TemporaryDirectory() as folder:
        for i, data in enumerate(corpus.safetensors()):
            Path(folder, f"{i}.safetensors").write_bytes(data)
        guided = build / "fuzz_readers_libfuzzer"
        program = guided if guided.exists() else build / "fuzz_readers"
        command = [str(program), folder, f"-runs={files}", f"-seed={seed + 1}", "-max_len=4096"]
        command += [f"-artifact_prefix={found}/", "-timeout=5", "-rss_limit_mb=2048"]
        done = subprocess.run(command, capture_output=True, text=True)
    print(f"C++ readers ({program.name}): {done.stderr.strip().splitlines()[-1]}")
    if done.returncode:
        print(done.stderr[-4000:])
    return done.returncode


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
    failed = run_cpp(options.build.absolute(), options.files, options.seed, found)
    print(session.summary())
    return 1 if failed or sum(session.counts[k] for k in ("deaths", "hangs", "wrong")) else 0


if __name__ == "__main__":
    sys.exit(main())
