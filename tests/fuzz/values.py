"""Arguments as the text of Python expressions: honest ones, odd ones and impossible ones.

Everything is text, so that a call can be made again from what the log says of it. The names
``torch``, ``io`` and ``np`` are what a program of ``programs.py`` imports.
"""

from __future__ import annotations

import random

HUGE = [2**31 - 1, 2**31, 2**31 + 1, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, -(2**31) - 1]
SMALL = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, -1, -1, -2, -3]
FLOATS = [0.0, 0.5, 0.1, 1.0, -1.5, 2.0, 1e38, -1e38, 1e-38, 1e308, -0.0]
SPECIAL_FLOATS = ["float('nan')", "float('inf')", "-float('inf')"]
SHAPES: list[tuple[int, ...]] = [
    *[(), (0,), (1,), (3,), (2, 3), (3, 3), (0, 3), (3, 0), (2, 3, 4), (1, 3, 1), (0, 2, 0)],
    *[(1, 2, 4, 4), (2, 2, 3, 3), (2, 0, 3, 3), (1, 2, 3, 3, 3), (2, 1, 2, 1, 2)],
]
DTYPES = (
    "float32 float32 float32 float64 float16 bfloat16 int64 int64 int32 int16 int8 uint8 bool "
    "complex64 complex128"
).split()
FLOATING = ("float32", "float64", "float16", "bfloat16")
STRINGS = (
    *["", "mean", "none", "sum", "linear", "nearest", "floor", "trunc", "reflect", "circular"],
    *["bilinear", "bicubic", "constant", "fro", "nuc", "amax", "prod", "tanh", "xx", "\0", "é"],
)
ODD = ("None", "object()", "object", "{}", "{'a': 1}", "b'1234'", "()", "slice(None)", "...", "[]")
FUNCTIONS = (
    *["torch.sin", "lambda *x: x[0]", "lambda *x: (x[0] * x[0]).sum()", "lambda *x: x"],
    *["lambda *x: None", "torch.nn.Linear(3, 3)", "torch.add", "lambda: torch.ones(3)"],
)
# What a parameter of a Python function is, by its name; looked for as a whole, then as a part.
BY_NAME = {
    "input output x y z a b self other tensor tensors weight bias target mask grad source mat": (
        "Tensor"
    ),
    "dim dims axis device_index index start end step k n m num size_average": "int",
    "size shape stride padding dilation kernel_size output_size normalized_shape sizes": "int[]",
    "p eps momentum lr alpha beta gamma weight_decay value std gain rate": "float",
    "dtype": "dtype",
    "device": "device",
    "func fn f function forward_fn closure hook callback lr_lambda": "function",
    "module model modules module1 module2 mod": "module",
    "parameters params named_parameters": "parameters",
    "optimizer": "optimizer",
    "generator": "Generator?",
    "dataset data_source": "dataset",
    "sampler batch_sampler": "sampler",
    "file path filename": "file",
}
NAMED = {name: kind for names, kind in BY_NAME.items() for name in names.split()}


