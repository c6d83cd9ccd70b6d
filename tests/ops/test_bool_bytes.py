"""Bool tensors whose true elements are bytes other than 1: views of bytes, NumPy's, mapped files'.

Every operator of the table that takes bool is called twice, with bytes 0 and 1 and with others, and
must answer, or refuse, alike.
"""

from __future__ import annotations

import mmap
import os
import pickle
import random
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gen.table import Op, load

import taeda as torch

TABLE = [op for op in load(Path(__file__).resolve().parents[2] / "ops") if op.python]
TRUE_BYTES = np.array([2, 255, 128, 1, 4, 170], np.uint8)
CALLS = 40  # of each operator
# Memory as it was, bytes on purpose, or 166 million triples of a thousand elements.
SKIPPED = set(
    "empty empty_like empty_strided new_empty resize_ view_dtype view_copy_dtype "
    "combinations".split()
)
SHAPES = [(), (3,), (4, 5), (4, 5), (4, 5), (70, 5), (3, 4, 5), (1000,), (0, 5)]


class Call:
    """The arguments of one call, the same for any bytes that true elements have."""

    def __init__(self, op: Op, seed: int, wild: bool) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.shape = self.rng.choice(SHAPES)
        self.wild = wild
        self.bools = 0
        self.leaves: list[Any] = []
        self.args = [self.of_type(a.type, a.name, a.default) for a in self.positional(op)]

    def positional(self, op: Op) -> list:
        kept = []
        for a in op.sig.args:
            if a.type == "options" or a.keyword_only:
                break
            if a.default is not None and self.rng.random() < 0.5:
                break
            kept.append(a)
        return kept

    def bools_of(self, shape: tuple[int, ...]) -> Any:
        true = self.numbers.random(shape) < self.rng.choice([0.02, 0.5, 0.98])
        other = self.numbers.choice(TRUE_BYTES, shape)
        self.bools += 1
        x = torch.from_numpy(np.where(true, other if self.wild else 1, 0).astype(np.uint8))
        kind = self.rng.randrange(6)
        if kind == 0 and x.dim() > 1:
            x = x.transpose(0, -1).contiguous().transpose(0, -1)
        elif kind == 1 and x.dim() > 0:
            x = torch.stack([x, x], -1)[..., 0]
        elif kind == 2 and x.dim() > 0 and x.shape[0] > 0:
            x = x[:1].expand(x.shape)
        return x.view(torch.bool)

    def tensor(self, name: str) -> Any:
        shape = self.shape if self.rng.random() < 0.8 else self.rng.choice(SHAPES)
        if name in ("index", "indices"):
            return torch.from_numpy(self.numbers.integers(0, 3, shape))
        if name in ("mask", "condition", "attn_mask") or self.rng.random() < 0.6:
            return self.bools_of(shape)
        if self.rng.random() < 0.3:
            return torch.from_numpy(self.numbers.integers(0, 3, shape))
        x = torch.from_numpy(self.numbers.random(shape, np.float32))
        if self.rng.random() < 0.3:
            x.requires_grad_()
            self.leaves.append(x)
        return x

    def of_type(self, kind: str, name: str, default: str | None) -> Any:
        rng, base = self.rng, kind.removesuffix("?")
        if kind.endswith("?") and default is None and rng.random() < 0.2:
            return None
        if base == "Tensor":
            return self.tensor(name)
        if base in ("Tensor[]", "Tensor?[]"):
            return [self.tensor(name) for _ in range(rng.randrange(1, 4))]
        if base == "str":
            words = "sum prod amax amin mean none floor trunc linear".split()
            return rng.choice([default.strip("'\"")] if default else words)
        simple = {
            "int": lambda: rng.choice([0, 1, 2, 3, -1]),
            "dim": lambda: rng.choice([0, 1, -1]),
            "int[]": lambda: rng.choice([[0], [1], [0, 1], [4, 5], [2, 2], [1, 1], [-1]]),
            "dims": lambda: rng.choice([0, 1, [0, 1], [-1]]),
            "float": lambda: rng.choice([0.0, 0.5, 1.0]),
            "float[]": lambda: [0.5, 1.0],
            "Scalar": lambda: rng.choice([0, 1, 2, 0.5, True]),
            "bool": lambda: rng.random() < 0.5,
            "dtype": lambda: rng.choice([torch.bool, torch.int64, torch.float32, torch.uint8]),
        }
        return simple[base]() if base in simple else None


