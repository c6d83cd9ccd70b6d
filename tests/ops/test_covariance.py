"""torch.cov and torch.corrcoef, against NumPy; their errors against PyTorch."""

import numpy as np
import pytest

import taeda

X = np.random.default_rng(0).standard_normal((3, 6))
COUNTS, WEIGHTS = np.array([1, 2, 0, 3, 1, 1]), np.array([0.5, 1.0, 2.0, 0.1, 0.0, 3.0])


@pytest.mark.parametrize("correction", [0, 1, 2])
@pytest.mark.parametrize("fweights", [None, COUNTS])
@pytest.mark.parametrize("aweights", [None, WEIGHTS])
@pytest.mark.parametrize("x", [X, X[0], X + 1j * X[::-1], (X * 9).astype("int64")])
def test_covariance(x, fweights, aweights, correction):
    truth = np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)
    given = {
        name: taeda.from_numpy(w)
        for name, w in (("fweights", fweights), ("aweights", aweights))
        if w is not None
    }
    ours = taeda.cov(taeda.from_numpy(x), correction=correction, **given).numpy()
    np.testing.assert_allclose(ours, truth, rtol=1e-12 if x.dtype != "int64" else 1e-5)


def test_correlation():
    np.testing.assert_allclose(
        taeda.corrcoef(taeda.from_numpy(X)).numpy(), np.corrcoef(X), rtol=1e-12
    )
    assert taeda.corrcoef(taeda.tensor([1.0, 2.0, 4.0])) == 1
    assert taeda.corrcoef(taeda.tensor([[1.0, 2, 3], [2.0, 4, 6.1]])).abs().max() <= 1


@pytest.mark.parametrize(
    "shape, weights",
    [
        ((2, 2, 2), {}),
        ((2, 4), {"fweights": [1.0, 1, 1, 1]}),
        ((2, 4), {"fweights": [[1, 1], [1, 1]]}),
        ((2, 4), {"aweights": [1, 1, 1, 1]}),
        ((2, 4), {"aweights": [1.0, 1, 1]}),
        ((2, 4), {"fweights": [1, -1, 1, 1]}),
        ((2, 4), {"fweights": [0, 0, 0, 0]}),
    ],
)
def test_errors_are_pytorchs(shape, weights):
    torch = pytest.importorskip("torch")
    messages = []
    for framework in (taeda, torch):
        given = {name: framework.tensor(w) for name, w in weights.items()}
        with pytest.raises(RuntimeError) as error:
            framework.cov(framework.ones(shape), **given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_too_few_observations_warn():
    with pytest.warns(UserWarning, match=r"cov\(\): degrees of freedom is <= 0"):
        assert taeda.cov(taeda.tensor([3.0])).isnan()
    with pytest.raises(RuntimeError, match="bool dtype is not supported"):
        taeda.cov(taeda.ones(2, 2) > 0)
