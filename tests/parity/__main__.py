"""Compares taeda with PyTorch on PyTorch's own samples: `make parity N=200000`.

python -m tests.parity --calls 200000
python -m tests.parity --only linalg.svd --dtype float32 --sample 3 --mode gradient
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.parity import child, plan, report, runner
from tests.parity.child import Task


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--calls",
        type=int,
        help="make at least so many, if need be with other numbers and layouts than the databases' "
        "first; without it, each once. A call is one of a sample in one way that both frameworks "
        "made: those that PyTorch has not, or does not do, are not counted",
    )
    parser.add_argument("--seed", type=int, default=0, help="the order of what is called")
    parser.add_argument("--cycle", type=int, default=0, help="the numbers that are drawn first")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="a pattern that operators' names match")
    parser.add_argument("--dtype", default="", help="of one call")
    parser.add_argument("--sample", type=int, help="of one call")
    parser.add_argument("--mode", default="", help="a pattern of ways of calling: out, 'out.*'")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after these")
    parser.add_argument(
        "--write",
        type=Path,
        help="the results as JSON; with --only or --mode, they replace those in it",
    )
    parser.add_argument(
        "--merge", type=Path, help="such a JSON: call nothing, write what it says of --mode"
    )
    parser.add_argument(
        "--again",
        type=Path,
        help="a log: make only the calls that differed; with --write, what agrees now counts so",
    )
    parser.add_argument("--log", type=Path, help="each finding as it comes")
    parser.add_argument("--all", action="store_true", help="print what has a reason, too")
    return parser.parse_args()


def wanted(args: argparse.Namespace, tasks: list[Task]) -> list[Task]:
    if args.dtype:
        tasks = [task for task in tasks if task.dtype in (args.dtype, "")]
    if args.mode:
        wrong = {kind for kind, database in child.KINDS.items() if database.whole}
        out = {kind for kind in wrong if not re.fullmatch(args.mode, kind)}
        tasks = [
            t for t in tasks if t.kind not in out and (args.mode not in wrong or t.kind in wrong)
        ]
    if args.sample is not None:
        tasks = [replace(t, start=args.sample, count=1) for t in tasks]
    return tasks


def run(args: argparse.Namespace) -> runner.Results:
    results = runner.Results(log=open(args.log, "w") if args.log else None)
    end = time.time() + 60 * args.minutes
    if args.again:
        tasks = plan.again(args.again.read_text())
        tasks = [task for task in tasks if re.fullmatch(args.only or ".*", task.title)]
        runner.run(tasks, results, args.processes, stop=lambda: time.time() > end)
        return results
    for cycle in itertools.count(args.cycle):
        before = results.calls
        one_cycle(args, cycle, results, end)
        enough = args.calls is None or results.calls >= args.calls or args.sample is not None
        if enough or results.calls == before or time.time() > end:
            break
    return results


def one_cycle(args: argparse.Namespace, cycle: int, results: runner.Results, end: float) -> None:
    """The samples of which the numbers are drawn with one seed, until there are calls enough."""
    calls = args.calls or 1 << 60
    for number, tasks in enumerate(plan.rounds(args.seed, args.only, cycle)):
        done = results.exhausted
        tasks = [t for t in wanted(args, tasks) if (t.kind, t.entry, t.dtype, t.cycle) not in done]
        if not tasks or (number and args.sample is not None):
            return
        every = number == 0 and cycle == args.cycle  # the first round is made whole

        def stop(enough: int = 1 << 60 if every else calls) -> bool:
            return results.calls >= enough or time.time() > end

        runner.run(tasks, results, args.processes, args.mode, stop)
        if stop(calls):
            return


def main() -> int:
    args = parse()
    if args.merge:
        args.write.write_text(
            report.merged(args.write.read_text(), args.merge.read_text(), args.mode)
        )
        return 0
    begin = time.time()
    results = run(args)
    complete = not (args.only or args.mode or args.again)
    status = report.show(results, show_all=args.all, complete=complete)
    print(f"{time.time() - begin:.0f} s")
    if args.write and args.again:
        args.write.write_text(report.corrected(results, args.write.read_text()))
    elif args.write:
        part = (args.only or args.mode) and args.write.exists()
        before = args.write.read_text() if part else ""
        args.write.write_text(report.compact(results, before, args.mode))
    return status


if __name__ == "__main__":
    sys.exit(main())
