"""Arithmetic and dimensions of sparse tensors against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sparse.both import compare
from tests.sparse.test_tensors import VALUES as TENSORS
from tests.sparse.test_tensors import cases

torch = pytest.importorskip("torch")

VALUES: dict[str, Any] = {
    **TENSORS,
    "c": lambda t: t.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, -2.0]]).to_sparse(),
    "p": lambda t: t.tensor([[0.25, 0.0], [0.0, 0.5]]).to_sparse(),
    "r": lambda t: t.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, -2.0]]).to_sparse_csr(),
}

ARITHMETIC = """
s + s
c + c
s + c
c.add(s, alpha=2)
s - s
c - c
c - c * 2
c + d
d + c
d + s
d - c
d.add(s, alpha=-3)
d.add_(s)
d.add_(s, alpha=2)
s.add_(s)
c.sub_(c)
c + 1
c - 1
1 - c
c + e
torch.ones(4, 2) + h
h + h
h * h
h * torch.full((4, 2), 2.0)
c * c
c * d
d * c
c * 2
2 * c
c * torch.tensor(2.0)
c * torch.tensor([2, 3, 4])
c * torch.ones(2, 1)
c.mul_(3)
s.mul_(3)
c * 2j
n * 2
n * 2.5
n / 2
c / 2
c / d
c.div(2, rounding_mode="floor")
c.div_(4)
c // 2
-s
c.neg_()
c ** 2
c.pow(3)
c.abs()
s.abs()
c.sqrt()
p.asin()
p.atan()
p.sin()
p.tan()
p.sinh()
p.tanh()
p.expm1()
p.log1p()
p.erf()
c.floor()
c.ceil()
c.round()
c.trunc()
c.sign()
c.sgn()
c.isnan()
c.isinf()
c.relu()
torch.nn.functional.relu(c)
c.square()
z.abs()
z.conj()
r * 2
r + r
r * r
r * d
r.sin()
r.neg()
r + d
d + r
-r
r.abs()
"""

DIMENSIONS = """
s.t()
s.T
c.t().is_coalesced()
s.transpose(0, 1)
h.transpose(0, 0)
s.permute(1, 0)
s.permute(0)
s.transpose_(0, 1)
s.unsqueeze(0)
s.unsqueeze(1)
s.unsqueeze(-1)
h.unsqueeze(2)
s[0]
s[-1]
s[:, 2]
s[0, 2]
c[1]
h[2]
h[:, 1]
s[None]
s.select(1, 2)
s[5]
list(s)
c.unbind(1)
s.index_select(0, torch.tensor([1, 0, 1]))
c.index_select(1, torch.tensor([2, 2]))
h.index_select(1, torch.tensor([1]))
e.index_select(0, torch.tensor([0, 0]))
torch.cat([s, c])
torch.cat([s, c], 1)
torch.cat([h, h], 1)
torch.cat([s, d])
torch.stack([s, c])
torch.cat([c, e])
r.t()
r.transpose(0, 1).t()
s.view(3, 2)
s.expand(2, 2, 3)
"""


@cases(ARITHMETIC)
def test_arithmetic(code: str) -> None:
    compare(torch, code, VALUES)


@cases(DIMENSIONS)
def test_dimensions(code: str) -> None:
    compare(torch, code, VALUES)
