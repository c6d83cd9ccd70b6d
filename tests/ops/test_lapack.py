"""torch.linalg on LAPACK: against NumPy and SciPy, derivatives by finite differences, errors."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.marks import limited

import taeda
from taeda import linalg

DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def matrices(dtype: str, *shape: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    random = np.random.default_rng(seed)
    a = random.standard_normal(shape)
    if dtype.startswith("complex"):
        a = a + 1j * random.standard_normal(shape)
    a = a.astype(dtype)
    return taeda.from_numpy(a.copy()), a


def positive(dtype: str, n: int = 4, batch: tuple[int, ...] = (2,)) -> tuple[Any, np.ndarray]:
    _, a = matrices(dtype, *batch, n, n)
    a = (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)
    return taeda.from_numpy(a.copy()), a


def close(got: Any, expected: Any, dtype: str) -> None:
    got = got.resolve_conj().numpy()
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_square(dtype: str, batch: tuple[int, ...]) -> None:
    x, a = matrices(dtype, *batch, 5, 5)
    b, right = matrices(dtype, *batch, 5, 2, seed=1)
    close(linalg.inv(x), np.linalg.inv(a), dtype)
    close(linalg.det(x), np.linalg.det(a), dtype)
    close(linalg.solve(x, b), np.linalg.solve(a, right), dtype)
    close(x @ linalg.lstsq(x, b).solution, right, dtype)
    sign, logabs = linalg.slogdet(x)
    expected = np.linalg.slogdet(a)
    close(sign, expected[0], dtype)
    close(logabs, expected[1], dtype)
    P, L, U = linalg.lu(x)
    close(P @ L @ U, a, dtype)
    close(taeda.lu_solve(b, *linalg.lu_factor(x)), np.linalg.solve(a, right), dtype)
    values, vectors = linalg.eig(x)
    wide = x.to(vectors.dtype)
    close(wide @ vectors, (vectors * values.unsqueeze(-2)).numpy(), dtype)
    assert linalg.matrix_rank(x).eq(5).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian(dtype: str) -> None:
    x, a = positive(dtype)
    close(linalg.cholesky(x), np.linalg.cholesky(a), dtype)
    close(linalg.cholesky(x, upper=True).mH, np.linalg.cholesky(a), dtype)
    values, vectors = linalg.eigh(x)
    close(values, np.linalg.eigvalsh(a), dtype)
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, a, dtype)
    close(linalg.eigvalsh(x, UPLO="U"), np.linalg.eigvalsh(a), dtype)
    b, right = matrices(dtype, 2, 4, 3, seed=1)
    close(taeda.cholesky_solve(b, linalg.cholesky(x)), np.linalg.solve(a, right), dtype)
    close(taeda.cholesky_inverse(linalg.cholesky(x)), np.linalg.inv(a), dtype)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_solving_by_a_factor(dtype: str, upper: bool) -> None:
    """The factor's gradient counts all of its elements, as in its product with itself."""
    x, _ = positive(dtype)
    b, right = matrices(dtype, 2, 4, 3, seed=1)
    factor = linalg.cholesky(x, upper=upper).requires_grad_()
    b.requires_grad_()

    def product(L: Any) -> Any:
        return L.mH @ L if upper else L @ L.mH

    weights, _ = matrices(dtype, 2, 4, 3, seed=2)
    for ours, plain in (
        (taeda.cholesky_solve(b, factor, upper), linalg.solve(product(factor), b)),
        (taeda.cholesky_inverse(factor, upper) @ b, linalg.inv(product(factor)) @ b),
    ):
        close(ours.detach(), plain.detach().numpy(), dtype)
        got = taeda.autograd.grad(ours, [factor, b], weights)
        expected = taeda.autograd.grad(plain, [factor, b], weights)
        for one, other in zip(got, expected):
            close(one, other.numpy(), dtype)
    dual = taeda.func.jvp(
        lambda L, B: taeda.cholesky_solve(B, L, upper),
        (factor.detach(), b.detach()), (factor.detach(), weights),
    )  # fmt: skip
    other = taeda.func.jvp(
        lambda L, B: linalg.solve(product(L), B),
        (factor.detach(), b.detach()), (factor.detach(), weights),
    )  # fmt: skip
    close(dual[1], other[1].numpy(), dtype)
    shared = factor[0].detach()  # one factor for both right sides
    close(taeda.cholesky_solve(b.detach(), shared, upper),
          np.linalg.solve(product(shared).numpy(), right), dtype)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0), (2, 0, 0)])
