"""Sizes, strides and offsets whose products overflow: an error before anything is allocated."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

import taeda as torch
import taeda.nn.functional as F

BIG = [2**31, 2**61, 2**62, 2**63 - 1]
X = torch.ones(2, 3)
IMAGE = torch.ones(1, 2, 4, 4)
FILTER = torch.ones(2, 2, 3, 3)

# What is done with a huge number n.
CALLS: dict[str, Callable[[int], object]] = {
    "empty": lambda n: torch.empty(n, n),
    "empty with a 0": lambda n: torch.empty(0, n, n).numel(),
    "zeros": lambda n: torch.zeros(2, n, 2**20),
    "full": lambda n: torch.full((n, 2**20), 1.0),
    "rand": lambda n: torch.rand(n, 2**20),
    "eye": lambda n: torch.eye(n),
    "arange": lambda n: torch.arange(n * 2**10),
    "linspace": lambda n: torch.linspace(0, 1, n * 2**10),
    "tril_indices": lambda n: torch.tril_indices(n, n),
    "empty_strided": lambda n: torch.empty_strided((3, 3), (n, n)),
    "empty_strided, sizes": lambda n: torch.empty_strided((n, n), (1, 1)),
    "as_strided": lambda n: X.as_strided((2, 2), (n, 1)),
    "as_strided, sizes": lambda n: X.as_strided((n, n), (1, 1)),
    "as_strided, offset": lambda n: X.as_strided((2, 2), (1, 1), n),
    "as_strided, offset and stride": lambda n: X.as_strided((2,), (n,), n),
    "resize_": lambda n: torch.ones(2).resize_(n, n),
    "resize_ with a 0": lambda n: torch.ones(2).resize_(0, n, n).numel(),
    "set_": lambda n: torch.ones(2).set_(torch.ones(4).untyped_storage(), n * 2**8, (2,), (1,)),
    "set_, sizes": lambda n: torch.ones(2).set_(torch.ones(4).untyped_storage(), 0, (n, n), (n, 1)),
    "set_, strides": lambda n: torch.ones(2).set_(
        torch.ones(4).untyped_storage(), 0, (9,), (n * 32,)
    ),
    "storage": lambda n: torch.UntypedStorage(n * 2**10),
    "resized storage": lambda n: torch.ones(2).untyped_storage().resize_(n * 2**10),
    "expand": lambda n: X[:1].expand(n, n, 3).contiguous(),
    "expand, sum of sizes": lambda n: torch.ones(1, 1).expand(n, n).numel(),
    "repeat": lambda n: X.repeat(n, n),
    "tile": lambda n: torch.tile(X, (n, n)),
    "repeat_interleave": lambda n: X.repeat_interleave(n * 2**10),
    "repeat_interleave by counts": lambda n: torch.repeat_interleave(torch.tensor([n, n])),
    "unfold": lambda n: X.unfold(1, n, 1),
    "unfold, step": lambda n: X.unfold(0, 1, n).numel() > 0 or X.unfold(0, 3, n),
    "F.unfold": lambda n: F.unfold(IMAGE, 3, padding=n),
    "F.unfold, dilation": lambda n: F.unfold(IMAGE, 3, dilation=n),
    "F.fold": lambda n: F.fold(torch.ones(1, 18, 4), (n, n), 3),
    "pad": lambda n: F.pad(X, (n, n)),
    "pad by replicas": lambda n: F.pad(IMAGE, (n, n, n, n), mode="replicate"),
    "convolution, padding": lambda n: F.conv2d(IMAGE, FILTER, padding=n),
    "convolution, dilation": lambda n: F.conv2d(IMAGE, FILTER, dilation=n),
    "convolution, both": lambda n: F.conv2d(IMAGE, FILTER, padding=n, stride=n, dilation=n),
    "transposed convolution": lambda n: F.conv_transpose2d(IMAGE, FILTER, stride=n),
    "transposed convolution, padding": lambda n: F.conv_transpose2d(IMAGE, FILTER, padding=n),
    "max_pool2d": lambda n: F.max_pool2d(IMAGE, n),
    "max_pool2d, dilation": lambda n: F.max_pool2d(IMAGE, 2, dilation=n),
    "avg_pool2d": lambda n: F.avg_pool2d(IMAGE, n, n, padding=n // 2),
    "adaptive_avg_pool2d": lambda n: F.adaptive_avg_pool2d(IMAGE, n),
    "adaptive_max_pool2d": lambda n: F.adaptive_max_pool2d(IMAGE, n),
    "interpolate": lambda n: F.interpolate(IMAGE, size=(n, n)),
    "interpolate by a factor": lambda n: F.interpolate(IMAGE, scale_factor=float(n)),
    "one_hot": lambda n: F.one_hot(torch.tensor([0, 1]), n * 2**10),
    "bincount": lambda n: torch.bincount(torch.tensor([n])) if n > 2**40 else torch.empty(n, n),
    "bincount, minlength": lambda n: torch.bincount(torch.tensor([1]), minlength=n * 2**10),
    "diag_embed": lambda n: torch.diag_embed(X, n),
    "nn.Embedding": lambda n: torch.nn.Embedding(n, 2**20),
    "frombuffer, count": lambda n: torch.frombuffer(b"12345678", dtype=torch.float32, count=n),
    "frombuffer, offset": lambda n: torch.frombuffer(b"12345678", dtype=torch.float32, offset=n),
    "reshape": lambda n: X.reshape(n, n),
    "view": lambda n: X.view(n, -1),
    "narrow": lambda n: X.narrow(0, n, n),
    "select": lambda n: X.select(0, n),
    "pixel_shuffle": lambda n: F.pixel_shuffle(IMAGE, n),
    "movedim": lambda n: X.movedim(n, 0),
    "split": lambda n: X.split([n, n]),
    "unflatten": lambda n: X.unflatten(0, (n, n)),
    "triu": lambda n: torch.triu_indices(n, n, -n),
    "multinomial": lambda n: torch.multinomial(torch.ones(3), n * 2**10, replacement=True),
    "randperm": lambda n: torch.randperm(n * 2**10),
}
WITHOUT_ERROR = {"empty with a 0", "resize_ with a 0"}


@pytest.mark.parametrize("n", BIG)
@pytest.mark.parametrize("name", CALLS)
def test_products_that_overflow(name: str, n: int) -> None:
    before = torch.cpu.memory_stats()["allocated_bytes.all.peak"]
    try:
        result = CALLS[name](n)
    except (RuntimeError, ValueError, IndexError, TypeError, OverflowError):
        pass  # OutOfMemoryError is a RuntimeError
    else:
        assert (
            name in WITHOUT_ERROR or not isinstance(result, torch.Tensor) or result.numel() < 2**40
        )
        assert not isinstance(result, int) or 0 <= result < 2**63
    assert torch.cpu.memory_stats()["allocated_bytes.all.peak"] - before < 2**30
    assert X.sum().item() == 6 and ctypes.sizeof(ctypes.c_float) * X.numel() == X.nbytes
    assert np.array(X).sum() == 6


def test_equal_compares_what_is_repeated_once() -> None:
    n = 1 << 40
    zeros, ones = torch.zeros(3, 1), torch.ones(3, 1)
    assert torch.equal(zeros.expand(3, n), zeros.clone().expand(3, n))
    assert not torch.equal(zeros.expand(3, n), ones.expand(3, n))
    assert not torch.equal(
        torch.tensor([[0.0], [1.0]]).expand(2, n), torch.zeros(2, 1).expand(2, n)
    )
    one = torch.zeros(4, 1).expand(4, 3)
    assert torch.equal(one, torch.zeros(4, 3))
    assert not torch.equal(one, torch.tensor([[0.0, 0, 1]] * 4))
    assert not torch.equal(torch.full((1,), float("nan")).expand(n), torch.zeros(1).expand(n))


@pytest.mark.parametrize("name", ["argmax", "softmax", "logsumexp"])
def test_copies_of_what_is_repeated_are_refused_at_once(name: str) -> None:
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 4\.00 TiB"):
        getattr(torch.zeros(1).expand(1 << 40), name)(0)
