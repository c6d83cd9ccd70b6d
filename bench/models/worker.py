"""Trains the models under one framework.

    python bench/models/worker.py --framework taeda --model gpt --steps 10   # time and losses
    python bench/models/worker.py --framework torch --check 5   # small sizes, all models
    python bench/models/worker.py --framework taeda --check 20 --model gpt --full --batch 1
    python bench/models/worker.py --framework torch --model gpt --serve      # for bench/run.py

`--check N` prints, a JSON line a model, the initial weights' hash, the first N losses and the hash
of the weights after them. `--serve` answers a number of steps on standard input with the seconds
they took, the most memory that the process ever held, from /proc, in megabytes, and the page faults
during the steps.
"""

import argparse
import gc
import hashlib
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def peak_megabytes():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def seconds(workload, steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = workload.step()
    loss.item()
    return time.perf_counter() - start


def digest(model):
    state = hashlib.sha256()
    for name, value in model.state_dict().items():
        state.update(name.encode() + value.float().numpy().tobytes())
    return state.hexdigest()


def check(names, steps, make):
    for name in names:
        workload = make(name)
        found = {"name": name, "weights": digest(workload.model)}
        found["losses"] = [workload.step().item() for _ in range(steps)]
        found["exact"] = [loss.hex() for loss in found["losses"]]
        found["trained"] = digest(workload.model)
        print(json.dumps(found), flush=True)


def serve(workload):
    print(workload.units, workload.unit, flush=True)
    for line in sys.stdin:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        took = seconds(workload, int(line))
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        print(took, peak_megabytes(), faults, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", default="taeda", choices=["taeda", "torch"])
    parser.add_argument("--model", action="append", help="default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--check", type=int, metavar="STEPS")
    parser.add_argument("--full", action="store_true", help="check the sizes that are timed")
    parser.add_argument("--batch", type=int, help="of the models whose batch can be chosen")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    if args.framework == "taeda":
        from taeda import _hook

        _hook.install()
    import torch

    from models.workloads import WORKLOADS, make

    torch.set_num_threads(args.threads)
    names = args.model or list(WORKLOADS)
    options = {"batch": args.batch} if args.batch else {}
    if args.check:
        check(names, args.check, lambda name: make(name, args.full, **options))
        return
    gc.freeze()
    if args.serve:
        serve(make(names[0], **options))
        return
    for name in names:
        workload = make(name, **options)
        workload.step()
        took = seconds(workload, args.steps)
        rate = workload.units * args.steps / took
        print(
            f"{name}: {took / args.steps * 1000:.1f} ms a step, {rate:.1f} {workload.unit}/s, "
            f"loss {workload.step().item():.6f}, {peak_megabytes():.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