def test_rectangular(dtype: str, shape: tuple[int, ...]) -> None:
    x, a = matrices(dtype, *shape)
    m, n = shape[-2:]
    for mode in ("reduced", "complete"):
        Q, R = linalg.qr(x, mode)
        close(Q @ R, a, dtype)
        close(
            Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*shape[:-2], *Q.shape[-1:] * 2)), dtype
        )
        assert R.shape[-2:] == (min(m, n) if mode == "reduced" else m, n)
    assert linalg.qr(x, "r").Q.numel() == 0
    for full in (False, True):
        U, S, Vh = linalg.svd(x, full_matrices=full)
        k = min(m, n)
        close((U[..., :k] * S.unsqueeze(-2).to(U.dtype)) @ Vh[..., :k, :], a, dtype)
        assert U.shape[-1] == (m if full else k)
        assert Vh.shape[-2] == (n if full else k)
        close(
            U.mH @ U, np.broadcast_to(np.eye(U.shape[-1]), (*shape[:-2], *U.shape[-1:] * 2)), dtype
        )
    if k:
        close(linalg.svdvals(x), np.linalg.svd(a, compute_uv=False), dtype)
        close(linalg.pinv(x), np.linalg.pinv(a), dtype)
        b, right = matrices(dtype, *shape[:-1], 2, seed=1)
        close(linalg.lstsq(x, b).solution, np.linalg.pinv(a) @ right, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(60, 7), (7, 60), (40, 40), (3, 33, 20), (2, 20, 33), (300, 300)]
)
def test_least_squares_of_full_rank(dtype: str, shape: tuple[int, ...]) -> None:
    """By QR decompositions, with blocks of triangles."""
    x, a = matrices(dtype, *shape)
    b, right = matrices(dtype, *shape[:-1], 5, seed=1)
    for of in (x, x.mT.contiguous().mT):
        got = linalg.lstsq(of, b)
        truth = np.linalg.pinv(a.astype("complex128" if x.is_complex() else "float64")) @ right
        scale = np.linalg.norm(truth)
        close(got.solution / scale, truth / scale, dtype)
        assert (got.rank == min(shape[-2:])).all() and got.singular_values.numel() == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (33, 33)])
def test_least_squares_of_almost_no_full_rank(dtype: str, shape: tuple[int, ...]) -> None:
    """The rank counts singular values above a tolerance, also where QR would give a solution."""
    _, a = matrices(dtype, *shape)
    b, right = matrices(dtype, shape[0], 2, seed=1)
    U, S, Vh = np.linalg.svd(a, full_matrices=False)
    S = np.ones_like(S)
    for least, rcond in ((0.0, None), (1e-3, 1e-2), (1e-1, 1e-2), (3e-3, 2e-3)):
        S[-1] = least
        x = taeda.from_numpy(((U * S) @ Vh).astype(dtype))
        solution, _, rank, _ = linalg.lstsq(x, b, rcond=rcond)
        kept = S > (rcond or 1e-5)
        assert rank == kept.sum()
        inverse = np.where(kept, 1 / np.maximum(S, 1e-9), 0)
        truth = Vh.conj().T @ (inverse[:, None] * (U.conj().T @ right))
        close(solution / np.linalg.norm(truth), truth / np.linalg.norm(truth), dtype)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")])
