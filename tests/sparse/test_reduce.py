"""Sums, softmax and norms of sparse tensors against PyTorch."""

from __future__ import annotations

import pytest
from tests.sparse.both import compare, plain, same
from tests.sparse.test_tensors import VALUES, cases

import taeda

torch = pytest.importorskip("torch")

SUMS = """
s.sum()
s.sum(0)
s.sum(1)
s.sum((0, 1))
s.sum(0, keepdim=True)
n.sum()
b.sum()
e.sum()
h.sum(1)
h.sum(0)
h.sum(0, dtype=torch.float64)
s.coalesce().any()
s.norm()
s.norm(1)
s.mean()
torch.sparse.sum(s)
torch.sparse.sum(s, 0)
torch.sparse.sum(s, (0, 1))
torch.sparse.sum(s, -1, dtype=torch.float64)
torch.sparse.sum(h, 0)
torch.sparse.sum(h, 1)
torch.sparse.sum(e, 0)
torch.sparse.softmax(s.coalesce(), 1)
torch.sparse.softmax(s, 0)
torch.sparse.softmax(h, 1)
torch.sparse.log_softmax(s.coalesce(), 1)
torch.sparse.log_softmax(h, 0)
torch.sparse.softmax(s, 1, dtype=torch.float64)
torch.sparse.softmax(e, 1)
d.to_sparse_csr().sum()
d.to_sparse_csr().sum(0, keepdim=True)
d.to_sparse_csr().sum(0)
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, -1]), (3, 3))
torch.sparse.spdiags(torch.ones(3, 3), torch.tensor([0, 1, 2]), (3, 3), torch.sparse_csr)
torch.sparse.spdiags(torch.arange(4.0), torch.tensor(1), (3, 5))
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 0]), (3, 3))
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0]), (3, 3))
"""


@cases(SUMS)
def test_sums(code: str) -> None:
    compare(torch, code, VALUES)


GRADIENTS = """
torch.sparse.sum(x)
torch.sparse.sum(x, 0).to_dense()
torch.sparse.sum(x, (0, 1))
torch.sparse.softmax(x, 1).to_dense()
torch.sparse.softmax(x, 0).to_dense()
torch.sparse.log_softmax(x, 1).to_dense()
"""


@cases(GRADIENTS)
def test_gradients(code: str) -> None:
    found = []
    for framework in (taeda, torch):
        x = VALUES["s"](framework).double().coalesce().detach().requires_grad_()
        result = eval(code, {"torch": framework, "x": x})
        weights = framework.arange(1.0, result.numel() + 1, dtype=result.dtype)
        (result.reshape(-1) * weights).sum().backward()
        found.append(plain(x.grad.coalesce()))
    same(*found)


def test_softmax_twice_differentiable() -> None:
    x = VALUES["s"](taeda).double().coalesce().detach().requires_grad_()
    check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradgradcheck)
    assert check(lambda a: taeda.sparse.softmax(a, 1), (x,), masked=True)


@pytest.mark.parametrize("layout", ["to_sparse_bsr", "to_sparse_bsc"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_tensors_of_blocks_are_not_summed_along_dimensions(layout, keepdim):
    for framework in (taeda, torch):
        x = getattr(framework.eye(4), layout)((2, 2))
        with pytest.raises(RuntimeError):
            x.sum(1, keepdim=keepdim)
    assert getattr(taeda.eye(4), layout)((2, 2)).sum().item() == 4
