"""Compressed layouts against PyTorch: making, printing, converting, checks."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests.sparse.both import compare, plain, same
from tests.sparse.test_tensors import cases

import taeda

torch = pytest.importorskip("torch")

VALUES: dict[str, Any] = {
    "d": lambda t: t.tensor(
        [[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 5.0]]
    ),
    "b": lambda t: t.tensor([[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [4.0, 0.0]]]),
    "r": lambda t: t.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3)),
    "C": lambda t: {"check_invariants": True},
}

MAKING = """
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 4))
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], size=(2, 4), dtype=torch.float64)
torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=torch.sparse_csc)
torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1.0]], [[2.0]]])
torch.sparse_bsc_tensor([0, 1, 2], [0, 1], [[[1.0]], [[2.0]]])
torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 2]], [[0, 1], [0, 1]], [[1.0, 2.0], [3, 4]])
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [[1.0, 2.0], [3, 4]])
torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2), **C)
torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2), **C)
torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2), **C)
torch.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), **C)
torch.sparse_csr_tensor([0, 2, 1, 2], [1, 0], [1.0, 2.0], (3, 2), **C)
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2), **C)
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0, 3.0], (2, 2), **C)
d.to_sparse_csr()
d.to_sparse_csc()
d.to_sparse_bsr((2, 2))
d.to_sparse_bsc((2, 2))
d.to_sparse_bsr((1, 2))
d.to_sparse_bsr(3)
d.to_sparse(layout=torch.sparse_bsr)
d.to_sparse().to_sparse_csr()
d.to_sparse_csr().to_sparse()
d.to_sparse_csc().to_sparse()
d.to_sparse_csr().to_sparse_csc()
d.to_sparse_csr(1)
b.to_sparse_csr()
b.to_sparse_csr(dense_dim=1)
r * 2
r.requires_grad_()
"""


@cases(MAKING)
def test_making_and_printing(code: str) -> None:
    compare(torch, code, VALUES, text=True)


READING = """
r.values()
r.crow_indices()
r.col_indices()
r.ccol_indices()
r.indices()
r.coalesce()
r._nnz()
r.is_sparse
r.is_sparse_csr
r.sparse_dim()
r.dense_dim()
r.t()
r.t().to_dense()
r.to_dense()
d.to_sparse_bsr((2, 2)).to_dense()
d.to_sparse_bsc((2, 2)).to_dense()
d.to_sparse_bsr((2, 2)).t().to_dense()
d.to_sparse_csc().to_dense()
b.to_sparse_csr().to_dense()
b.to_sparse_csr(dense_dim=1).to_dense()
torch.ones(2).crow_indices()
r.clone()
r.detach().to_dense()
r.double()
torch.zeros_like(r)
str(torch.empty_like(r).layout)
r.copy_(r * 2)
d[:2, :3].sparse_mask(r)
"""


@cases(READING)
def test_reading(code: str) -> None:
    compare(torch, code, VALUES)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_gradient_through_conversions(layout: str) -> None:
    d = VALUES["d"](taeda).double().requires_grad_()
    block = {"blocksize": (2, 2)} if layout.startswith("b") else {}
    s = d.to_sparse(layout=getattr(taeda, f"sparse_{layout}"), **block)
    (s.to_dense() * taeda.arange(16.0).reshape(4, 4)).sum().backward()
    filled = s.detach().to_sparse()
    expected = np.zeros((4, 4))
    if layout.startswith("b"):  # whole blocks are values
        expected[:] = np.arange(16.0).reshape(4, 4)
        assert not (d.detach()[:2, 2:] == 0).all()
    else:
        rows, columns = filled.coalesce().indices().tolist()
        expected[rows, columns] = np.arange(16.0).reshape(4, 4)[rows, columns]
    np.testing.assert_array_equal(d.grad.to_dense().numpy(), expected)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_go_both_ways(layout: str, weights_only: bool) -> None:
    block = {"blocksize": (2, 2)} if layout.startswith("b") else {}
    for writer, reader in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        file = io.BytesIO()
        x = VALUES["d"](writer).to_sparse(layout=getattr(writer, f"sparse_{layout}"), **block)
        writer.save({"x": x}, file)
        file.seek(0)
        if (reader, weights_only) == (torch, False):
            continue  # PyTorch finds taeda's functions under its own names either way
        found = reader.load(file, weights_only=weights_only)["x"]
        same(plain(found), plain(x))


def test_files_with_coordinates_outside_are_refused() -> None:
    file = io.BytesIO()
    taeda.save(taeda.sparse_coo_tensor([[0], [9]], [1.0], (2, 3)), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        taeda.load(file, weights_only=True)


def test_copies() -> None:
    import copy
    import pickle

    for x in (VALUES["r"](taeda), VALUES["d"](taeda).to_sparse()):
        for y in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
            same(plain(y), plain(x))
        assert copy.deepcopy(x)._values().data_ptr() != x._values().data_ptr()