def test_matrix_norms(order: Any) -> None:
    x, a = matrices("float64", 4, 3)
    expected = np.linalg.norm(a, order)
    close(linalg.matrix_norm(x, order), expected, "float64")
    close(linalg.norm(x, order), expected, "float64")
    y, b = matrices("float64", 3, 2, 4)
    close(
        linalg.norm(y, order, dim=(2, 0), keepdim=True),
        np.linalg.norm(b, order, axis=(2, 0), keepdims=True),
        "float64",
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 17, 31, 32, 33])
@pytest.mark.parametrize("upper", [False, True])
def test_small_cholesky(dtype: str, n: int, upper: bool) -> None:
    """Up to 32 rows in a kernel of its own, which reads one triangle and writes zeros beside it."""
    x, a = positive(dtype, n, (3,))
    other = taeda.tril(x, -1) * 9 if upper else taeda.triu(x, 1) * 9
    expected = np.linalg.cholesky(a)
    expected = expected.conj().swapaxes(-1, -2) if upper else expected
    for of in (x + other, (x + other).mT.contiguous().mT):
        close(linalg.cholesky(of, upper=upper), expected, dtype)
    broken = x.clone()
    broken[1, n - 1, n - 1] = -1
    info = linalg.cholesky_ex(broken, upper=upper).info
    assert info.tolist() == [0, n, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", [1e-6, 0.05, 0.9, 1, 7, 40])
def test_matrix_exponential_of_every_size(dtype: str, norm: float) -> None:
    """The series has the terms that the norm wants."""
    linalg_of_scipy = pytest.importorskip("scipy.linalg")
    _, a = matrices(dtype, 2, 6, 6)
    a = (a - a.conj().swapaxes(-1, -2)).astype(dtype)  # whose exponential is unitary
    a = (a * (norm / np.abs(a).sum(-2).max())).astype(dtype)
    wide = a.astype("complex128" if dtype.startswith("complex") else "float64")
    close(taeda.matrix_exp(taeda.from_numpy(a)), linalg_of_scipy.expm(wide), dtype)


def test_matrix_exponential_of_half_precision_is_rounded_once() -> None:
    a = 4 * np.random.default_rng(3).standard_normal((5, 5))
    for dtype in (taeda.bfloat16, taeda.float16):
        x = taeda.from_numpy(a).to(dtype)
        x.requires_grad_()
        got = taeda.matrix_exp(x)
        truth = taeda.matrix_exp(x.detach().double())
        assert got.dtype == dtype
        atol = 1e-3 * float(truth.abs().max())
        np.testing.assert_allclose(got.detach().double(), truth, rtol=5e-3, atol=atol)
        got.sum().backward()
        assert x.grad.dtype == dtype


def test_matrix_exponential() -> None:
    scipy_linalg = pytest.importorskip("scipy.linalg")
    for scale in (1e-3, 1.0, 30.0):
        x, a = matrices("float64", 4, 4)
        expected = scipy_linalg.expm(a * scale)
        got = taeda.matrix_exp(x * scale).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    close(taeda.matrix_power(x, -2), np.linalg.matrix_power(a, -2), "float64")


def test_triangular() -> None:
    x, a = matrices("float64", 4, 4)
    b, right = matrices("float64", 2, 4, 3, seed=1)
    upper = linalg.solve_triangular(x, b, upper=True)
    close(upper, np.linalg.solve(np.triu(a), right), "float64")
    left = linalg.solve_triangular(x, b.mT, upper=False, left=False)
    close(left @ taeda.tril(x), right.swapaxes(-1, -2), "float64")
    close(taeda.triangular_solve(b, x).solution, upper.numpy(), "float64")


SMOOTH: dict[str, Any] = {
    "inv": linalg.inv,
    "det": linalg.det,
    "logdet": lambda x: taeda.logdet(x @ x.mH + taeda.eye(3, dtype=x.dtype)),
    "logabsdet": lambda x: linalg.slogdet(x).logabsdet,
    "solve": lambda x: linalg.solve(x, x.mT @ x),
    "lu": lambda x: linalg.lu_factor(x).LU,
    "lu wide": lambda x: linalg.lu_factor(x[..., :2, :]).LU,
    "lu tall": lambda x: linalg.lu_factor_ex(x[..., :2]).LU,
    "lu parts wide": lambda x: tuple(linalg.lu(x[..., :1, :]))[1:],
    "lu parts tall": lambda x: tuple(linalg.lu(x[..., :2]))[1:],
    "lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x[..., :2].sin()),
    "lu_solve right": lambda x: linalg.lu_solve(
        *linalg.lu_factor(x), x[..., :2, :].sin(), left=False
    ),
    "lu_solve adjoint": lambda x: linalg.lu_solve(
        *linalg.lu_factor(x), x[..., :2].sin(), adjoint=True
    ),
    "lu_solve right adjoint": lambda x: linalg.lu_solve(
        *linalg.lu_factor(x), x[0, :2, :].sin(), left=False, adjoint=True
    ),
    "qr": lambda x: tuple(linalg.qr(x)),
    "qr wide": lambda x: tuple(linalg.qr(x[..., :2, :])),
    "qr tall": lambda x: tuple(linalg.qr(x[..., :2])),
    "cholesky": lambda x: linalg.cholesky(x @ x.mH + taeda.eye(3, dtype=x.dtype)),
    "cholesky upper": lambda x: linalg.cholesky(x @ x.mH + taeda.eye(3, dtype=x.dtype), upper=True),
    "svdvals": linalg.svdvals,
    "svd": lambda x: next(
        (u * s.unsqueeze(-2)) @ (vh * s.unsqueeze(-1)) for u, s, vh in [linalg.svd(x)]
    ),
    "svd tall": lambda x: next(
        (u * s.unsqueeze(-2).sin()) @ vh for u, s, vh in [linalg.svd(x[..., :2], False)]
    ),
    "svd wide": lambda x: next(
        (u * s.unsqueeze(-2).sin()) @ vh for u, s, vh in [linalg.svd(x[..., :2, :], False)]
    ),
    "eigh": lambda x: next((v * w.unsqueeze(-2).sin()) @ v.mH for w, v in [linalg.eigh(x + x.mH)]),
    "eigvalsh": lambda x: linalg.eigvalsh(x + x.mH),
    "eigvals": lambda x: linalg.eigvals(x).abs(),
    "eig": lambda x: next(
        taeda.view_as_real((v * w.unsqueeze(-2).sin()) @ linalg.inv(v)) for w, v in [linalg.eig(x)]
    ),
    "pinv": linalg.pinv,
    "pinv tall": lambda x: linalg.pinv(x[..., :2]),
    "lstsq": lambda x: linalg.lstsq(x[..., :2], x[..., 2:]).solution,
    "lstsq residuals": lambda x: linalg.lstsq(x[..., :2], x[..., 2:], driver="gels").residuals,
    "matrix_exp": taeda.matrix_exp,
    "nuc": lambda x: linalg.matrix_norm(x, "nuc"),
    "cond": linalg.cond,
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str, dtype: str) -> None:
    """Reverse and forward mode of functions that do not depend on how vectors are normalised."""
    if dtype == "complex128" and name in ("qr", "qr wide", "qr tall"):
        pytest.skip("complex factors are unique up to phases only")
    x, _ = matrices(dtype, 2, 3, 3, seed=3)
    x.requires_grad_()
    taeda.autograd.gradcheck(SMOOTH[name], (x,), check_forward_ad=True)
    if name != "eig":  # its second derivatives need phases that are fixed
        taeda.autograd.gradgradcheck(SMOOTH[name], (x,), atol=1e-4, check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 1, 4), (4, 1), (2, 0, 3), (3, 0)])
