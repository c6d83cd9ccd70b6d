"""Householder reflectors and LDL factors, against NumPy and PyTorch."""

import numpy as np
import pytest

import taeda

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def close(ours, truth, dtype):
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(ours, truth, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 5, 2), (0, 3), (3, 0), (2, 0, 0)])
def test_reflectors_make_q(shape, dtype):
    A = matrices(shape, dtype)
    a, tau = taeda.geqrf(taeda.from_numpy(A))
    m, n = shape[-2:]
    k = min(m, n)
    assert a.shape == shape and tau.shape == (*shape[:-2], k)
    q = taeda.linalg.householder_product(a[..., :k], tau)
    r = a.triu()[..., :k, :]
    close((q @ r).numpy(), A, dtype)
    close((q.mH @ q).numpy(), np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), dtype)
    if m >= k and k:  # the square Q, applied without being made
        whole = taeda.ormqr(a, tau, taeda.eye(m, dtype=a.dtype).expand(*shape[:-2], m, m))
        close(whole[..., :k].numpy(), q.numpy(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_ormqr(left, transpose, dtype):
    a, tau = taeda.geqrf(taeda.from_numpy(matrices((2, 4, 3), dtype)))
    q = taeda.ormqr(a, tau, taeda.eye(4, dtype=a.dtype).expand(2, 4, 4)).numpy()
    other = matrices((2, 4, 5) if left else (2, 5, 4), dtype, seed=1)
    factor = np.conj(np.swapaxes(q, -1, -2)) if transpose else q
    ours = taeda.ormqr(a, tau, taeda.from_numpy(other), left, transpose).numpy()
    close(ours, factor @ other if left else other @ factor, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1), (7, 7), (33, 9), (100, 32), (129, 3), (40, 40)])
@pytest.mark.parametrize("left", [True, False])
def test_ormqr_of_many_sizes(sizes, left, dtype):
    rows, columns = sizes
    a, tau = taeda.geqrf(taeda.from_numpy(matrices((2, rows, columns), dtype)))
    whole = taeda.ormqr(a, tau, taeda.eye(rows, dtype=a.dtype).expand(2, rows, rows))
    close((whole.mH @ whole).numpy(), np.broadcast_to(np.eye(rows), (2, rows, rows)), dtype)
    before = a.clone(), tau.clone()
    for count in (1, 17, 150):
        other = matrices((2, rows, count) if left else (2, count, rows), dtype, seed=count)
        for transpose in (False, True):
            q = whole.mH.resolve_conj().numpy() if transpose else whole.numpy()
            ours = taeda.ormqr(a, tau, taeda.from_numpy(other), left, transpose).numpy()
            close(ours, q @ other if left else other @ q, dtype)
    assert taeda.equal(before[0], a) and taeda.equal(before[1], tau)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_pytorchs(dtype):
    torch = pytest.importorskip("torch")
    A = matrices((2, 4, 3), dtype)
    a, tau = (x.numpy() for x in taeda.geqrf(taeda.from_numpy(A)))
    other, weights = matrices((2, 4, 2), dtype, 1), matrices((2, 4, 2), dtype, 2)
    q_weights = matrices((2, 4, 3), dtype, 3)
    found = []
    for framework in (taeda, torch):
        arguments = [framework.from_numpy(x.copy()).requires_grad_() for x in (a, tau, other)]
        q = framework.linalg.householder_product(*arguments[:2])
        y = framework.ormqr(*arguments, True, True)
        loss = (q * framework.from_numpy(q_weights)).sum() + (
            y * framework.from_numpy(weights)
        ).sum()
        loss.abs().backward()
        found.append([x.grad.numpy() for x in arguments])
    for ours, theirs in zip(*found):
        close(ours, theirs, dtype)


def test_geqrf_has_no_derivative():
    x = taeda.ones(3, 2, requires_grad=True)
    a, _ = taeda.geqrf(x)
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf'"):
        a.sum().backward()


