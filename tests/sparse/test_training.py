"""Sparse gradients in training, against PyTorch: embeddings and optimizers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sparse.both import plain, run, same
from tests.sparse.test_tensors import cases

import taeda

torch = pytest.importorskip("torch")

OPTIMIZERS = """
torch.optim.SparseAdam([w], lr=0.1)
torch.optim.SparseAdam([w], lr=0.1, betas=(0.5, 0.6), eps=1e-4, maximize=True)
torch.optim.SGD([w], lr=0.1)
torch.optim.SGD([w], lr=0.1, momentum=0.9)
torch.optim.SGD([w], lr=0.1, maximize=True)
torch.optim.Adagrad([w], lr=0.1)
torch.optim.Adagrad([w], lr=0.1, lr_decay=0.2, initial_accumulator_value=0.3)
torch.optim.Adam([w], lr=0.1)
torch.optim.RMSprop([w], lr=0.1)
torch.optim.Adagrad([w], lr=0.1, weight_decay=0.1)
torch.optim.SparseAdam([w], lr=0.0)
torch.optim.SparseAdam([w], betas=(1.0, 0.9))
"""
BATCHES = [[1, 2, 1], [3], [0, 0, 2], [4, 1]]


def train(framework: Any, code: str) -> list:
    w = (framework.arange(12.0, dtype=framework.float64).reshape(6, 2) / 7).requires_grad_()
    made = run(framework, code, {"w": lambda _: w})
    if isinstance(made, list):
        return made
    try:
        for batch in BATCHES:
            made.zero_grad()
            rows = framework.nn.functional.embedding(framework.tensor(batch), w, sparse=True)
            (rows.pow(3).sum() / 9).backward()
            made.step()
    except RuntimeError as error:
        return [str(error)]
    return [plain(w)]


@cases(OPTIMIZERS)
def test_optimizers(code: str) -> None:
    same(train(taeda, code), train(torch, code))


def test_sparse_adam_takes_no_dense_gradient() -> None:
    p = taeda.nn.Parameter(taeda.ones(2, 2))
    p.grad = taeda.ones(2, 2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        taeda.optim.SparseAdam([p]).step()
    with pytest.raises(ValueError, match="requires dense parameter tensors"):
        taeda.optim.SparseAdam([taeda.eye(2).to_sparse().requires_grad_()])


MODULES = """
torch.nn.functional.embedding(i, w, sparse=True)
torch.nn.functional.embedding(i, w, padding_idx=1, sparse=True)
torch.nn.functional.embedding_bag(i, w, sparse=True, mode="sum")
torch.nn.functional.embedding_bag(i, w, sparse=True, mode="mean")
torch.nn.functional.embedding_bag(i.reshape(-1), w, torch.tensor([0, 2]), sparse=True, mode="sum")
torch.nn.Embedding.from_pretrained(w.detach(), freeze=False, sparse=True)(i)
"""


@cases(MODULES)
def test_gradients_of_embeddings(code: str) -> None:
    found = []
    for framework in (taeda, torch):
        w = framework.arange(12.0).reshape(6, 2).requires_grad_()
        values = {"w": lambda _, w=w: w, "i": lambda t: t.tensor([[1, 2, 1], [0, 1, 5]])}
        result = run(framework, code, values)
        weights = framework.arange(1.0, result.numel() + 1)
        (result.reshape(-1) * weights).sum().backward()
        if w.grad is not None:
            assert w.grad.is_sparse
            found.append(plain(w.grad.to_dense()))
    if found:
        same(*found)


def test_embedding_bag_with_scales() -> None:
    found = []
    for framework in (taeda, torch):
        w = framework.arange(12.0).reshape(6, 2).requires_grad_()
        scales = framework.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        result = framework.nn.functional.embedding_bag(
            framework.tensor([[1, 2, 1], [0, 1, 5]]),
            w,
            mode="sum",
            sparse=True,
            per_sample_weights=scales,
        )
        result.pow(2).sum().backward()
        found.append([plain(result), plain(w.grad.to_dense()), plain(scales.grad)])
    same(*found)