def test_lu_of_rectangles_is_pytorchs(shape: tuple[int, ...], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    _, a = matrices(dtype, *shape, seed=4)
    _, g = matrices(dtype, *shape, seed=5)

    def results(t: Any) -> list[Any]:
        x = t.from_numpy(a.copy()).requires_grad_()
        LU, pivots, info = t.linalg.lu_factor_ex(x)
        (gx,) = t.autograd.grad(LU, x, t.from_numpy(g.copy()), create_graph=True)
        (gg,) = t.autograd.grad(gx, x, t.from_numpy(g[..., ::-1].copy()), allow_unused=True)
        tangent = t.func.jvp(
            lambda z: t.linalg.lu_factor(z).LU, (x.detach(),), (t.from_numpy(g.copy()),)
        )[1]
        P, L, U = t.linalg.lu(x)
        (parts,) = t.autograd.grad(((L * L).sum() + (U**3).sum()).abs(), x)
        return [LU, pivots, info, gx, gg, tangent, P, L, U, parts]

    for got, expected in zip(results(taeda), results(torch), strict=True):
        assert (got is None) == (expected is None)
        if got is not None:
            assert got.shape == expected.shape
            close(got.detach(), expected.detach().resolve_conj().numpy(), dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("batch", [((), ()), ((2,), ()), ((2, 1), (3,)), ((0,), (0,))])
def test_lu_solve_is_pytorchs(batch: Any, left: bool, adjoint: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    _, a = matrices(dtype, *batch[0], 3, 3, seed=4)
    _, b = matrices(dtype, *batch[1], *((3, 2) if left else (2, 3)), seed=5)

    def results(t: Any) -> list[Any]:
        x, y = (t.from_numpy(v.copy()).requires_grad_() for v in (a, b))
        X = t.linalg.lu_solve(*t.linalg.lu_factor(x), y, left=left, adjoint=adjoint)
        return [X, *t.autograd.grad((X * X).sum().abs(), (x, y))]

    for got, expected in zip(results(taeda), results(torch), strict=True):
        assert got.shape == expected.shape
        close(got.detach(), expected.detach().resolve_conj().numpy(), dtype)


def test_lu_solve_refuses_what_pytorch_refuses() -> None:
    torch = pytest.importorskip("torch")
    calls: list[Any] = [
        lambda t, LU, p: t.linalg.lu_solve(LU, p, t.ones(3, 2)),
        lambda t, LU, p: t.linalg.lu_solve(LU, p.long(), t.ones(3, 2).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU[:2], p, t.ones(3, 2).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU, p[:2], t.ones(3, 2).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU, p.expand(2, 3), t.ones(3, 2).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU, p, t.ones(3).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU, p, t.ones(2, 3).double()),
        lambda t, LU, p: t.linalg.lu_solve(LU, p, t.ones(3, 2).double(), left=False),
        lambda t, LU, p: t.linalg.lu_solve(LU.long(), p, t.ones(3, 2).long()),
    ]
    for call in calls:
        messages = []
        for t in (taeda, torch):
            with pytest.raises(RuntimeError) as caught:
                call(t, *t.linalg.lu_factor(t.eye(3, dtype=t.float64)))
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def minor(a: np.ndarray, rows: list[int], columns: list[int]) -> Any:
    """The determinant without these rows and columns, as a polynomial: exact at every rank."""
    kept = np.delete(np.delete(a, rows, 0), columns, 1)
    n = kept.shape[0]
    return sum(
        round(np.linalg.det(np.eye(n)[list(p)])) * np.prod([kept[i, p[i]] for i in range(n)])
        for p in itertools.permutations(range(n))
    )


def cofactors_and_hessian(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = a.shape[0]
    first, second = np.zeros((n, n), a.dtype), np.zeros((n, n, n, n), a.dtype)
    for i, j in itertools.product(range(n), repeat=2):
        first[i, j] = (-1) ** (i + j) * minor(a, [i], [j])
        for k, m in itertools.product(range(n), repeat=2):
            if i != k and j != m:
                sign = (-1) ** (i + j + k + m + ((i < k) != (j < m)))
                second[i, j, k, m] = sign * minor(a, [i, k], [j, m])
    return first, second


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "rank"), [(n, rank) for n in (1, 2, 3, 4) for rank in range(n + 1)])
def test_derivatives_of_det_at_every_rank(n: int, rank: int, dtype: str) -> None:
    """In a batch with a matrix of full rank, and one that is singular but for rounding."""
    _, left = matrices(dtype, 3, n, rank)
    _, right = matrices(dtype, 3, rank, n, seed=1)
    _, v = matrices(dtype, 3, n, n, seed=2)
    a = left @ right
    a[1] = matrices(dtype, n, n, seed=3)[1]
    a[2] *= 1 + np.finfo(a.dtype).eps
    x, direction = taeda.from_numpy(a).requires_grad_(), taeda.from_numpy(v)
    wide = a.astype(np.result_type(a, np.float64))
    first, second = (np.stack(d) for d in zip(*(cofactors_and_hessian(m) for m in wide)))
    along = np.einsum("bijkl,bkl->bij", second, v.astype(wide.dtype)).conj()

    def gradient(z: Any) -> Any:
        y, pull = taeda.func.vjp(linalg.det, z)
        return pull(taeda.ones_like(y))[0]

    got = gradient(x)
    close(got.detach(), first.conj(), dtype)
    (back,) = taeda.autograd.grad((got * direction.conj()).sum().real, x)
    close(back, along, dtype)
    close(taeda.func.jvp(gradient, (x.detach(),), (direction,))[1], along, dtype)


def test_hessian_of_det_at_zero() -> None:
    hessian = taeda.autograd.functional.hessian(linalg.det, taeda.zeros(2, 2, dtype=taeda.float64))
    expected = np.fliplr(np.diag([1, -1, -1, 1]))
    np.testing.assert_array_equal(hessian.reshape(4, 4).numpy(), expected)


@pytest.mark.parametrize("size", [1e-150, 1e-200, 1e100])
def test_det_that_overflows_or_vanishes_has_its_gradient(size: float) -> None:
    x = (taeda.eye(3, dtype=taeda.float64) * size).requires_grad_()
    linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3) * size**2, rtol=1e-12, atol=0)


