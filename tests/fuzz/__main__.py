"""Odd arguments to everything public: a result or a Python exception, soon, and never a signal.

    make fuzz N=1000000 SEED=1
    python -m tests.fuzz --calls 5000 --framework torch

Children of a few hundred calls run what ``programs.py`` makes of the operator table and of the
package's public names. A child that dies or hangs costs its batch one call: the call is named, made
small, and the rest goes on. The last line has the counts; the exit status is 0 when all is well.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections import Counter

from tests.fuzz.names import collect
from tests.fuzz.programs import header
from tests.fuzz.runner import Finding, Run
from tests.fuzz.shrink import shrink


def show(finding: Finding, framework: str, small: bool) -> None:
    print(f"\n{finding.kind}: {finding.cause} in {finding.target}")
    print(
        f"  seed {finding.seed}, batch {finding.batch}{'' if small else ', not reproduced alone'}"
    )
    shown = finding.programs if len(finding.programs) < 20 else finding.programs[-1:]
    text = header(framework) + "\n".join(p.text for p in shown)
    print("\n".join(f"    {line}" for line in text.splitlines()))
    if finding.output.strip():
        print("\n".join(f"  | {line}" for line in finding.output.splitlines()[:20]))
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=300, help="calls of one child")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--framework", choices=["taeda", "torch"], default="taeda")
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()

    torch = importlib.import_module(options.framework)
    torch.set_num_threads(1)
    square = torch.ones(64, 64, dtype=torch.float64)
    square @ square  # OpenBLAS ends the process when it finds no room for its buffers later
    run = Run(torch, collect(torch), options.seed, options.batch, options.jobs)
    start = time.monotonic()
    run.run(options.calls, options.first)
    seen: Counter[tuple[str, str]] = Counter()
    for finding in run.findings:
        key = (finding.kind, finding.target)
        seen[key] += 1
        if seen[key] == 1:
            small = finding.kind == "wrong message"
            if not small and not options.no_shrink:
                small = shrink(finding, options.framework)
            show(finding, options.framework, small)
    for (kind, target), count in seen.items():
        if count > 1:
            print(f"{kind} in {target}: {count} times")
    print(f"{time.monotonic() - start:.0f} s, {options.jobs} processes")
    print(run.summary(), flush=True)
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