class Values:
    """A source of texts; the same seed gives the same ones."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- tensors ---

    def filled(self, shape: tuple[int, ...], dtype: str) -> str:
        """A tensor of that shape and dtype with dull values."""
        numel = 1
        for size in shape:
            numel *= size
        start = self.rng.choice([0, 0, 1, -2])
        text = f"torch.arange({start}, {start + numel}).reshape({shape})"
        return text if dtype == "int64" else f"{text}.to(torch.{dtype})"

    def tensor(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> str:
        rng = self.rng
        shape = rng.choice(SHAPES) if shape is None else shape
        dtype = rng.choice(DTYPES) if dtype is None else dtype
        text, floating = self.filled(shape, dtype), dtype in FLOATING
        kind = rng.randrange(26)
        if kind < 3 and floating:
            return f"{text}.requires_grad_()"
        if kind == 3 and floating:
            return f"{text}.requires_grad_().mul(1)"
        if kind == 4:
            return f"{text}.transpose(0, -1)" if shape else f"{text}.t()"
        if kind == 5 and shape and shape[0]:
            return f"{text}[:1].expand({shape})"
        if kind == 6:
            return f"{text}.to('meta')"
        if kind == 7 and (floating or dtype.startswith("complex")):
            return f"({text} * {rng.choice(SPECIAL_FLOATS)})"
        if kind == 8 and shape:
            return f"{text}.flip(0)[::2]"
        if kind == 9 and shape and shape[0] > 1:
            return f"{text}[1:]"
        if kind == 10 and dtype.startswith("complex"):
            return f"{text}.conj()"
        if kind == 11 and 0 not in shape:
            return self.read_only(shape, dtype)
        if kind == 12:
            return f"torch.nn.Parameter({text}, requires_grad={floating})"
        if kind == 13 and floating:
            return f"({text} * {rng.choice(['1e38', '1e-38', '1e-45', '-0.0'])})"
        return text

    def read_only(self, shape: tuple[int, ...], dtype: str) -> str:
        memory = f"torch.frombuffer(bytes(2048), dtype=torch.{dtype})[:24]"
        return f"{memory}.as_strided({shape}, {(0,) * len(shape)})"

    # --- numbers and the rest ---

    def integer(self) -> str:
        if self.chance(0.12):
            value = self.rng.choice(HUGE)
            return repr(-value if self.chance(0.2) else value)
        return repr(self.rng.choice(SMALL))

    def integers(self) -> str:
        count = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 4])
        return "[" + ", ".join(self.integer() for _ in range(count)) + "]"

    def real(self) -> str:
        if self.chance(0.15):
            return self.rng.choice(SPECIAL_FLOATS)
        return repr(self.rng.choice(FLOATS))

    def number(self) -> str:
        return self.rng.choice([self.integer(), self.real(), "True", "1 + 2j", "-3"])

    def tensors(self) -> str:
        shape = self.rng.choice([None, self.rng.choice(SHAPES)])
        count = self.rng.randrange(4)
        return "[" + ", ".join(self.tensor(shape) for _ in range(count)) + "]"

    def of_type(self, kind: str) -> str:
        """A value for an argument of that schema type, sometimes of another type."""
        if self.chance(0.05):
            return self.anything()
        if kind.endswith("?") and self.chance(0.3):
            return "None"
        return self.plain(kind.removesuffix("?"))

    def plain(self, kind: str) -> str:
        rng = self.rng
        if kind in ("int[]", "dims"):
            return rng.choice([self.integers(), self.integer()])
        makers = {
            "Tensor": self.tensor,
            "Tensor[]": self.tensors,
            "Tensor?[]": self.tensors,
            "int": self.integer,
            "dim": self.integer,
            "float": self.real,
            "Scalar": self.number,
            "float[]": lambda: "[" + ", ".join(self.real() for _ in range(rng.randrange(4))) + "]",
            "bool": lambda: rng.choice(["True", "False"]),
            "str": lambda: repr(rng.choice(STRINGS)),
            "dtype": lambda: f"torch.{rng.choice(DTYPES)}",
            "memory_format": lambda: rng.choice(["torch.channels_last", "torch.contiguous_format"]),
            "device": lambda: repr(rng.choice(["cpu", "cpu", "cpu", "meta", "cuda", "x", "cpu:7"])),
            "function": lambda: rng.choice(FUNCTIONS),
            "module": lambda: "torch.nn.Linear(3, 3)",
            "parameters": lambda: f"[torch.nn.Parameter({self.filled((2, 3), 'float32')})]",
            "optimizer": lambda: "torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1)",
            "Generator": lambda: "torch.Generator()",
            "dataset": lambda: f"torch.utils.data.TensorDataset({self.tensor()})",
            "sampler": lambda: f"torch.utils.data.SequentialSampler(range({rng.randrange(5)}))",
            "file": lambda: "io.BytesIO(b'taeda')",
        }
        return makers[kind]() if kind in makers else "None"

    def by_name(self, name: str) -> str:
        """A value for a parameter of a Python function of which only the name is known."""
        if name in NAMED:
            return self.of_type(NAMED[name])
        parts = name.lower().split("_")
        found = next((NAMED[part] for part in parts if part in NAMED), None)
        if found is None and parts[0] in ("is", "use", "has", "return", "keep", "inplace"):
            found = "bool"
        if found is None and parts[0] in ("num", "in", "out", "max", "min"):
            found = "int"
        return self.of_type(found) if found else self.anything()

    def anything(self) -> str:
        if self.chance(0.12):
            return self.rng.choice(ODD)
        if self.chance(0.05):
            return self.rng.choice(FUNCTIONS)
        kinds = "Tensor Tensor Tensor Tensor int int[] float Scalar bool str dtype Tensor[]".split()
        return self.plain(self.rng.choice(kinds))