def test_det_of_what_is_no_number() -> None:
    x = taeda.zeros(2, 3, 3, dtype=taeda.float64)
    x[1, 0, 0] = float("nan")
    x.requires_grad_()
    linalg.det(x).sum().backward()
    assert x.grad[1].isnan().any()
    assert x.grad[0].eq(0).all()


def test_third_derivatives_of_det() -> None:
    def third(x: Any) -> Any:
        return taeda.func.jacfwd(taeda.func.jacfwd(taeda.func.jacfwd(linalg.det)))(x)

    got = third(taeda.eye(3, dtype=taeda.float64))
    assert got.abs().sum() == 36  # six permutations of three factors, each in six orders
    with pytest.raises(NotImplementedError, match="third derivatives"):
        third(taeda.zeros(3, 3, dtype=taeda.float64))


def test_what_divides_by_singular_matrices_shows_it() -> None:
    """As in PyTorch: infinities and NaN, not the finite numbers that LAPACK left behind."""
    singular = [[1.0, 2.0], [2.0, 4.0]]
    for function in (linalg.slogdet, taeda.logdet):
        x = taeda.tensor(singular, dtype=taeda.float64, requires_grad=True)
        y = function(x)
        (y if function is taeda.logdet else y.logabsdet).backward()
        assert not x.grad.isfinite().any()
    x = taeda.tensor(singular, dtype=taeda.float64)
    assert not linalg.inv_ex(x).inverse.isfinite().any()
    assert not linalg.solve_ex(x, taeda.ones(2, 1, dtype=taeda.float64))[0].isfinite().any()


