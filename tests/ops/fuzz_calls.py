"""Calls every public function and Tensor method with odd arguments, until told to stop.

Run as a program by test_fuzz.py: ``python tests/ops/fuzz_calls.py SEED SECONDS LOG``. Every call is
written to LOG before it is made, so that the last line names the call that ended or hung the
process. The last line of the output is a JSON object with what was found.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gen.table import Op, load

import taeda

MEMORY_BYTES = 3 << 29  # of address space: huge sizes fail without being filled
SLOW_SECONDS = 2.0

HUGE = [2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, -(2**40)]
INTS = [0, 1, 2, 3, -1, -2, 5, 7]
FLOATS = [0.0, 0.5, -1.5, 1e308, float("nan"), float("inf"), -float("inf"), -0.0]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 3), (0, 3), (3, 0), (2, 3, 4), (1, 2, 4, 4)]
DTYPES = (
    "float32 float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 "
    "complex128"
).split()
STRINGS = ["", "mean", "none", "sum", "linear", "nearest", "floor", "xx", "\0", "fro", "é"]
# Not called: they change the process for later calls, wait, or are about other things.
SKIPPED = frozenset(
    "set_default_dtype set_num_threads set_num_interop_threads set_printoptions save load compile "
    "set_default_device set_default_tensor_type use_deterministic_algorithms set_flush_denormal "
    "set_rng_state seed share_memory_ set_grad_enabled autocast_increment_nesting "
    "autocast_decrement_nesting set_autocast_enabled".split()
)
CONSTRUCTORS = (
    "tensor from_numpy frombuffer as_tensor zeros ones arange linspace logspace full empty eye "
    "range empty_strided as_strided asarray scalar_tensor tril_indices triu_indices complex"
).split()
BAD_MESSAGES = ("unknown C++ exception", "std::", "vector::", "basic_string", "map::at")


class Arguments:
    """Makes values and, beside each, the text that stands for it in the log."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def tensor(self) -> tuple[Any, str]:
        rng = self.rng
        shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES)
        t = taeda.arange(int(taeda.Size(shape).numel())).reshape(shape).to(getattr(taeda, dtype))
        text = f"tensor{list(shape)}.{dtype}"
        kind = rng.randrange(12)
        if kind == 0 and t.is_floating_point():
            t, text = t.requires_grad_(), text + ".requires_grad"
        elif kind == 1 and t.dim() > 1:
            t, text = t.transpose(0, -1), text + ".T"
        elif kind == 2 and t.dim() > 0 and t.shape[0] > 0:
            t, text = t[:1].expand(t.shape), text + ".expanded"
        elif kind == 3:
            t, text = t.to("meta"), text + ".meta"
        elif kind == 4 and t.is_floating_point():
            t, text = t * float("nan"), text + ".nan"
        elif kind == 5 and t.is_floating_point():
            t, text = t.clone().requires_grad_().mul(1), text + ".with_history"
        elif kind == 6 and t.numel() > 0:
            memory = mmap.mmap(-1, t.nbytes, prot=mmap.PROT_READ)
            t = taeda.frombuffer(memory, dtype=t.dtype).reshape(t.shape)
            text += ".read_only"
        return t, text

    def integer(self) -> int:
        return self.rng.choice(HUGE if self.rng.random() < 0.25 else INTS)

    def integers(self) -> list[int]:
        return [self.integer() for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4]))]

    def number(self) -> Any:
        return self.rng.choice([self.integer(), self.rng.choice(FLOATS), True, 1 + 2j])

    def of_type(self, kind: str) -> tuple[Any, str]:
        """A value for an argument of that schema type, sometimes of another type."""
        rng, base = self.rng, kind.removesuffix("?")
        if rng.random() < 0.06:
            return self.anything()
        if kind.endswith("?") and rng.random() < 0.3:
            return None, "None"
        if base == "Tensor":
            return self.tensor()
        if base in ("Tensor[]", "Tensor?[]"):
            made = [self.tensor() for _ in range(rng.randrange(4))]
            return [t for t, _ in made], "[" + ", ".join(text for _, text in made) + "]"
        simple: dict[str, Callable[[], Any]] = {
            "int": self.integer,
            "dim": self.integer,
            "int[]": lambda: rng.choice([self.integers(), self.integer()]),
            "dims": lambda: rng.choice([self.integers(), self.integer()]),
            "float": lambda: rng.choice(FLOATS),
            "float[]": lambda: [rng.choice(FLOATS) for _ in range(rng.randrange(4))],
            "Scalar": self.number,
            "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice(STRINGS),
            "dtype": lambda: getattr(taeda, rng.choice(DTYPES)),
            "memory_format": lambda: taeda.channels_last,
            "device": lambda: rng.choice(["cpu", "meta", "cuda", "x"]),
        }
        if base not in simple:
            return None, "None"
        value = simple[base]()
        return value, repr(value)

    def anything(self) -> tuple[Any, str]:
        kinds = "Tensor Tensor Tensor int int[] float Scalar bool str dtype Tensor[]".split()
        if self.rng.random() < 0.1:
            value = self.rng.choice([None, object, {}, {"a": 1}, b"1234", (), slice(None), ...])
            return value, repr(value)
        return self.of_type(self.rng.choice(kinds))


