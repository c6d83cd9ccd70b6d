"""Inputs for the operator grid: an entry's ``test:`` key, or what follows from its signature.

A sample is the text of an argument list, such as ``"x(3, 4), dim=1"``, evaluated once for each
framework: ``x`` makes a tensor of the dtype under test, ``i`` integers, ``b`` bools, ``p`` positive
definite matrices. The same seed gives both frameworks the same numbers.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gen.table import Op

# Where taeda's tensors lie: `pytest --device cuda` (tests/conftest.py). PyTorch's stay on the CPU.
DEVICE = os.environ.get("TAEDA_TEST_DEVICE", "cpu")

# NumPy has no bfloat16: it is made from float32 by each framework
NUMPY_TYPES = {"bfloat16": "float32", "complex64": "complex64", "complex128": "complex128"}
TYPES = {
    "bool": ["bool"],
    "integral": ["uint8", "int64"],
    "integral_bool": ["bool", "uint8", "int64"],
    "floating": ["float32", "float64", "bfloat16"],
    "inexact": ["float32", "float64", "bfloat16", "complex128"],
    "real": ["bool", "uint8", "int64", "float32", "bfloat16"],
    "numeric": ["uint8", "int64", "float32", "float64", "bfloat16", "complex128"],
    "all": ["bool", "uint8", "int32", "int64", "float16", "float32", "bfloat16", "complex128"],
}
for name in ("any", "all complex32", "all float8 complex32"):
    TYPES[name] = TYPES["all"]  # storage types: tests/python/test_storage_types.py
TYPES["integral_bool floating"], TYPES["numeric float8"] = TYPES["real"], TYPES["numeric"]
LAYOUTS = ("plain", "transposed", "sliced", "expanded")


@dataclass
class Maker:
    """Makes the tensors of one sample for one framework."""

    torch: Any
    dtype: str
    layout: str
    low: float
    high: float
    seed: int
    requires_grad: bool = False
    special: bool = False
    device_name: str = ""  # else DEVICE, and the CPU for PyTorch

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.made: list[Any] = []

    @property
    def device(self) -> str:
        if self.device_name:
            return self.device_name
        return DEVICE if self.torch.__name__ == "taeda" else "cpu"

    def _laid_out(self, t: Any) -> Any:
        if self.layout == "transposed" and t.dim() >= 2:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        if self.layout == "sliced" and t.dim() >= 1:
            wide = self.torch.stack([t, t], -1)
            return wide[..., 0]
        if self.layout == "expanded" and t.dim() >= 1 and t.shape[0] > 0:
            return t[:1].expand(t.shape)
        return t

    def _values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        if dtype == "bool":
            return self.random.random(shape) < 0.5
        if dtype in ("uint8", "int8", "int16", "int32", "int64"):
            low = max(self.low, 0) if dtype == "uint8" else self.low
            return self.random.integers(
                int(np.ceil(low)), max(int(self.high), int(np.ceil(low))) + 1, shape
            ).astype(dtype)
        values = self.random.uniform(self.low, self.high, shape)
        if dtype.startswith("complex"):
            values = values + 1j * self.random.uniform(self.low, self.high, shape)
        elif self.special and values.size > 3:
            flat = values.reshape(-1)
            flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
        return values.astype(NUMPY_TYPES.get(dtype, dtype))

    def x(self, *shape: int, dtype: str | None = None) -> Any:
        """A tensor of the dtype under test, uniform in the entry's range."""
        kind = dtype or self.dtype
        t = self.torch.tensor(self._values(shape, kind).tolist(), dtype=getattr(self.torch, kind))
        t = self._laid_out(t.reshape(shape).to(self.device))
        if self.requires_grad and (t.is_floating_point() or t.is_complex()):
            t = t.detach().clone().requires_grad_()
        self.made.append(t)
        return t

    def p(self, *shape: int) -> Any:
        """Positive definite matrices."""
        n = shape[-1]
        values = self._values(shape, self.dtype).astype(complex)
        values = values @ values.conj().swapaxes(-1, -2) + n * np.eye(n)
        if not self.dtype.startswith("complex"):
            values = values.real
        t = self.torch.tensor(values.tolist(), dtype=getattr(self.torch, self.dtype))
        t = self._laid_out(t.to(self.device)).requires_grad_(self.requires_grad)
        self.made.append(t)
        return t

    def i(self, *shape: int, high: int = 3) -> Any:
        """Integers in [0, high)."""
        return (
            self.torch.tensor(self.random.integers(0, high, shape).tolist(), dtype=self.torch.int64)
            .reshape(shape)
            .to(self.device)
        )

    def b(self, *shape: int) -> Any:
        """Bools."""
        return (
            self.torch.tensor((self.random.random(shape) < 0.5).tolist(), dtype=self.torch.bool)
            .reshape(shape)
            .to(self.device)
        )

    def arguments(self, sample: str) -> tuple[tuple, dict]:
        space = {
            "x": self.x,
            "i": self.i,
            "b": self.b,
            "p": self.p,
            "torch": self.torch,
            "inf": float("inf"),
            "nan": float("nan"),
            "call": lambda *args, **kwargs: (args, kwargs),
        }
        if self.device == "cpu":
            return eval(f"call({sample})", space)
        with self.torch.device(self.device):  # for what a sample makes by itself
            return eval(f"call({sample})", space)


def maker(
    op: Op, torch: Any, dtype: str, layout: str = "plain", sample: str = "", **kwargs: Any
) -> Maker:
    low, high = op.test.get("range", [-3, 3])
    seed = zlib.crc32(f"{op.ident} {sample}".encode())
    return Maker(torch, dtype, layout, low, high, seed, **kwargs)


def samples(op: Op) -> list[str]:
    """The entry's own samples; for pointwise operators broadcasting, 0-d and empty shapes."""
    if "samples" in op.test:
        return list(op.test["samples"])
    if op.body != "pointwise":
        return []
    n = len(op.sig.tensor_args)
    required = [a for a in op.sig.args if not a.is_tensor and a.default is None]
    if required:
        return []
    shapes = [["3, 4"] * n, [""] * n, ["0, 3"] * n, ["70, 5"] * n]
    if n > 1:
        shapes += [
            ["3, 4"] + ["4"] * (n - 1),
            ["2, 1, 4"] + ["3, 1"] * (n - 1),
            ["3, 4"] + [""] * (n - 1),
        ]
    return [", ".join(f"x({s})" for s in row) for row in shapes]


def dtypes(op: Op) -> list[str]:
    return list(op.test.get("dtypes", TYPES[op.types]))


def is_complex_only(op: Op) -> bool:
    return all(d.startswith("complex") for d in dtypes(op))


def place(op: Op, torch: Any) -> Callable | None:
    """The function or method as `torch` has it; None where it has none."""
    for path in op.python:
        parts = path.removeprefix("torch.").split(".")
        target = torch
        for part in parts:
            target = getattr(target, part, None)
        if target is not None:
            return target
    return None
