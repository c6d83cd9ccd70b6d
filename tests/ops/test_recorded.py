"""Operators whose inference computes less than their training: one program in both, and the values
and gradients of the cheaper and the fuller form agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F
from taeda.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    """The operators below autograd, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def names_of(call: Callable, *inputs: Any) -> list[str]:
    with Names() as names:
        call(*inputs)
    # Without vectors it has no spelling of PyTorch's.
    return [name.replace("taeda._linalg_eig.", "aten.linalg_eig.") for name in names.seen]


def norm_relu(x: taeda.Tensor) -> taeda.Tensor:
    return taeda.nn.Sequential(taeda.nn.BatchNorm2d(3), taeda.nn.ReLU6()).to(x.dtype)(x)


QKV = [(1, 2, 9, 8)] * 3
PROGRAMS: dict[str, tuple[Callable, list[tuple[int, ...]]]] = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), [(2, 3, 9)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), [(2, 3, 9, 8)]),
    "max_pool2d, large windows": (lambda x: F.max_pool2d(x, 17), [(1, 2, 40, 36)]),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), [(1, 2, 4, 4, 4)]),
    "matrix times batch": (taeda.matmul, [(3, 4), (5, 4, 6)]),
    "svdvals": (taeda.linalg.svdvals, [(4, 3)]),
    "eigvalsh": (taeda.linalg.eigvalsh, [(3, 3)]),
    "eigvals": (taeda.linalg.eigvals, [(3, 3)]),
    "batch norm and relu": (norm_relu, [(2, 3, 4, 4)]),
    "wide qr": (lambda a: taeda.linalg.qr(a).R, [(2, 5)]),
    "attention, few queries": (F.scaled_dot_product_attention, [(1, 2, 3, 8), *QKV[1:]]),
    "attention with a mask": (F.scaled_dot_product_attention, [*QKV, (9, 9)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_inference_and_training_are_one_program(name: str) -> None:
    call, sizes = PROGRAMS[name]
    taeda.manual_seed(0)
    plain = [taeda.randn(*s) for s in sizes]
    recorded = [x.clone().requires_grad_() for x in plain]
    assert names_of(call, *plain) == names_of(call, *recorded)
    with taeda.no_grad():
        silent = call(*recorded)
    np.testing.assert_allclose(silent.numpy(), call(*recorded).detach().numpy(), rtol=2e-5)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "eig" not in n and "attention" not in n])
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    call, sizes = PROGRAMS[name]
    taeda.manual_seed(1)
    inputs = tuple(taeda.randn(*s, dtype=taeda.float64, requires_grad=True) for s in sizes)
    assert taeda.autograd.gradcheck(call, inputs, check_forward_ad=True)
    if "large" not in name:
        assert taeda.autograd.gradgradcheck(call, inputs)


def test_sequential_calls_what_it_shows() -> None:
    model = taeda.nn.Sequential(taeda.nn.BatchNorm1d(3), taeda.nn.ReLU())
    seen = [name.split(".")[1] for name in names_of(model, taeda.randn(4, 3, requires_grad=True))]
    assert seen[-1] == "relu" and "native_batch_norm" in seen[:-1]


@pytest.mark.parametrize("queries", [1, 3, 7, 12])
@pytest.mark.parametrize("groups", [1, 2], ids=["grouped keys", "a key a head"])
@pytest.mark.parametrize("masked", ["", "per key", "full"])
def test_attention_gradients_against_float64(queries: int, groups: int, masked: str) -> None:
    rng = np.random.default_rng(queries)
    shapes = [(2, 2, queries, 8), (2, groups, 11, 8), (2, groups, 11, 5)]
    arrays = [rng.normal(size=s) for s in shapes]
    if masked:
        arrays.append(rng.normal(size=(11,) if masked == "per key" else (2, 1, queries, 11)))
    gy = rng.normal(size=(2, 2, queries, 5))
    grads = []
    for dtype in (taeda.float32, taeda.float64):
        inputs = [taeda.tensor(a, dtype=dtype).requires_grad_() for a in arrays]
        y = F.scaled_dot_product_attention(*inputs, enable_gqa=True)
        grads.append(taeda.autograd.grad(y, inputs, taeda.tensor(gy, dtype=dtype)))
    for got, want in zip(*grads):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-4, atol=2e-5)


def test_masked_rows_have_no_gradient() -> None:
    q, k, v = (taeda.randn(1, 1, 9, 4, requires_grad=True) for _ in range(3))
    mask = taeda.zeros(9, 9)
    mask[2] = -float("inf")
    mask.requires_grad_()
    F.scaled_dot_product_attention(q, k, v, mask).sum().backward()
    assert mask.grad.isfinite().all() and mask.grad[2].abs().sum() == 0
    assert q.grad[0, 0, 2].abs().sum() == 0


@pytest.mark.parametrize(
    "n, m, p, b", [(3, 4, 50, 2), (30, 40, 2, 7), (3, 4, 0, 2), (3, 0, 2, 2), (3, 4, 2, 0)]
)
def test_matrix_times_batch_gradients(n: int, m: int, p: int, b: int) -> None:
    rng = np.random.default_rng(0)
    a, x, gy = rng.normal(size=(n, m)), rng.normal(size=(b, m, p)), rng.normal(size=(b, n, p))
    ta, tx = taeda.tensor(a).requires_grad_(), taeda.tensor(x).requires_grad_()
    y = ta @ tx
    y.backward(taeda.tensor(gy))
    np.testing.assert_allclose(y.detach().numpy(), a @ x, atol=1e-12)
    np.testing.assert_allclose(ta.grad.numpy(), np.einsum("bnp,bmp->nm", gy, x), atol=1e-11)
    np.testing.assert_allclose(tx.grad.numpy(), np.einsum("nm,bnp->bmp", a, gy), atol=1e-12)