def plain(value: Any) -> Any:
    """A result as Python values; bools by comparison of their bytes with 0."""
    if isinstance(value, torch.Tensor):
        data = value.detach()
        if data.dtype is torch.bool:
            data = torch.from_numpy(np.asarray(data.contiguous().view(torch.uint8).numpy() != 0))
        return value.dtype, tuple(value.shape), repr(data.tolist())
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return repr(value)


def answer(call: Call, path: str) -> list:
    if path.startswith("Tensor."):
        result = getattr(call.args[0], path.removeprefix("Tensor."))(*call.args[1:])
    else:
        target: Any = torch
        for part in path.removeprefix("torch.").split("."):
            target = getattr(target, part)
        result = target(*call.args)
    seen = [plain(result), plain(call.args)]
    if isinstance(result, torch.Tensor) and result.requires_grad and result.is_floating_point():
        result.sum().backward()
        seen.append([plain(x.grad) for x in call.leaves])
    return seen


def outcome(op: Op, path: str, seed: int, wild: bool) -> tuple[Any, int]:
    """What a call gives, or the error's type, and how many bool arguments it had."""
    call = Call(op, seed, wild)
    torch.manual_seed(seed)
    try:
        return answer(call, path), call.bools
    except Exception as error:
        return type(error).__name__, 0


def paths(op: Op) -> list[str]:
    found = [op.python[0]]
    methods = [p for p in op.python if p.startswith("Tensor.")]
    if "inplace" in op.variants and methods:
        found.append(methods[0] + "_")
    return found


@pytest.mark.parametrize("op", TABLE, ids=[op.ident for op in TABLE])
def test_every_operator_reads_any_byte_but_0_as_true(op: Op) -> None:
    if op.ident in SKIPPED:
        pytest.skip("shows memory as it is, or takes all")
    answers = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in paths(op):
            for k in range(CALLS):
                seed = zlib.crc32(f"{path} {k}".encode())
                expected, bools = outcome(op, path, seed, wild=False)
                answers += bools > 0
                if bools or isinstance(expected, str):
                    got, _ = outcome(op, path, seed, wild=True)
                    assert got == expected, f"{path}, seed {seed}"
    ANSWERED[op.ident] = answers


ANSWERED: dict[str, int] = {}


def test_most_operators_answered() -> None:
    """That the calls above are not all refused."""
    if len(ANSWERED) < len(TABLE) - len(SKIPPED):
        pytest.skip("not all operators were called")
    assert sum(n > 0 for n in ANSWERED.values()) > 240


def sources() -> dict[str, tuple[Any, np.ndarray]]:
    """Masks from elsewhere, as OpenCV and others make them, with what they mean."""
    rng = np.random.default_rng(0)
    made = {}
    for n in (0, 1, 7, 64, 1000, 40_000):
        flat = (rng.random(n) < 0.3).astype(np.uint8) * rng.choice(TRUE_BYTES, n)
        memory = mmap.mmap(-1, max(n, 1))
        memory[:n] = flat.tobytes()
        made[f"view {n}"] = torch.from_numpy(flat.copy()).view(torch.bool), flat != 0
        made[f"numpy {n}"] = torch.from_numpy(flat.view(np.bool_)), flat != 0
        if n:
            made[f"buffer {n}"] = torch.frombuffer(bytearray(flat), dtype=torch.bool), flat != 0
            made[f"mapped {n}"] = (
                torch.frombuffer(memory, dtype=torch.bool, count=n),
                flat != 0,
            )
            made[f"dlpack {n}"] = torch.from_dlpack(Shared(flat)), flat != 0
    return made


class Shared:
    """Bytes that DLPack offers as bool."""

    def __init__(self, flat: np.ndarray) -> None:
        self.tensor = torch.from_numpy(flat.copy()).view(torch.bool)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("name", sources())
