"""Runs the C++ tests (GoogleTest) and the Python tests (pytest) and adds up their counts.

Each folder of tests is a job, a process of its own; as many jobs run at once as there are cores, up
to four. Lines begin with the name of their job.

The last line printed reads `N passed, N failed`, followed by `, N skipped` where tests were
skipped; the exit status is 0 only when nothing failed and something passed. A test program that
dies without a report counts as one failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nvrtc import find_library

ROOT = Path(__file__).resolve().parent.parent
# pytest's own closing line, which would compete with ours.
PYTEST_SUMMARY = re.compile(
    r"^=*\s*(\d+ (passed|failed|skipped|errors?)|no tests ran).* in [\d.]+s"
)
# What runs under the sanitizers, which make Python some five times slower: under that of addresses
# all that reaches C++, under that of threads what has threads.
SANITIZED = {
    "address": "tests/smoke tests/python tests/autograd tests/ops tests/nn tests/fuzz tests/io "
    "tests/threads tests/optim tests/func tests/data tests/multiprocessing".split(),
    "thread": "tests/threads tests/ops/test_random_threads.py tests/autograd/test_backward.py "
    "tests/bench/test_models.py tests/multiprocessing".split(),
}
# What runs once more, or only, with simulated CUDA devices: the driver is chosen once a process.
SIMULATED = (
    "tests/device/simulated tests/ops/test_grid.py tests/autograd tests/nn tests/optim "
    "--device=cuda"
).split()
# What sets deadlines for processes that it ends: nothing runs beside these.
ALONE = ("data", "multiprocessing", "threads")
# What runs once more with TAEDA_CPU=baseline: kernels whose tiles and panels follow the vectors.
BASELINE_CPP = (
    "Gemm.*:Convolution.*:Loop.*:Copy.*:Reduce.*:Softmax.*:Sort.*:Scan.*:Random.*:FusedStep*"
)
BASELINE = "tests/ops/test_conv.py tests/ops/test_lapack_blocks.py tests/ops/test_pool.py".split()
BASELINE_ENVIRONMENT = {"TAEDA_CPU": "baseline"}
# What runs with kernels for CUDA that are built with the sanitizers, in an ordinary build.
EMULATED = ["tests/device/simulated"]
# Highway has no vectors under the thread sanitizer: last bits and chosen algorithms differ.
LEFT_OUT = {
    "address": "",
    "thread": "-Convolution.WinogradIsChosen:Random.SameNumbersAsTorch:*Dense.ElementaryFunctions*",
}
# PyTorch's threads are not instrumented, and full widths take minutes.
DESELECTED = {"address": "", "thread": "not as_in_pytorch and not full_width and not million"}


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


@dataclass
class Job:
    name: str
    run: Callable[[str], Counts]  # given what its lines begin with
    alone: bool = False


def died(what: str, status: int) -> Counts:
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    return Counts(failed=1, failures=[f"{what} {how} without a report"])


def lines_of(command: list[str], env: dict[str, str], prefix: str) -> int:
    """Runs a command and prints its lines; its exit status."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if not PYTEST_SUMMARY.match(line):
            print(f"{prefix}{line}", end="", flush=True)
    return process.wait()


def run_gtest(build: Path, env: dict[str, str], names: str, program: str, prefix: str) -> Counts:
    binary = build / program
    if not binary.exists():
        return Counts(failed=1, failures=[f"{binary.name} was not built"])
    report = build / "test-results" / f"{program}{'.some' if names else ''}.json"
    report.unlink(missing_ok=True)
    # libtaeda looks for NVRTC beside an installed taeda, which a build is not.
    if compiler := find_library():
        folders = [str(compiler.parent), *filter(None, [env.get("LD_LIBRARY_PATH")])]
        env = env | {"LD_LIBRARY_PATH": os.pathsep.join(folders)}
    command = [str(binary), f"--gtest_output=json:{report}", "--gtest_brief=1"]
    if names:
        command.append(f"--gtest_filter={names}")
    status = lines_of(command, env, prefix)
    if not report.exists():
        return died(binary.name, status)
    counts = Counts()
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            name = f"{suite['name']}.{case['name']}"
            if case.get("failures"):
                counts.failed += 1
                counts.failures.append(f"C++ {name}")
            elif case.get("result") == "SKIPPED":
                counts.skipped += 1
            elif case.get("status") == "RUN":
                counts.passed += 1
    if status != 0 and counts.failed == 0:
        counts.add(died(binary.name, status))
    return counts


def run_pytest(
    build: Path, env: dict[str, str], paths: list[str], extra: list[str], name: str, prefix: str
) -> Counts:
    report = build / "test-results" / f"{name.replace('/', '.')}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *extra, *paths]
    status = lines_of(command, env, prefix)
    if not report.exists():
        return died(f"pytest of {name}", status)
    counts = Counts()
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            counts.failed += 1
            counts.failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" in outcomes:
            counts.skipped += 1
        else:
            counts.passed += 1
    # 5 means that pytest found no test, which the C++ tests may make up for.
    if status not in (0, 5) and counts.failed == 0:
        counts.add(died(f"pytest of {name}", status))
    return counts