def test_repeated_singular_values_have_gradients() -> None:
    x = taeda.eye(3, dtype=taeda.float64, requires_grad=True)
    linalg.matrix_norm(x, "nuc").backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)
    y = taeda.eye(3, dtype=taeda.float64, requires_grad=True)
    linalg.eigvalsh(y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), np.eye(3), atol=1e-12)


def test_errors() -> None:
    singular = taeda.tensor([[1.0, 2.0], [2.0, 4.0]])
    batch = taeda.stack([taeda.eye(2), singular])
    nan = taeda.full((2, 2), float("nan"))
    cases = [
        (lambda: linalg.inv(singular), r"linalg.inv: The diagonal element 2 is zero"),
        (lambda: linalg.inv(batch), r"linalg.inv: \(Batch element 1\): The diagonal element 2"),
        (lambda: linalg.solve(batch, batch), r"\(Batch element 1\): The solver failed because"),
        (
            lambda: linalg.cholesky(-batch),
            r"linalg.cholesky: \(Batch element 0\): .* order 1 is not",
        ),
        (lambda: linalg.svd(nan), "the input matrix contained non-finite values"),
    ]
    for call, message in cases:
        with pytest.raises(linalg.LinAlgError, match=message):
            call()
    assert issubclass(linalg.LinAlgError, RuntimeError)
    refused = [
        (
            lambda: linalg.inv(taeda.ones(2, 3)),
            "must be batches of square matrices, but they are 2 by 3",
        ),
        (lambda: linalg.det(taeda.ones(3)), "must have at least 2 dimensions"),
        (
            lambda: linalg.inv(taeda.ones(2, 2, dtype=taeda.int64)),
            "Expected a floating point or complex",
        ),
        (
            lambda: linalg.inv(taeda.ones(2, 2).half()),
            "Low precision dtypes not supported. Got Half",
        ),
        (lambda: linalg.solve(taeda.eye(2), taeda.ones(3)), "Incompatible shapes of A and B"),
        (lambda: linalg.solve(taeda.eye(2), taeda.ones(2).double()), "to have the same dtype"),
        (lambda: linalg.qr(singular, "x"), "unrecognized mode 'x'"),
        (lambda: linalg.eigh(singular, "x"), "Expected UPLO argument"),
        (lambda: linalg.matrix_norm(singular, 3), "Order 3 not supported"),
        (lambda: linalg.norm(taeda.ones(2, 2, 2), 2), "the input must be 1D or 2D. Got 3D"),
        (lambda: linalg.eigvals(nan), "should not contain infs or NaNs"),
    ]
    for call, message in refused:
        with pytest.raises(RuntimeError, match=message):
            call()
    info = linalg.inv_ex(singular).info
    assert int(info) == 2
    assert linalg.cholesky_ex(singular).info.tolist() == 2
    assert linalg.solve_ex(taeda.eye(2), taeda.ones(2)).info.tolist() == 0
    with pytest.raises(RuntimeError, match=r"not differentiable when mode='complete' and nrows"):
        linalg.qr(taeda.rand(3, 2, requires_grad=True), "complete").Q.sum().backward()


def test_small_operators() -> None:
    x, a = matrices("float64", 3, 3)
    close(taeda.trace(x), np.trace(a), "float64")
    close(linalg.cross(x, x.flip(0)), np.cross(a, a[::-1]), "float64")
    np.testing.assert_array_equal(
        taeda.block_diag(taeda.ones(2), taeda.tensor(3.0), 2 * taeda.ones(2, 1)).numpy(),
        [[1, 1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 2], [0, 0, 0, 2]],
    )
    tall = taeda.zeros(7, 3).fill_diagonal_(1, wrap=True).numpy()
    expected = np.zeros((7, 3))
    np.fill_diagonal(expected, 1, wrap=True)
    np.testing.assert_array_equal(tall, expected)
    cube = taeda.zeros(3, 3, 3).fill_diagonal_(2.0)
    assert [cube[i, i, i].item() for i in range(3)] == [2.0] * 3
    assert cube.sum() == 6
    with pytest.raises(RuntimeError, match="equal length"):
        taeda.zeros(2, 3, 2).fill_diagonal_(1)
    y = taeda.ones(2, 2, dtype=taeda.float64, requires_grad=True)
    (y * 1).fill_diagonal_(0).sum().backward()
    assert y.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    places = np.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(
        taeda.trapezoid(x, taeda.from_numpy(places), dim=0).numpy(), np.trapezoid(a, places, axis=0)
    )