def symmetric(n, dtype, hermitian, batch=()):
    x = matrices((*batch, n, n), dtype)
    turned = np.swapaxes(x, -1, -2)
    return x + (np.conj(turned) if hermitian else turned)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_ldl_solves(batch, hermitian, dtype):
    A = symmetric(6, dtype, hermitian, batch)
    B = matrices((*batch, 6, 2), dtype, seed=1)
    LD, pivots, info = taeda.linalg.ldl_factor_ex(taeda.from_numpy(A), hermitian=hermitian)
    assert pivots.dtype == taeda.int32 and info.shape == batch and not info.any()
    assert not LD.triu(1).any()
    x = taeda.linalg.ldl_solve(LD, pivots, taeda.from_numpy(B), hermitian=hermitian).numpy()
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(A @ x, B, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_is_pytorchs(hermitian):
    torch = pytest.importorskip("torch")
    A = symmetric(7, "complex128", hermitian)  # with blocks of two rows
    ours = taeda.linalg.ldl_factor(taeda.from_numpy(A), hermitian=hermitian)
    theirs = torch.linalg.ldl_factor(torch.from_numpy(A), hermitian=hermitian)
    assert ours.pivots.tolist() == theirs.pivots.tolist() and min(ours.pivots.tolist()) < 0
    np.testing.assert_allclose(ours.LD.numpy(), theirs.LD.numpy(), rtol=1e-9)


def test_ldl_errors():
    solve, eye = taeda.linalg.ldl_solve, taeda.eye(3)
    ones = taeda.ones(3, 1)
    with pytest.raises(RuntimeError, match=r"ldl_factor: .*D\[1,1\] is zero"):
        taeda.linalg.ldl_factor(taeda.zeros(2, 2))
    assert taeda.linalg.ldl_factor_ex(taeda.zeros(2, 2)).info == 1
    for pivots, message in (
        ([1, 2, 9], r"\|pivot\| <= LD.size"),
        ([0, 2, 3], r"\|pivot\| >= 1"),
        ([1, 2, -3], "must come in pairs"),
        ([1, -2, 3], "must come in pairs"),
        ([-2, -9, 3], r"\|pivot\| <= LD.size"),
        ([-(2**31), 1, 1], r"\|pivot\| <= LD.size"),
    ):
        with pytest.raises(RuntimeError, match=message):
            solve(eye, taeda.tensor(pivots, dtype=taeda.int32), ones)
    with pytest.raises(RuntimeError, match="pivots to be integers"):
        solve(eye, taeda.ones(3), ones)
    with pytest.raises(RuntimeError, match="pivots with shape"):
        solve(eye, taeda.ones(2, dtype=taeda.int32), ones)
    with pytest.raises(RuntimeError, match="square matrices"):
        taeda.linalg.ldl_factor(taeda.ones(3, 2))


def test_reflector_errors():
    product, x = taeda.linalg.householder_product, taeda.ones(4, 3)
    for arguments, message in (
        ((taeda.ones(3), taeda.ones(3)), "at least 2 dimensions"),
        ((taeda.ones(3, 4), taeda.ones(3)), "greater than or equal to input.shape"),
        ((x, taeda.ones(4)), "greater than or equal to tau.shape"),
        ((x, taeda.ones(2, 3)), "one dimension less"),
        ((x, taeda.ones(3).double()), "does not match input dtype"),
    ):
        with pytest.raises(RuntimeError, match=message):
            product(*arguments)
    with pytest.raises(RuntimeError, match="must be equal to input"):
        taeda.ormqr(taeda.ones(3, 2), taeda.ones(2), taeda.ones(4, 3))
    with pytest.raises(NotImplementedError, match="geqrf"):
        taeda.geqrf(taeda.ones(3, 3, dtype=taeda.int64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1), (5, 3), (3, 5), (16, 16), (17, 32), (128, 7), (129, 9)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_qr_of_small_matrices_of_any_magnitude(sizes, dtype, scale):
    x = matrices((3, *sizes), dtype)
    x[1, :, -1] = x[1, :, 0]  # of lower rank
    x[2, 1:] = 0
    scale = x.real.dtype.type(scale)
    x *= scale
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in taeda.linalg.qr(taeda.from_numpy(x), mode=mode))
        eps = np.finfo(dtype).eps * 20 * max(sizes)
        np.testing.assert_allclose(q @ r / scale, x / scale, atol=eps)
        products = np.conj(q.transpose(0, 2, 1)) @ q
        np.testing.assert_allclose(
            products, np.broadcast_to(np.eye(q.shape[2]), products.shape), atol=eps
        )
        np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_qr_of_small_matrices_has_lapacks_signs(dtype):
    x = matrices((12, 7), dtype)
    x[1:, 0] = 0
    q, r = (t.numpy() for t in taeda.linalg.qr(taeda.from_numpy(x)))
    expected_q, expected_r = np.linalg.qr(x)
    np.testing.assert_allclose(q, expected_q, atol=1e-14)
    np.testing.assert_allclose(r, expected_r, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_qr_of_small_matrices_spreads_nan(dtype):
    x = taeda.eye(4, dtype=getattr(taeda, dtype))
    x[2, 1] = float("nan")
    q, r = taeda.linalg.qr(x)
    assert taeda.isnan(q).any() and taeda.isnan(r[1, 1])


def graded(n):
    return 10.0 ** -np.arange(n)


SYMMETRIC = {
    "any": lambda n, random: random.standard_normal((n, n)),
    "of rank 2": lambda n, random: np.outer(*random.standard_normal((2, n))),
    "the identity": lambda n, random: np.eye(n) * 3 / 2,
    "zero": lambda n, random: np.zeros((n, n)),
    "diagonal": lambda n, random: np.diag(random.standard_normal(n)),
    "tridiagonal": lambda n, random: np.diag(np.ones(n)) + np.diag(np.ones(n - 1), 1),
    "of ones": lambda n, random: np.ones((n, n)),
    "in blocks": lambda n, random: np.kron(np.eye(n), [[0, 1], [1, 0]])[:n, :n],
    "falling": lambda n, random: np.outer(graded(n), graded(n)) * random.standard_normal((n, n)),
    "rising": lambda n, random: np.outer(*[graded(n)[::-1]] * 2) * random.standard_normal((n, n)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("kind", SYMMETRIC)
def test_small_eigh(kind, n, dtype):
    """Up to 32 rows in a kernel of its own, which reads one triangle."""
    x = SYMMETRIC[kind](n, np.random.default_rng(n))
    epsilon, largest = np.finfo(dtype).eps, np.finfo(dtype).max
    for scale in (1, largest**-0.8, largest**0.8):
        a = ((x + x.T) * scale).astype(dtype)
        exact = a.astype("longdouble") / scale  # whose squares stay in range
        norm = max(float(np.sqrt((exact**2).sum())), epsilon)
        other = np.tril(np.full_like(a, 9), -1)
        for uplo, of in (("L", np.tril(a) + other.T), ("U", np.triu(a) + other)):
            for columns in (False, True):
                batch = taeda.from_numpy(np.stack([of, of]))
                batch = batch.mT.contiguous().mT if columns else batch
                values, vectors = taeda.linalg.eigh(batch, uplo)
                assert taeda.equal(values[0], values[1])
                w, v = (y[0].numpy().astype("longdouble") for y in (values, vectors))
                w /= scale
                assert (np.diff(w) >= 0).all()
                tolerance = 4 * n * epsilon
                assert np.abs(v.T @ v - np.eye(n)).max() < tolerance
                assert np.abs(exact @ v - v * w).max() < tolerance * norm
                only = taeda.linalg.eigvalsh(batch, uplo)[0].numpy().astype("longdouble") / scale
                assert np.abs(only - w).max() < tolerance * norm
                truth = np.linalg.eigvalsh(exact.astype("float64"))
                assert np.abs(w - truth).max() < tolerance * norm


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_eigh_of_what_is_no_number(bad, dtype):
    """Small matrices end as large ones do; the other triangle may hold anything."""
    ends = []
    for n in (8, 40):
        a = np.eye(n, dtype=dtype)
        a[0, 3] = bad
        assert taeda.linalg.eigvalsh(taeda.from_numpy(a)).eq(1).all()
        try:
            ends.append(str(taeda.linalg.eigvalsh(taeda.from_numpy(a), "U").isnan().any().item()))
        except taeda.linalg.LinAlgError as error:
            ends.append(str(error).split("(error")[0])
    assert ends[0] == ends[1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 17])
def test_small_lu(n, dtype):
    a = matrices((50, n, n), dtype)
    P, L, U = (x.numpy() for x in taeda.linalg.lu(taeda.from_numpy(a)))
    close(P @ L @ U, a, dtype)
    assert (np.abs(np.tril(L, -1)) <= (1.5 if "complex" in dtype else 1)).all()
    error = np.abs(taeda.linalg.det(taeda.from_numpy(a)).numpy() - np.linalg.det(a.astype("D")))
    largest = np.linalg.norm(a.astype("D"), axis=2).prod(1)
    assert (error <= 10 * n * np.finfo(dtype).eps * largest).all()


@pytest.mark.parametrize("n", [2, 3, 4, 9])
@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_nan_spreads_through_lu(n, place):
    torch = pytest.importorskip("torch")
    a = np.diag(np.arange(n, 0.0, -1))
    a[0], a[place] = np.arange(n), np.nan
    for x in (a, a.T.copy()):
        ours, theirs = taeda.from_numpy(x), torch.from_numpy(x)
        assert taeda.linalg.det(ours).isnan() and torch.linalg.det(theirs).isnan()
        inverse, info = taeda.linalg.inv_ex(ours)
        expected, their_info = torch.linalg.inv_ex(theirs)
        assert bool(info) == bool(their_info)
        if not info:
            np.testing.assert_array_equal(inverse.isnan().numpy(), expected.isnan().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (4, 4), (8, 8), (3, 7), (8, 2), (1, 5), (9, 8)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_singular_values_of_small_matrices(sizes, dtype, scale):
    rng = np.random.default_rng(sum(sizes))
    a = (rng.standard_normal((5, *sizes)) * scale).astype(dtype)
    a[1] = 0
    a[2, :, 1:] = a[2, :, :1]  # of rank one
    a[3] = np.eye(*sizes) * scale
    a[4, 0] *= 1e-5
    for x in (taeda.from_numpy(a), taeda.from_numpy(a.swapaxes(1, 2).copy()).mT):
        got = taeda.linalg.svdvals(x).numpy()
        expected = np.linalg.svd(a.astype("float64"), compute_uv=False)
        error = np.abs(got - expected).max(-1)
        assert (error <= 20 * np.finfo(dtype).eps * expected.max(-1)).all()
        assert (np.diff(got) <= 0).all() and (got >= 0).all()
    with pytest.raises(taeda.linalg.LinAlgError):
        taeda.linalg.svdvals(taeda.full((4, 4), float("nan"), dtype=getattr(taeda, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [31, 33, 47, 48, 63, 64, 65])
def test_eigenvalues_of_symmetric_matrices(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((4, n, n))
    a[1] = np.outer(a[1, 0], a[1, 0])
    a[2] = np.diag(a[2, 0])
    a[3] *= 1e-20
    a = (a + a.swapaxes(1, 2)).astype(dtype)
    expected = np.linalg.eigvalsh(a.astype("float64"))
    size = np.abs(expected).max(-1, keepdims=True)
    for uplo in "LU":
        got = taeda.linalg.eigvalsh(taeda.from_numpy(a), UPLO=uplo).numpy()
        assert (np.abs(got - expected) <= 2 * n * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("left", [True, False])
def test_lu_solve_exchanges_rows_of_any_numbers(left):
    """Infinities stay in their columns, as where rows are exchanged and not multiplied."""
    a = np.random.default_rng(0).standard_normal((5, 5))
    b = np.random.default_rng(1).standard_normal((5, 3) if left else (3, 5))
    b[(4, 1) if left else (1, 4)] = np.inf
    x = taeda.linalg.lu_solve(
        *taeda.linalg.lu_factor(taeda.from_numpy(a)), taeda.from_numpy(b), left=left
    ).numpy()
    exact = np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T
    kept = (slice(None), [0, 2]) if left else ([0, 2], slice(None))
    np.testing.assert_allclose(x[kept], exact[kept], rtol=1e-10)