def test_masks_from_elsewhere(name: str) -> None:
    mask, truth = sources()[name]
    n = len(truth)
    assert mask.any().item() is bool(truth.any())
    assert mask.all().item() is bool(truth.all())
    assert mask.count_nonzero().item() == truth.sum() == mask.sum().item()
    assert mask.tolist() == truth.tolist() == [bool(m) for m in mask]
    assert (~mask).tolist() == (~truth).tolist() == (mask == False).tolist()  # noqa: E712
    assert (mask == True).tolist() == truth.tolist() == (mask ^ False).tolist()  # noqa: E712
    assert (mask & mask.clone()).tolist() == truth.tolist() == (mask | False).tolist()
    x = np.arange(n, dtype=np.float32)
    t = torch.from_numpy(x.copy())
    np.testing.assert_array_equal(t[mask].numpy(), x[truth])
    np.testing.assert_array_equal(torch.where(mask, t, -1).numpy(), np.where(truth, x, -1))
    np.testing.assert_array_equal(t.masked_fill(mask, 7).numpy(), np.where(truth, 7, x))
    np.testing.assert_array_equal(t.masked_select(mask).numpy(), x[truth])
    np.testing.assert_array_equal(mask.nonzero().numpy()[:, 0], truth.nonzero()[0])
    np.testing.assert_array_equal(mask.cumsum(0).numpy(), truth.cumsum())
    np.testing.assert_array_equal(mask.float().numpy(), truth.astype(np.float32))
    np.testing.assert_array_equal(mask.to(torch.uint8).numpy(), truth.astype(np.uint8))
    np.testing.assert_array_equal(mask.sort().values.tolist(), np.sort(truth))
    assert mask.unique().tolist() == np.unique(truth).tolist()
    t[mask] = 3
    np.testing.assert_array_equal(t.numpy(), np.where(truth, 3, x))
    assert torch.equal(mask, torch.from_numpy(truth)) and torch.equal(torch.from_numpy(truth), mask)
    assert str(mask) == str(torch.from_numpy(truth))
    assert pickle.loads(pickle.dumps(mask)).tolist() == truth.tolist()
    if n:
        assert bool(mask[0]) is bool(truth[0]) is mask[0].item()
        assert (mask.amax().item(), mask.amin().item()) == (truth.max(), truth.min())
        assert mask.int().argmax().item() == truth.argmax()


def test_reductions_along_dimensions() -> None:
    rng = np.random.default_rng(1)
    for shape in ((3, 40), (40, 3), (70, 300), (300, 70), (5, 6, 7)):
        flat = (rng.random(shape) < 0.05).astype(np.uint8) * rng.choice(TRUE_BYTES, shape)
        for mask, truth in ((flat, flat != 0), (flat.T, flat.T != 0)):
            t = torch.from_numpy(np.ascontiguousarray(mask)).view(torch.bool)
            wide = torch.from_numpy(flat).view(torch.bool)
            t = t if mask is flat else wide.permute(*reversed(range(wide.dim())))
            for dim in range(t.dim()):
                assert t.any(dim).tolist() == truth.any(dim).tolist()
                assert (~t).all(dim).tolist() == (~truth).all(dim).tolist()
                assert t.all(dim).tolist() == truth.all(dim).tolist()
                assert t.count_nonzero(dim).tolist() == truth.sum(dim).tolist()


def test_attention_masks() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random((20, 30)) < 0.5
    truth[:, 0] = True
    other = torch.from_numpy(truth * rng.choice(TRUE_BYTES, truth.shape)).view(torch.bool)
    for queries in (20, 3):
        q, k, v = (torch.randn(2, 4, n, 16) for n in (queries, 30, 30))
        attend = torch.nn.functional.scaled_dot_product_attention
        expected = attend(q, k, v, torch.from_numpy(truth[:queries].copy()))
        assert torch.equal(attend(q, k, v, other[:queries]), expected)


@pytest.mark.skipif("TAEDA_CPU" in os.environ, reason="runs itself")
def test_the_baseline_instruction_set_reads_them_alike() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command,
        env={**os.environ, "TAEDA_CPU": "baseline"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