# Runs each operator in processes with less and less memory to spare; prints what came out.
SHORTAGE = """
import os, resource, sys
import taeda as torch

torch.set_num_threads(1)
L, n = torch.linalg, 380
kind = getattr(torch, sys.argv[1])
a = torch.randn(n, n, dtype=kind) / 20
spd = a @ a.mH + torch.eye(n, dtype=kind)
calls = {
    "svd": lambda: L.svd(a), "svdvals": lambda: L.svdvals(a), "qr": lambda: L.qr(a),
    "complete qr": lambda: L.qr(a[:, :100], mode="complete"), "eigh": lambda: L.eigh(spd),
    "eigvalsh": lambda: L.eigvalsh(spd), "eig": lambda: L.eig(a), "eigvals": lambda: L.eigvals(a),
    "inv": lambda: L.inv(a), "solve": lambda: L.solve(a, a), "lu": lambda: L.lu(a),
    "cholesky": lambda: L.cholesky(spd), "lstsq": lambda: L.lstsq(a, a).solution,
    "solve_triangular": lambda: L.solve_triangular(spd, a, upper=True), "det": lambda: L.det(a),
    "pinv": lambda: L.pinv(a), "matrix_exp": lambda: torch.matrix_exp(a),
}
used = lambda: int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
flat = lambda r: [t.flatten() for t in (r if isinstance(r, (tuple, list)) else [r])]
for name, call in calls.items():
    expected = torch.cat([torch.view_as_real(t + 0j).flatten() for t in flat(call())])
    for spare in (0, 1, 2, 4, 6, 9):  # blocks of 2 MiB
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            limit, blocks = used() + (20 << 20), []
            resource.setrlimit(resource.RLIMIT_AS, (limit, -1))
            try:
                while True:
                    blocks.append(torch.empty(1 << 19))
            except torch.OutOfMemoryError:
                del blocks[:spare]
            try:
                got = call()
            except torch.OutOfMemoryError:
                print(name, spare, "OutOfMemoryError")
            except BaseException as error:
                print(name, spare, type(error).__name__, str(error)[:60])
            else:
                blocks.clear()
                resource.setrlimit(resource.RLIMIT_AS, (-1, -1))  # comparing takes copies
                got = torch.cat([torch.view_as_real(t + 0j).flatten() for t in flat(got)])
                print(name, spare, "right" if torch.equal(got, expected) else "wrong")
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(name, spare, "died", status)
"""


@limited
@pytest.mark.parametrize("kind", ["float64", "complex64"])
def test_a_shortage_of_memory_is_an_exception(kind: str) -> None:
    command = [sys.executable, "-c", SHORTAGE, kind]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed is gone
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stderr == ""
    ends = [line.split()[-1] for line in done.stdout.splitlines()]
    assert set(ends) == {"OutOfMemoryError", "right"}, done.stdout
    assert ends.count("OutOfMemoryError") >= 12, done.stdout


# The first products that two threads make at once, with little memory to spare.
FIRST_PRODUCTS = """
import resource, sys
import taeda as torch

torch.set_num_threads(2)
a, c = torch.randn(600, 600, dtype=torch.float64), torch.empty(600, 600, dtype=torch.float64)
torch.randn(3_000_000).sum()
if sys.argv[1] == "loaded":
    torch.mm(a[:60, :60].contiguous(), a[:60, :60].contiguous())
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    torch.mm(a, a, out=c)
    print("right")
except torch.OutOfMemoryError:
    print("OutOfMemoryError")
"""


# A small call takes none of OpenBLAS's buffers; the next one wants its first with little memory.
SMALL_CALL_FIRST = """
import resource, sys
import taeda as torch

m = torch.randn(150, 150)
torch.linalg.svd(m[:10, :10])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    torch.linalg.inv(m)
    print("right")
except torch.OutOfMemoryError:
    print("OutOfMemoryError")
"""