def placed(path: str) -> Any:
    """What a name of the table stands for; None for names that are not public."""
    target: Any = taeda
    for part in path.removeprefix("torch.").split("."):
        target = getattr(target, part, None)
    return target


class Fuzzer:
    def __init__(self, seed: int, log: Path):
        self.rng = random.Random(seed)
        self.make = Arguments(self.rng)
        self.log = log.open("w", buffering=1)
        self.calls = self.results = 0
        self.slow: list[str] = []
        self.wrong: list[str] = []
        table = load(Path(__file__).resolve().parents[2] / "ops")
        self.table = [(op, p) for op in table for p in op.python if self._callable(p)]
        self.functions = [
            (f"{owner}.{name}", getattr(module, name), owner == "Tensor")
            for owner, module in (
                ("taeda", taeda),
                ("Tensor", taeda.Tensor),
                ("functional", taeda.nn.functional),
                ("linalg", taeda.linalg),
            )
            for name in sorted(dir(module))
            if not name.startswith("_")
            and name not in SKIPPED
            # not classes, modules, or the operating system's
            and callable(getattr(module, name, None))
            and not isinstance(getattr(module, name), type)
        ]

    @staticmethod
    def _callable(path: str) -> bool:
        name = path.rpartition(".")[2]
        return name not in SKIPPED and not name.startswith("_") and callable(placed(path))

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            kind = self.rng.random()
            if kind < 0.6:
                self.from_table(*self.rng.choice(self.table))
            elif kind < 0.85:
                self.blindly(*self.rng.choice(self.functions))
            else:
                name = self.rng.choice(CONSTRUCTORS)
                self.blindly(f"taeda.{name}", getattr(taeda, name), False)

    def from_table(self, op: Op, path: str) -> None:
        args, texts = [], []
        kwargs: dict[str, Any] = {}
        for a in op.sig.args:
            if a.type == "options" or (a.default is not None and self.rng.random() < 0.4):
                continue
            value, text = self.make.of_type(a.type)
            if a.keyword_only or len(args) < op.sig.args.index(a):
                kwargs["input" if a.name == "self" else a.name] = value
                texts.append(f"{a.name}={text}")
            else:
                args.append(value)
                texts.append(text)
        method = path.startswith("Tensor.")
        if method and not (args and isinstance(args[0], taeda.Tensor)):
            return
        target = getattr(args.pop(0), path.rpartition(".")[2]) if method else placed(path)
        self.call(path, target, args, kwargs, texts)

    def blindly(self, name: str, function: Any, method: bool) -> None:
        made = [self.make.anything() for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4]))]
        if method:
            made.insert(0, self.make.tensor())
        self.call(name, function, [v for v, _ in made], {}, [text for _, text in made])

    def call(self, name: str, function: Any, args: list, kwargs: dict, texts: list[str]) -> None:
        text = f"{name}({', '.join(texts)})"
        self.log.write(text + "\n")
        self.calls += 1
        start, start_cpu = time.perf_counter(), time.process_time()
        try:
            function(*args, **kwargs)
            self.results += 1
        except (SystemError, AssertionError) as error:
            if "no CUDA device" not in str(error):
                self.wrong.append(f"{text}: {type(error).__name__}: {error}")
        except Exception as error:  # any Python exception is an answer
            if any(bad in str(error) for bad in BAD_MESSAGES):
                self.wrong.append(f"{text}: {type(error).__name__}: {error}")
        # the smaller of both: a busy machine makes calls wait, threads make CPU time add up
        took = min(time.perf_counter() - start, time.process_time() - start_cpu)
        if took > SLOW_SECONDS:
            self.slow.append(f"{took:.1f} s: {text}")


def main() -> None:
    seed, seconds, log = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    taeda.set_num_threads(1)
    square = taeda.ones(64, 64, dtype=taeda.float64)
    square @ square  # OpenBLAS ends the process when it finds no room for its buffers later
    if os.environ.get("TAEDA_ALLOCATOR") != "system":  # sanitizers reserve terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    warnings.simplefilter("ignore")
    fuzzer = Fuzzer(seed, log)
    fuzzer.run(seconds)
    found = {key: getattr(fuzzer, key) for key in ("calls", "results", "slow", "wrong")}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
