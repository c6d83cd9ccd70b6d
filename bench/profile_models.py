"""Where the time of the models' steps goes: `python bench/profile_models.py`, with Linux's perf.

Samples a few steps of each model of bench/models on one thread, adds up functions that serve the
same purpose, and writes the shares into docs/notes/performance.md.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import re
import subprocess
import sys

import perf
from process import ROOT, pinned_python
from run import MODELS, machine
from table import replace_between

PAGE = ROOT / "docs" / "notes" / "performance.md"
# The first expression that finds something in "library: function" names the column.
PURPOSES = {
    "products": r"multiply_|gemv|dot_block|tile_fn",
    "packing": r"pack|gather_strided|: .*transpose<",
    "oneDNN": r"^\[JIT\]|libdnnl",
    "Winograd": r"transform_|winograd",
    "direct convolution": r"sum_taps|convolve|weight_gradient|WeightGradient|products_3x3"
    r"|[Uu]nfold",
    "pooling": r"pool|taps_max|find_f32|find_row|split_f32|pairs_(max|gradient)|of_pairs"
    r"|scatter_plane",
    "optimizer": r"(sgd|adam|rmsprop)_f\d|Rule>|foreach|fused_",
    "attention, softmax, loss": r"[Aa]ttention|(For|Back)ward::run|softmax|exp_|scores"
    r"|weigh_|loss|extreme",
    "norms, sums": r"moments|statistics|(layer|batch)_norm|train_rows|::rows|reduce|sum_"
    r"|add_piece|Rows<",
    "recurrent cells": r"recurrent|Layer<|Lstm|Gru",
    "elements": r"dense<|loop|copy|memmove|memset|fill|index|embed|gather|scatter|rearrange",
    "system": r"^\[kernel|malloc|int_free|unlink_chunk|pthread",
    "Python": r"^libpython|^python|_C\.cpython",
}


def purpose(line: str) -> str:
    found = (name for name, pattern in PURPOSES.items() if re.search(pattern, line))
    return next(found, "other")


def samples(model: str, seconds: int) -> dict[str, float]:
    """Shares of the processor's time by purpose, once the first steps are over."""
    serve = [
        *pinned_python(1),
        str(ROOT / "bench" / "models" / "worker.py"),
        "--serve",
        "--model",
        model,
    ]
    process = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout

    def run(steps: int) -> float:
        assert process.stdin and process.stdout
        process.stdin.write(f"{steps}\n")
        process.stdin.flush()
        return float(process.stdout.readline().split()[0])

    process.stdout.readline()
    run(2)
    steps = max(1, round(seconds / run(1)))
    taken = perf.profile(process.pid, lambda: run(steps))
    process.stdin.close()
    process.wait()
    shares: dict[str, float] = collections.defaultdict(float)
    for library, function, share in taken:
        shares[purpose(f"{library}: {function}")] += share
    return shares


def table(found: dict[str, dict[str, float]]) -> str:
    columns = [*PURPOSES, "other"]
    lines = [
        f"{datetime.date.today()}, {machine()}, one thread; percent of the samples of a step.",
        "",
        "| | " + " | ".join(columns) + " |",
        "|---" + "|---:" * len(columns) + "|",
    ]
    for model, shares in found.items():
        cells = (f"{shares[c]:.0f}" if shares[c] >= 0.5 else "" for c in columns)
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", action="append", choices=MODELS, help="default: all, and write")
    parser.add_argument("--seconds", type=int, default=10)
    args = parser.parse_args()
    perf.require()
    found = {}
    for model in args.only or MODELS:
        found[model] = samples(model, args.seconds)
        shares = sorted(found[model].items(), key=lambda item: -item[1])
        print(model, ", ".join(f"{name} {share:.0f}" for name, share in shares), flush=True)
    if not args.only:
        PAGE.write_text(replace_between(PAGE.read_text(), "profile", table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