@limited
@pytest.mark.parametrize("spare", [2, 12, 20, 42, 60])
def test_memory_for_openblas_is_there_after_a_small_call(spare: int) -> None:
    command = [sys.executable, "-c", SMALL_CALL_FIRST, str(spare)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("right\n", "OutOfMemoryError\n")


@pytest.mark.parametrize("spare", [1, 10, 20, 40, 80, 300])
@pytest.mark.parametrize("state", ["not loaded", "loaded"])
def test_openblas_does_not_end_the_process_for_want_of_memory(state: str, spare: int) -> None:
    command = [sys.executable, "-c", FIRST_PRODUCTS, state, str(spare)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("right\n", "OutOfMemoryError\n")


@pytest.mark.parametrize("p", [1, -1, 2, -2, float("inf"), "fro", "nuc"])
@pytest.mark.parametrize("kind", ["singular", "0 by 0", "no matrices"])
def test_condition_numbers_of_what_has_no_inverse(p: float | str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    shape = {"singular": (3, 3), "0 by 0": (2, 0, 0), "no matrices": (0, 3, 3)}[kind]
    a = np.zeros(shape) + np.diag([1.0, 2.0, 0.0]) if shape[-1] else np.zeros(shape)
    ours, theirs = (m.linalg.cond(m.tensor(a), p) for m in (taeda, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(("b", "dim"), [((3,), -1), ((3, 1), -2)])
def test_least_squares_of_other_sizes(b: tuple, dim: int) -> None:
    with pytest.raises(RuntimeError, match=rf"size\(-2\) should match other.size\({dim}\)"):
        linalg.lstsq(taeda.ones(2, 3), taeda.ones(b))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (5, 3), (2, 3, 5), (0, 3, 3), (0, 0)])
def test_results_lie_column_by_column_as_in_pytorch(shape: tuple, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    calls = [
        "linalg.qr(a)",
        "linalg.qr(a, 'complete')",
        "linalg.svd(a)",
        "linalg.svd(a, False)",
        "linalg.lu_factor(a)",
        "geqrf(a)",
    ]
    if shape[-1] == shape[-2]:
        calls += [
            "linalg.inv(a)",
            "linalg.solve(a, b)",
            "linalg.solve(a, b.mT, left=False)",
            "linalg.cholesky(a)",
            "linalg.cholesky(a, upper=True)",
            "linalg.eigh(a)",
            "linalg.eig(a)",
            "linalg.solve_triangular(a, b, upper=True)",
            "linalg.solve_triangular(a, b.mT, upper=False, left=False)",
            "linalg.lu_solve(*linalg.lu_factor(a), b)",
            "linalg.ldl_factor(a)",
            "linalg.householder_product(*geqrf(a))",
        ]
    n = min(shape[-2:])
    made = np.random.default_rng(0).standard_normal(shape)
    if shape[-1] == shape[-2]:
        made = made @ made.swapaxes(-1, -2) + n * np.eye(n)

    def strides(library: Any, call: str) -> list[tuple]:
        a = library.tensor(made, dtype=getattr(library, dtype))
        b = library.ones((*shape[:-1], 2), dtype=a.dtype)
        names = {"a": a, "b": b, "linalg": library.linalg, "geqrf": library.geqrf}
        result = eval(call, names)
        results = result if isinstance(result, tuple) else (result,)
        return [tuple(t.stride()) for t in results]

    for call in calls:
        assert strides(taeda, call) == strides(torch, call), call


def test_column_major_arguments_are_read_as_they_lie() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((2, 5, 5)) + 4 * np.eye(5)
    b = rng.standard_normal((2, 5, 3))
    for transposed in (False, True):
        x = taeda.tensor(a.swapaxes(-1, -2).copy()).mT if transposed else taeda.tensor(a)
        y = taeda.tensor(b.swapaxes(-1, -2).copy()).mT if transposed else taeda.tensor(b)
        np.testing.assert_allclose(taeda.linalg.solve(x, y).numpy(), np.linalg.solve(a, b))
        np.testing.assert_allclose(taeda.linalg.inv(x).numpy(), np.linalg.inv(a))
        for upper in (False, True):
            triangle = np.triu(a) if upper else np.tril(a)
            found = taeda.linalg.solve_triangular(x, y, upper=upper)
            np.testing.assert_allclose(found.numpy(), np.linalg.solve(triangle, b))
            found = taeda.linalg.solve_triangular(x, y.mT, upper=upper, left=False)
            expected = np.linalg.solve(triangle.swapaxes(-1, -2), b).swapaxes(-1, -2)
            np.testing.assert_allclose(found.numpy(), expected)
