"""No operator writes to memory that is mapped for reading only: that would end the process."""

from __future__ import annotations

import mmap
import warnings
from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load
from tests.ops import samples as grid

import taeda

WRITING = [
    op
    for op in load(Path(__file__).resolve().parents[2] / "ops")
    if grid.samples(op) and f"Tensor.{op.name}" in op.python and "inplace" in op.variants
]


def read_only(t: Any) -> Any:
    """A tensor of that shape and dtype on a page that the kernel lets nobody write."""
    memory = mmap.mmap(-1, max(1, t.nbytes), prot=mmap.PROT_READ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return taeda.frombuffer(memory, dtype=t.dtype, count=t.numel()).reshape(t.shape)


@pytest.mark.parametrize("op", WRITING, ids=[op.ident for op in WRITING])
def test_in_place(op: Op) -> None:
    dtype = next((d for d in ("float32", "int64", "bool") if d in grid.dtypes(op)), "float32")
    for sample in grid.samples(op):
        args, options = grid.maker(op, taeda, dtype, sample=sample).arguments(sample)
        result = grid.place(op, taeda)(*args, **options)
        same = isinstance(result, taeda.Tensor) and isinstance(args[0], taeda.Tensor)
        if not same or (result.shape, result.dtype) != (args[0].shape, args[0].dtype):
            continue
        if args[0].numel() == 0 or op.changes_layout:
            continue
        with pytest.raises(RuntimeError, match="read-only"):
            getattr(read_only(args[0]), op.name + "_")(*args[1:], **options)


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.zero_(),
        lambda t: t.fill_(1),
        lambda t: t.copy_(taeda.ones(4)),
        lambda t: t.normal_(),
        lambda t: t.uniform_(),
        lambda t: t.random_(),
        lambda t: t.bernoulli_(),
        lambda t: t.exponential_(),
        lambda t: t.index_fill_(0, taeda.tensor([0]), 1.0),
        lambda t: t.index_add_(0, taeda.tensor([0]), taeda.ones(1)),
        lambda t: t.index_copy_(0, taeda.tensor([0]), taeda.ones(1)),
        lambda t: t.index_put_((taeda.tensor([0]),), taeda.ones(1)),
        lambda t: t.scatter_(0, taeda.tensor([0]), 1.0),
        lambda t: t.scatter_add_(0, taeda.tensor([0]), taeda.ones(1)),
        lambda t: t.put_(taeda.tensor([0]), taeda.ones(1)),
        lambda t: t.masked_scatter_(t == 0, taeda.ones(4)),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.__setitem__(slice(2), taeda.ones(2)),
        lambda t: taeda.add(taeda.ones(4), 1, out=t),
        lambda t: taeda.cumsum(taeda.ones(4), 0, out=t),
        lambda t: taeda.nn.init.kaiming_uniform_(t.reshape(2, 2)),
        lambda t: t.reshape(2, 2).fill_diagonal_(1.0),
        lambda t: t.view(2, 2).t().add_(1),
    ],
)
def test_writes(write: Any) -> None:
    with pytest.raises(RuntimeError, match="read-only"):
        write(read_only(taeda.ones(4)))
