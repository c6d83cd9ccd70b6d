"""torch.lobpcg against eigh, SciPy's generalized problem and finite differences."""

import numpy as np
import pytest

import taeda


def symmetric(m, *batch, seed=0, dtype=taeda.float64):
    a = np.random.default_rng(seed).standard_normal((*batch, m, m))
    return taeda.tensor(a + a.swapaxes(-1, -2), dtype=dtype)


def positive(m, seed=1):
    a = np.random.default_rng(seed).standard_normal((m, m))
    return taeda.tensor(a @ a.T + m * np.eye(m))


@pytest.mark.parametrize("method", ["ortho", "basic"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_eigenpairs_are_those_of_eigh(method, largest, batch):
    a = symmetric(24, *batch)
    taeda.manual_seed(0)
    values, vectors = taeda.lobpcg(a, k=3, largest=largest, method=method, tol=1e-12, niter=-1)
    all_of_them = np.linalg.eigvalsh(a.numpy())
    expected = all_of_them[..., ::-1][..., :3] if largest else all_of_them[..., :3]
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)
    assert vectors.shape == (*batch, 24, 3)
    residual = a @ vectors - vectors * values[..., None, :]
    assert residual.abs().max() < 1e-9
    assert taeda.allclose(vectors.mT @ vectors, taeda.eye(3, dtype=taeda.float64), atol=1e-10)


@pytest.mark.parametrize("method", ["ortho", "basic"])
def test_the_generalized_problem_is_scipys(method):
    linalg = pytest.importorskip("scipy.linalg")
    a, b = symmetric(24), positive(24)
    values, x = taeda.lobpcg(a, 2, b, method=method, tol=1e-12, niter=-1)
    expected = linalg.eigh(a.numpy(), b.numpy(), eigvals_only=True)[::-1][:2]
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)
    assert taeda.allclose(x.mT @ b @ x, taeda.eye(2, dtype=taeda.float64), atol=1e-9)


def test_sparse_matrices_and_a_preconditioner():
    """The Laplacian of a line, whose eigenvalues are 2 - 2 cos(pi j / (m + 1))."""
    m = 60
    a = taeda.diag(taeda.full((m,), 2.0, dtype=taeda.float64))
    a -= taeda.diag(taeda.ones(m - 1, dtype=taeda.float64), 1)
    a -= taeda.diag(taeda.ones(m - 1, dtype=taeda.float64), -1)
    expected = 2 - 2 * np.cos(np.pi * np.arange(1, 4) / (m + 1))
    steps = []
    for matrix in (a.to_sparse(), a.to_sparse_csr()):
        for preconditioner in (None, taeda.linalg.inv(a)):
            taeda.manual_seed(0)
            seen = []
            values, _ = taeda.lobpcg(
                matrix, 3, iK=preconditioner, largest=False, tol=1e-9, tracker=seen.append
            )
            np.testing.assert_allclose(values.numpy(), expected, rtol=1e-6)
            steps.append(len(seen))
    assert steps[1] < steps[0] and steps[3] < steps[2]


def test_a_tracker_sees_the_state_and_may_end_it():
    steps = []

    def track(state):
        steps.append((state.ivars["istep"], state.ivars["converged_count"], state.E.clone()))
        assert state.tvars["rerr"].shape == (4,) and state.X.shape == state.R.shape == (30, 4)
        if len(steps) == 5:
            state.bvars["force_stop"] = True

    taeda.lobpcg(symmetric(30), k=2, n=4, tol=0, tracker=track)
    assert [step for step, *_ in steps] == [1, 2, 3, 4, 5]
    bounds = [values[0].item() for *_, values in steps]
    assert bounds == sorted(bounds)  # Rayleigh quotients only grow


def test_a_number_of_steps_and_a_start():
    a = symmetric(30)
    start = taeda.linalg.eigh(a).eigenvectors[:, -2:]
    seen = []
    values, _ = taeda.lobpcg(a, X=start, tracker=lambda state: seen.append(state.ivars["istep"]))
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(a.numpy())[:-3:-1])
    assert seen == [1]  # it has converged
    taeda.lobpcg(a, k=1, niter=7, tol=0, tracker=seen.append)
    assert len(seen) == 8


@pytest.mark.parametrize("largest", [True, False])
def test_gradients_are_finite_differences(largest):
    a = symmetric(6, 2).requires_grad_()
    pick = taeda.tensor(np.random.default_rng(2).standard_normal((6, 2)))

    def value(a):
        taeda.manual_seed(0)
        values, x = taeda.lobpcg(a, k=2, largest=largest, tol=1e-11, niter=60)
        projector = x @ x.mT  # of the vectors what does not depend on their signs
        return (values * taeda.tensor([1.0, 2.0])).sum() + (pick.mT @ projector @ pick).sum()

    assert taeda.autograd.gradcheck(value, (a,), eps=1e-5, atol=1e-5)


def test_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")
    grads = []
    for of in (taeda, torch):
        a = of.tensor(symmetric(12).tolist(), dtype=of.float64, requires_grad=True)
        values, x = of.lobpcg(a, k=2, tol=1e-12, niter=500, largest=False)
        (values.sum() + (x**4).sum()).backward()
        grads.append(np.array(a.grad.tolist()))
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-7)


def test_what_is_refused():
    a = symmetric(9)
    with pytest.raises(ValueError, match="smaller than 3 x the number"):
        taeda.lobpcg(a, k=4)
    with pytest.raises(AssertionError, match="A must be square"):
        taeda.lobpcg(a[:3], k=1)
    with pytest.raises(AssertionError, match="same shape"):
        taeda.lobpcg(a, 1, a[:3, :3])
    with pytest.raises(AssertionError, match="X shape mismatch"):
        taeda.lobpcg(a, X=taeda.zeros(4, 2, dtype=taeda.float64))
    b = positive(9).requires_grad_()
    with pytest.raises(ValueError, match="B != I"):
        taeda.lobpcg(a, 1, b)[0].sum().backward()


def test_float32_ends_at_its_own_tolerance():
    a = symmetric(40, dtype=taeda.float32)
    values, _ = taeda.lobpcg(a, k=2)
    expected = np.linalg.eigvalsh(a.double().numpy())[::-1][:2]
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-4)
