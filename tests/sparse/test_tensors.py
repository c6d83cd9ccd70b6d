"""Coordinate tensors against PyTorch: making, printing, converting, errors, gradients."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sparse.both import compare, plain, run, same

import taeda

torch = pytest.importorskip("torch")

VALUES: dict[str, Any] = {
    "i": lambda t: t.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]),
    "v": lambda t: t.tensor([3.0, 4.0, 5.0, -1.0]),
    "s": lambda t: t.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, -1.0], (2, 3)),
    "h": lambda t: t.sparse_coo_tensor([[2, 0, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2)),
    "e": lambda t: t.sparse_coo_tensor((3, 2)),
    "n": lambda t: t.sparse_coo_tensor([[0, 1, 0]], [1, 2, 3], (2,)),
    "b": lambda t: t.sparse_coo_tensor([[0, 1, 0]], [True, False, True], (2,)),
    "z": lambda t: t.sparse_coo_tensor([[1, 1]], [1 + 2j, 3j], (2,)),
    "d": lambda t: t.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]]),
}

MAKING = """
torch.sparse_coo_tensor(i, v)
torch.sparse_coo_tensor([[0, 1]], [[1, 2], [3, 4]])
torch.sparse_coo_tensor(i, v, (3, 4))
torch.sparse_coo_tensor(i, v, (2,))
torch.sparse_coo_tensor(-i, v)
torch.sparse_coo_tensor(i, v[:2], (2, 3))
torch.sparse_coo_tensor(i.float(), v, (2, 3))
torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor((2, 3), dtype=torch.float64)
torch.sparse_coo_tensor(torch.zeros(1, 0), torch.zeros(0, 4))
torch.sparse_coo_tensor(torch.zeros(1, 0), [], [3])
torch.sparse_coo_tensor(i, v, (2, 3), dtype=torch.float64, requires_grad=True)
torch.sparse_coo_tensor(i, v, (2, 3), is_coalesced=True)
torch.sparse_coo_tensor(i, torch.ones(4, 2), (2, 3, 2))
torch.sparse_coo_tensor(i, torch.ones(4, 2), (2, 3, 3))
torch.sparse_coo_tensor([[0]], 3.0, (2,))
torch.sparse_coo_tensor(i, v, (2, 2), check_invariants=True)
torch.sparse_coo_tensor(-i, v, (2, 3), check_invariants=True)
torch.sparse_coo_tensor(i, v, (2, 3), check_invariants=True, is_coalesced=True)
torch.sparse_coo_tensor(i, torch.ones(4, 0), (2, 3, 0))
torch.sparse_coo_tensor(torch.zeros(0, 4, dtype=torch.long), v, ())
torch.sparse.FloatTensor(i, v, (2, 3))
torch.sparse.DoubleTensor(i, v.double())
torch.sparse.FloatTensor(2, 3)
s
h
e
n
b
z
s * 2
s.requires_grad_() * 2
s.half()
s.to(torch.float64)
s.long()
"""

READING = """
s.values()
s.indices()
s.coalesce().values()
s.coalesce().indices()
s.coalesce().coalesce().is_coalesced()
(s + s).coalesce().is_coalesced()
e.is_coalesced()
torch.sparse_coo_tensor([[1]], [2.0]).is_coalesced()
d.to_sparse().is_coalesced()
(d.to_sparse() + d.to_sparse()).is_coalesced()
d.to_sparse()[1].is_coalesced()
d.to_sparse().t().is_coalesced()
d.to_sparse().abs().is_coalesced()
h.coalesce()
e.coalesce()
n.coalesce()
b.coalesce()
z.coalesce()
s._nnz()
s.is_sparse
s.is_sparse_csr
s.is_coalesced()
s.type()
s.numel()
s.dim()
s.stride()
s.is_contiguous()
len(s)
s.element_size()
s.is_floating_point()
s.data_ptr()
s.untyped_storage()
s.numpy()
s.tolist()
s.item()
torch.ones(2).values()
torch.ones(2).coalesce()
torch.ones(2).is_coalesced()
torch.ones(2).indices()
torch.ones(2, 2).sparse_dim()
torch.ones(2, 2).dense_dim()
torch.ones(2).to_dense()
s.crow_indices()
"""

CONVERTING = """
s.to_dense()
h.to_dense()
e.to_dense()
n.to_dense()
b.to_dense()
z.to_dense()
s.to_sparse().is_coalesced()
d.to_sparse()
d.to_sparse(1)
d.to_sparse(3)
d.to_sparse_coo()
d.bool().to_sparse()
torch.zeros(2, 0).to_sparse()
torch.zeros(3, 2).to_sparse()
torch.tensor(3.0).to_sparse()
torch.tensor(0.0).to_sparse()
d.to_sparse(layout=torch.strided)
d.sparse_mask(s.coalesce())
d.sparse_mask(s)
d.sparse_mask(d)
d.to_sparse().sparse_mask(s.coalesce())
torch.ones(4, 2).sparse_mask(h.coalesce())
s.clone()
s.detach()
s.zero_()
h.zero_()
torch.zeros_like(s)
torch.empty_like(h)
s.new_zeros(2, 2)
s.copy_(s * 2)
s.copy_(d)
d.copy_(s)
s.sparse_resize_((4, 4), 2, 0)
s.sparse_resize_and_clear_((2, 2), 1, 1)
s.cpu()
s.resize_(3, 3)
"""


def cases(text: str) -> Any:
    return pytest.mark.parametrize("code", text.strip().splitlines())


@cases(MAKING)
def test_making_and_printing(code: str) -> None:
    compare(torch, code, VALUES, text=True)


@cases(READING)
def test_reading(code: str) -> None:
    compare(torch, code, VALUES)


@cases(CONVERTING)
def test_converting(code: str) -> None:
    compare(torch, code, VALUES)


GRADIENTS = """
torch.sparse_coo_tensor(i, x, (2, 3)).to_dense()
torch.sparse_coo_tensor(i, x, (2, 3)).coalesce().values()
torch.sparse_coo_tensor(i, x, (2, 3)) * d
torch.sparse_coo_tensor(i, x, (2, 3)).coalesce().to_dense() ** 2
(torch.sparse_coo_tensor(i, x, (2, 3)) * 3).to_dense()
torch.sparse.sum(torch.sparse_coo_tensor(i, x, (2, 3)), 0).to_dense()
torch.sparse_coo_tensor(i, x, (2, 3)).t().to_dense() ** 2
(torch.sparse_coo_tensor(i, x, (2, 3)) + s).to_dense() ** 2
(d + torch.sparse_coo_tensor(i, x, (2, 3))) ** 2
(x[0] * d).sparse_mask(s.coalesce()).values() ** 2
(x[0] * d).to_sparse().values() ** 2
"""


def loss(framework: Any, result: Any) -> Any:
    if result.is_sparse:
        result = result.to_dense()
    weights = framework.arange(1.0, result.numel() + 1, dtype=result.dtype)
    return (result.reshape(-1) * weights).sum()


@cases(GRADIENTS)
def test_gradients(code: str) -> None:
    found = []
    for framework in (taeda, torch):
        x = framework.tensor([3.0, 4.0, 5.0, -1.0], dtype=framework.float64, requires_grad=True)
        values = {
            **VALUES,
            "x": lambda t, x=x: x,
            "d": lambda t: VALUES["d"](t).double(),
            "s": lambda t: VALUES["s"](t).double(),
        }
        loss(framework, run(framework, code, values)).backward()
        found.append(plain(x.grad))
    same(*found)


@pytest.mark.parametrize("masked", [None, True, False])
def test_gradient_of_to_dense(masked: bool | None) -> None:
    found = []
    for framework in (taeda, torch):
        x = VALUES["s"](framework).coalesce().detach().requires_grad_()
        loss(framework, x.to_dense(masked_grad=masked)).backward()
        found.append(plain(x.grad))
    same(*found)


def test_leaves_add_up_gradients_of_both_layouts() -> None:
    for order in ((0, 1), (1, 0), (0, 0)):
        found = []
        for framework in (taeda, torch):
            weight = framework.ones(4, 2, requires_grad=True)
            uses = (
                lambda t, w: t.nn.functional.embedding(t.tensor([1, 2, 1]), w, sparse=True).sum(),
                lambda t, w: (w * w).sum(),
            )
            for k in order:
                uses[k](framework, weight).backward()
            found.append(plain(weight.grad))
        same(*found)


def test_one_backward_adds_up_gradients_of_both_layouts() -> None:
    found = []
    for framework in (taeda, torch):
        weight = framework.ones(4, 2, requires_grad=True)
        rows = framework.nn.functional.embedding(framework.tensor([1, 2, 1]), weight, sparse=True)
        (rows.sum() + (weight * 3).sum() + rows.pow(2).sum()).backward()
        found.append(plain(weight.grad.to_dense() if weight.grad.is_sparse else weight.grad))
    same(*found)


def test_operators_without_a_rule_refuse() -> None:
    for code in ("s.exp()", "s.max()", "s.argmax()", "s == s", "s.view(3, 2)", "s.sort()"):
        with pytest.raises(NotImplementedError, match="SparseCPU"):
            eval(code, {"s": VALUES["s"](taeda)})


def test_values_share_memory() -> None:
    values = taeda.ones(3)
    x = taeda.sparse_coo_tensor([[0, 1, 2]], values, (3,), is_coalesced=True)
    x.mul_(2)
    assert values.tolist() == [2, 2, 2]
    x.values().add_(1)
    assert x.to_dense().tolist() == [3, 3, 3]


def test_written_after_it_was_saved() -> None:
    x = taeda.eye(2).to_sparse()
    w = taeda.ones(2, 2, requires_grad=True)
    y = taeda.mm(x, w)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sizes_alone():
    found = []
    for lib in (taeda, torch):
        for options in ({}, {"dtype": lib.float64, "requires_grad": True}):
            for x in (
                lib.sparse_coo_tensor(size=(2, 3), **options),
                lib.sparse_coo_tensor((2, 3), **options),
            ):
                sizes = [*x.shape, *x._indices().shape, *x._values().shape, x._nnz()]
                found.append((sizes, str(x.dtype), x.requires_grad, x.to_dense().tolist()))
        with pytest.raises(TypeError):
            lib.sparse_coo_tensor()
    assert found[:4] == found[4:]


def test_only_sparse_matrices_are_transposed_by_t():
    torch = pytest.importorskip("torch")

    def outcomes(of):
        found = []
        for shape, dims in (
            ((2, 3), 2),
            ((3,), 1),
            ((), 0),
            ((2, 3, 4), 3),
            ((2, 2, 2), 2),
            ((2, 2), 1),
        ):
            x = of.ones(shape).to_sparse(dims) if dims else of.tensor(1.0).to_sparse()
            for change in (lambda x: x.t(), lambda x: x.clone().t_()):
                try:
                    found.append(tuple(change(x).shape))
                except RuntimeError as error:
                    found.append(str(error).replace("t_()", "t()"))
        return found

    assert outcomes(taeda) == outcomes(torch)
