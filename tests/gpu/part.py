"""One part of tests/gpu/run.py, in a process: `python -m tests.gpu.part bars --out FILE`.

Rows are written as they come, a JSON object a line, so that a part which is killed or loses the
device has said what it found before; the last line has the kernels that it loaded.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.gpu.rows import Settings  # noqa: E402

NAMES = "first_call bars traces graphs figures randoms parity cases sanitizers".split()


def rival() -> str:
    """The device of a PyTorch that can be compared with: "" for none."""
    if named := os.environ.get("TAEDA_GPU_RIVAL"):  # for tests without a card: "cpu"
        return named
    try:
        import torch
    except ImportError:
        return ""
    return "cuda" if torch.cuda.is_available() else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true", help="small sizes")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--report", type=Path, help="the folder of pictures")
    args = parser.parse_args()
    until = time.monotonic() + args.seconds
    settings = Settings(args.simulated, until, args.only, rival(), args.report)
    part = importlib.import_module(f"tests.gpu.{args.name}")
    import taeda

    with args.out.open("w") as out:
        for row in part.rows(settings):
            print(json.dumps(asdict(row)), file=out, flush=True)
        loaded = {*taeda._C._cuda_loaded_kernels(0), *getattr(part, "kernels", ())}
        print(json.dumps({"kernels": sorted(loaded)}), file=out)


if __name__ == "__main__":
    main()
