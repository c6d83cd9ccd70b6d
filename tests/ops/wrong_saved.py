"""Runs the backward step of every operator of the table with saved tensors that are not what it
saved: other sizes, dtypes, layouts and contents, one wrong tensor at a time.

    python -m tests.ops.wrong_saved DTYPES LOG [NAMES]

DTYPES is how many dtypes of each operator are tried. Each operator has a forked process of its own.
The last line of the output counts runs and deaths; LOG ends with the call that killed a process.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gen.table import Op, load
from tests.children import limit_child
from tests.ops import samples as grid

import taeda as torch

Change = Callable[[torch.Tensor], torch.Tensor]
WRONG: dict[str, Change] = {
    "empty": lambda t: t.new_zeros(0),
    "without elements": lambda t: t.new_zeros((*t.shape, 0)),
    "a number": lambda t: t.new_zeros(()),
    "one element": lambda t: t.new_ones((1,) * t.dim()),
    "one dimension": lambda t: t.reshape(-1),
    "one more dimension": lambda t: t.unsqueeze(0),
    "longer": lambda t: t.new_ones([n + 1 for n in t.shape]),
    "shorter": lambda t: t.new_ones([max(0, n - 1) for n in t.shape]),
    "longer in front": lambda t: t.new_ones([n + (d == 0) for d, n in enumerate(t.shape)]),
    "shorter at the end": lambda t: t.new_ones([*t.shape[:-1], 0]) if t.dim() else t,
    "transposed": lambda t: t.permute(*reversed(range(t.dim()))),
    "expanded": lambda t: t.new_ones(()).expand(t.shape),
    "int64": lambda t: t.to(torch.int64),
    "int32": lambda t: t.to(torch.int32),
    "uint8": lambda t: t.to(torch.uint8),
    "bool": lambda t: t.to(torch.bool),
    "float64": lambda t: t.real.to(torch.float64) if t.is_complex() else t.to(torch.float64),
    "bfloat16": lambda t: t.real.to(torch.bfloat16) if t.is_complex() else t.to(torch.bfloat16),
    "complex": lambda t: t.to(torch.complex128),
    "of large numbers": lambda t: torch.full_like(t, 100 if t.itemsize == 1 else 2**31 - 1),
    "of huge numbers": lambda t: torch.full_like(t, 100 if t.itemsize < 8 else 2**62),
    "of negative numbers": lambda t: torch.full_like(t, 255 if t.dtype == torch.uint8 else -1),
    "of nothing known": lambda t: torch.full_like(t, float("nan")) if t.is_floating_point() else t,
    "on meta": lambda t: t.to("meta"),
}


class Saved:
    """Saved-tensor hooks that give the `number`-th saved tensor back changed."""

    def __init__(self, number: int, change: Change) -> None:
        self.number, self.change, self.count = number, change, 0

    def pack(self, t: torch.Tensor) -> tuple[int, torch.Tensor]:
        self.count += 1
        return self.count - 1, t

    def unpack(self, packed: tuple[int, torch.Tensor]) -> torch.Tensor:
        number, t = packed
        return self.change(t.detach()) if number == self.number else t


def differentiate(op: Op, sample: str, dtype: str, saved: Saved) -> None:
    function = grid.place(op, torch)
    assert function is not None
    make = grid.maker(op, torch, dtype, sample=sample, requires_grad=True)
    args, kwargs = make.arguments(sample)
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
        result = function(*args, **kwargs)
    results = [r for r in (result if isinstance(result, tuple | list) else [result])
               if isinstance(r, torch.Tensor) and r.requires_grad]  # fmt: skip
    inputs = [t for t in make.made if t.requires_grad]
    if results and inputs:
        torch.autograd.grad(results, inputs, [torch.ones_like(r) for r in results],
                            allow_unused=True)  # fmt: skip


def attack(op: Op, dtypes: int, log: Any) -> int:
    """How often a backward step ran with a wrong tensor."""
    runs = 0
    for sample in grid.samples(op):
        for dtype in [d for d in grid.dtypes(op) if d.startswith(("float", "complex", "bf"))][
            :dtypes
        ]:
            known = Saved(-1, lambda t: t)
            try:
                differentiate(op, sample, dtype, known)
            except (NotImplementedError, RuntimeError, TypeError):
                continue
            for number in range(known.count):
                for name, change in WRONG.items():
                    log.write(f"{op.ident}({sample}), {dtype}: saved tensor {number} is {name}\n")
                    log.flush()
                    try:
                        differentiate(op, sample, dtype, Saved(number, change))
                    except SystemError:
                        raise
                    except Exception:
                        pass
                    runs += 1
    return runs


def attack_in_child(op: Op, dtypes: int, path: str, counts: int) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    limit_child(cpu_seconds=60)
    try:
        with open(path, "w") as log:
            os.write(counts, attack(op, dtypes, log).to_bytes(8, "little"))
        status = 0
    finally:
        os._exit(status)


def main() -> int:
    dtypes, path, wanted = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    read, write = os.pipe()
    runs = deaths = 0
    for op in load(Path(__file__).resolve().parents[2] / "ops"):
        if not op.python or not grid.samples(op) or (wanted and op.ident not in wanted):
            continue
        status = attack_in_child(op, dtypes, path, write)
        if status == 0:
            runs += int.from_bytes(os.read(read, 8), "little")
            continue
        deaths += 1
        with open(path) as log:
            print(f"status {status}: {(log.read().splitlines() or [op.ident])[-1]}", flush=True)
    print(f"{runs} runs, {deaths} deaths")
    return min(deaths, 100)


if __name__ == "__main__":
    sys.exit(main())