def folders_of(path: Path) -> list[str]:
    """The folders of tests, those with most text first: they take longest."""
    sizes = {
        folder: sum(file.stat().st_size for file in folder.rglob("*.py"))
        for folder in path.iterdir()
        if any(folder.rglob("test_*.py"))
    }
    return [str(f.relative_to(ROOT)) for f in sorted(sizes, key=lambda f: -sizes[f])]


def run_jobs(jobs: list[Job]) -> Counts:
    """As many at once as there are cores, up to four; then what runs alone."""

    def timed(job: Job) -> Counts:
        start = time.monotonic()
        counts = job.run(f"{job.name}: " if len(jobs) > 1 else "")
        if len(jobs) > 1:
            print(f"{job.name}: {time.monotonic() - start:.0f} s", flush=True)
        return counts

    total = Counts()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as lanes:
        for counts in lanes.map(timed, [job for job in jobs if not job.alone]):
            total.add(counts)
    for job in jobs:
        if job.alone:
            total.add(timed(job))
    return total


def test_environment(build: Path, sanitizer: str | None) -> dict[str, str]:
    env = dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
    env["PYTHONUTF8"] = "1"  # tests and the project's files hold more than ASCII, in every locale
    if sanitizer:
        env["ASAN_OPTIONS"] = (
            "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1:max_allocation_size_mb=1536"
        )
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
        # Locks that are held over a fork look like deadlocks; children compute after it.
        env["TSAN_OPTIONS"] = (
            "detect_deadlocks=0:die_after_fork=0:halt_on_error=1:second_deadlock_stack=1"
            ":allocator_may_return_null=1:max_allocation_size_mb=1536"
            f":suppressions={ROOT / 'tools' / 'tsan.supp'}"
        )
        # One block from the system for each tensor, so that overruns and use after free are seen.
        env["TAEDA_ALLOCATOR"] = "system"
        env["TAEDA_SANITIZER"] = sanitizer
    return env


def sanitizer_libraries(sanitizer: str) -> str:
    """What an uninstrumented Python must load first."""
    names = {"address": ["libasan.so", "libubsan.so"], "thread": ["libtsan.so"]}[sanitizer]
    names = [*names, "libstdc++.so"]
    paths = [
        subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip()
        for name in names
    ]
    return ":".join(paths)


def jobs_of(args: argparse.Namespace, build: Path) -> Iterator[Job]:
    """What there is to run, what takes longest first."""
    env = test_environment(build, args.sanitize)
    extra = [option for option in args.rest if option.startswith("-")]
    named = [path for path in args.rest if not path.startswith("-")]

    def cpp(name: str, names: str, program: str = "taeda_tests", **more: str) -> Job:
        return Job(name, partial(run_gtest, build, env | more, names, program))

    def python(name: str, paths: Iterable[str], **more: str) -> Job:
        run = partial(run_pytest, build, env | more, [*paths], extra, name)
        return Job(name, run, alone=Path(name).name in ALONE)

    if args.emulator:
        extra += ["-x"]
        env |= {"TAEDA_EMULATOR": "libtaeda_emulator_asan.so", "ASAN_OPTIONS": "detect_leaks=0"}
        env |= {"TAEDA_CUDA": "sim:2", "LD_PRELOAD": sanitizer_libraries("address")}
        yield python("emulated", named or EMULATED)
        return
    whole = not (args.only or args.sanitize or named)
    if args.only != "python":
        program = "taeda_core_tests" if args.only == "core" else "taeda_tests"
        yield cpp("C++", LEFT_OUT.get(args.sanitize, ""), program)
        if whole:
            yield cpp("C++ baseline", BASELINE_CPP, **BASELINE_ENVIRONMENT)
    if args.only not in ("cpp", "core"):
        if args.sanitize:
            env["LD_PRELOAD"] = sanitizer_libraries(args.sanitize)
            if left_out := DESELECTED[args.sanitize]:
                extra += ["-k", left_out]
        if not named and args.sanitize != "thread":
            yield python("simulated", SIMULATED, TAEDA_CUDA="sim:2")
        if named:
            yield python("pytest", named)
        elif args.sanitize:
            for path in SANITIZED[args.sanitize]:
                if (ROOT / path).exists():
                    yield python(path, [path])
        else:
            for path in folders_of(ROOT / "tests"):
                yield python(path, [path])
            yield python("baseline", BASELINE, **BASELINE_ENVIRONMENT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--sanitize", choices=list(SANITIZED), help="what the build has in it")
    parser.add_argument("--emulator", choices=["address"], help="sanitize kernels for CUDA only")
    parser.add_argument("--only", choices=["cpp", "python", "core"])
    parser.add_argument("rest", nargs="*", help="paths and options for pytest")
    args = parser.parse_args()
    build = args.build.resolve()
    (build / "test-results").mkdir(parents=True, exist_ok=True)
    total = run_jobs([*jobs_of(args, build)])
    for name in total.failures:
        print(f"FAILED {name}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
