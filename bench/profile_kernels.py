"""Where the time of kernels that miss their target goes: `python bench/profile_kernels.py`.

Runs, under Linux's perf, each case that missed its target in the last run of bench/run.py's suite
`kernels`, and writes the functions that take the most into docs/notes/kernel-profiles.md.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import re

import kernel_cases
import perf
import table
from process import ROOT, Worker
from run import RAW, machine
from worker import TARGET

PAGE = ROOT / "docs" / "notes" / "kernel-profiles.md"
MOST = 4  # functions of a row
LEAST = 4.0  # percent that a function must take to be named
SECONDS = 1.0


def without_arguments(name: str) -> str:
    """A demangled name without what stands in brackets of any kind: types, arguments, scopes'."""
    name = name.replace("(anonymous namespace)", "")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "", name)) != name:
        name = shorter
    return name


def plain(library: str, function: str) -> str:
    """A function in words short enough for a table: without types, arguments and namespaces."""
    if "libdnnl" in library or library.startswith("[JIT]"):
        return "oneDNN"
    if "openblas" in library:
        return "OpenBLAS"
    if library.startswith("[kernel"):
        return "the system"
    if function.endswith("_M_run") or "_M_run()" in function:  # a thread of the pool
        return "waiting for work"
    if library.startswith(("libpython", "python")):
        return "Python"
    if pointwise := re.search(r"\bLoad_(\w+)", function):  # the table's name of the operator
        return f"`{pointwise[1]}`"
    words = [w for w in re.split(r"[:\s]+", without_arguments(function)) if w]
    words = [w for w in words if w not in {"const", "clone", ".isra.0", ".constprop.0"}]
    name = words[-1] if words else function
    if name.startswith("operator") or name in {"_FUN", "call", "run"}:
        name = "::".join(words[-2:])
    return f"`{name}`"


def shares(worker: Worker, name: str) -> str:
    loops = worker.ask("kernels", name, 0)
    assert isinstance(loops, float), loops
    loops = max(1, round(loops * SECONDS / TARGET))
    found: dict[str, float] = collections.defaultdict(float)
    taken = perf.profile(worker.process.pid, lambda: worker.ask("kernels", name, loops))
    for library, function, share in taken:
        found[plain(library, function)] += share
    first = sorted(found.items(), key=lambda item: -item[1])[:MOST]
    return ", ".join(f"{what} {share:.0f} %" for what, share in first if share >= LEAST)


def missing(rows: list[table.Row]) -> list[tuple[str, int]]:
    """Names and threads of the cases that miss their target; of a pair that does, the first."""
    missed = [r for r in rows if "error" not in r and table.misses("kernels", r)]
    names = [(kernel_cases.PAIRS.get(r["name"], (r["name"],))[0], r["threads"]) for r in missed]
    return list(dict.fromkeys(names))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", help="only those whose name this expression finds; not written")
    args = parser.parse_args()
    perf.require()
    lines = []
    workers: dict[int, Worker] = {}
    raw = RAW / "benchmarks.json"
    if not raw.exists():
        parser.error("first run bench/run.py --suite kernels: it finds what misses")
    results = json.loads(raw.read_text())
    for name, threads in missing(results["kernels"]["rows"]):
        if args.cases and not re.search(args.cases, name):
            continue
        if threads not in workers:
            workers[threads] = Worker("taeda", threads)
        lines.append(f"| {name} | {threads} | {shares(workers[threads], name)} |")
        print(lines[-1], flush=True)
    for worker in workers.values():
        worker.close()
    if not args.cases:
        head = f"{datetime.date.today()}, {machine()}; percent of the samples of all threads."
        body = "\n".join(
            [head, "", "| | threads | where its time goes |", "|---|---:|---|", *lines]
        )
        PAGE.write_text(table.replace_between(PAGE.read_text(), "profile", body))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
