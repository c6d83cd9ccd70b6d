"""Products with sparse matrices against PyTorch, and their gradients against dense ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sparse.both import compare, plain, same
from tests.sparse.test_tensors import cases

import taeda

torch = pytest.importorskip("torch")

DENSE = [[1.0, 0.0, 2.0], [0.0, 3.0, -2.0]]
VALUES: dict[str, Any] = {
    "s": lambda t: t.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, -1.0], (2, 3)),
    "c": lambda t: t.tensor(DENSE).to_sparse(),
    "r": lambda t: t.tensor(DENSE).to_sparse_csr(),
    "k": lambda t: t.tensor(DENSE).to_sparse_csc(),
    "d": lambda t: t.arange(12.0).reshape(3, 4),
    "u": lambda t: t.arange(4.0).reshape(2, 2),
    "w": lambda t: t.arange(3.0),
    "e": lambda t: t.sparse_coo_tensor((2, 3)),
    "q": lambda t: t.tensor([DENSE, DENSE]).to_sparse(),
}

PRODUCTS = """
s @ d
c @ d
r @ d
k @ d
e @ d
torch.mm(s, d)
torch.spmm(s, d)
torch.dsmm(s, d)
torch.sparse.mm(s, d)
torch.sparse.mm(r, d)
torch.sparse.mm(c, c.t())
torch.sparse.mm(s, s.t())
torch.sparse.mm(r, r.t().to_sparse_csr()).to_dense()
torch.sparse.mm(u, d[:2])
torch.sparse.mm(r, d, "mean")
torch.sparse.mm(r, d, "amax")
torch.sparse.mm(r, d, "foo")
s @ s.t()
u @ s
u @ c
u @ r
s @ w
r @ w
torch.mv(c, w)
torch.addmm(torch.ones(2, 4), s, d)
torch.addmm(torch.ones(4), s, d, beta=2, alpha=3)
torch.sparse.addmm(torch.ones(2, 4), s, d, beta=2, alpha=3)
torch.hspmm(s, d)
torch.smm(s, d)
torch.sspaddmm(torch.ones(2, 4).to_sparse(), s, d)
torch.bmm(q, torch.ones(2, 3, 1))
torch.sparse.sampled_addmm(r, u, torch.ones(2, 3), beta=0.5)
c @ c
torch.nn.functional.linear(c, u[:, :1].expand(2, 3))
torch.nn.functional.linear(s, torch.ones(2, 3), torch.ones(2))
torch.mm(s, d.double())
(c * 1j) @ (d * (1 + 1j))
c.long() @ d.long()
"""


@cases(PRODUCTS)
def test_products(code: str) -> None:
    compare(torch, code, VALUES)


LARGE = """
torch.sparse.mm(a, x)
torch.sparse.mm(a, x) ** 2
torch.sparse.mm(a, b).to_dense() * x[0, 0]
torch.sparse.addmm(x[:1], a, x)
torch.mm(a.detach(), x)
torch.nn.functional.linear(a.detach().to_sparse(), x, x[0])
"""


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@cases(LARGE)
def test_gradients(code: str, layout: str) -> None:
    if layout == "sparse_csr" and "(a, b)" in code:
        pytest.skip("PyTorch has no gradient of this")
    found = []
    for framework in (taeda, torch):
        framework.manual_seed(0)
        pattern = (framework.arange(35 * 35).reshape(35, 35) * 7919 % 101 < 9).double()
        numbers = framework.arange(35.0 * 35, dtype=framework.float64).reshape(35, 35) % 13 - 6
        full = pattern * numbers
        a = full.to_sparse(layout=getattr(framework, layout)).requires_grad_()
        b = full.t().to_sparse(layout=getattr(framework, layout))
        x = (numbers / 7).requires_grad_()
        result = eval(code, {"torch": framework, "a": a, "b": b, "x": x})
        (result * numbers.cos()).sum().backward()
        grads = [g for g in (a.grad, x.grad) if g is not None]
        found.append([plain(result), *(plain(g.to_dense()) for g in grads)])
    same(*found, tolerance=1e-9)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_gradcheck(layout: str) -> None:
    a = taeda.tensor(DENSE, dtype=taeda.float64).to_sparse(layout=getattr(taeda, layout))
    a.requires_grad_()
    x = taeda.arange(12.0, dtype=taeda.float64).reshape(3, 4).requires_grad_()
    check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradcheck)
    assert check(taeda.sparse.mm, (a, x), masked=True)
    check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradgradcheck)
    assert check(taeda.sparse.mm, (a, x), masked=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int64"])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_dtypes(dtype: str, layout: str) -> None:
    kind = getattr(taeda, dtype)
    a = taeda.tensor(DENSE).to(kind).to_sparse(layout=getattr(taeda, layout))
    x = taeda.arange(12).reshape(3, 4).to(kind)
    assert taeda.equal(taeda.sparse.mm(a, x), taeda.tensor(DENSE).to(kind) @ x)


def test_no_rows_no_columns() -> None:
    for rows, columns, width in ((0, 3, 2), (2, 0, 2), (2, 3, 0)):
        a = taeda.zeros(rows, columns).to_sparse()
        assert taeda.sparse.mm(a, taeda.ones(columns, width)).shape == (rows, width)


def test_shapes_are_checked() -> None:
    a = taeda.tensor(DENSE).to_sparse()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        taeda.sparse.mm(a, taeda.ones(2, 2))
    with pytest.raises(RuntimeError, match="found idx to be 9"):  # a coordinate outside
        taeda.sparse.mm(taeda.sparse_coo_tensor([[0], [9]], [1.0], (2, 3)), taeda.ones(3, 1))
