"""torch.gradient against NumPy and PyTorch, torch.lu and what else Python composes."""

import numpy as np
import pytest

import taeda


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_numpys(edge_order):
    x = np.random.default_rng(0).standard_normal((4, 5, 3))
    t = taeda.from_numpy(x)
    places = [np.array([0.0, 1, 3, 7]), np.array([0.0, 2, 3, 4, 9]), np.array([1.0, 2, 4])]
    tensors = [taeda.from_numpy(p) for p in places]
    cases = [
        ({}, (), {}),
        ({"spacing": 2.0}, (2.0,), {}),
        ({"spacing": [2.0, 3.0, 0.5]}, (2.0, 3.0, 0.5), {}),
        ({"spacing": tensors}, tuple(places), {}),
        ({"dim": 1}, (), {"axis": 1}),
        (
            {"dim": (2, 0), "spacing": [tensors[2], tensors[0]]},
            (places[2], places[0]),
            {"axis": (2, 0)},
        ),
        ({"dim": -1, "spacing": (3.0,)}, (3.0,), {"axis": -1}),
    ]
    for ours, arguments, options in cases:
        truth = np.gradient(x, *arguments, edge_order=edge_order, **options)
        found = taeda.gradient(t, edge_order=edge_order, **ours)
        truth = truth if isinstance(truth, (list, tuple)) else [truth]
        assert isinstance(found, tuple) and len(found) == len(truth)
        for a, b in zip(found, truth):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-12)


def test_gradient_of_two_elements_and_integers():
    assert taeda.gradient(taeda.tensor([1, 4]))[0].tolist() == [3.0, 3.0]
    assert taeda.gradient(taeda.tensor([0, 1, 4, 9]))[0].dtype == taeda.float32
    assert taeda.gradient(taeda.tensor(1.0)) == ()
    x = taeda.rand(5, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda v: taeda.gradient(v, edge_order=2)[0], (x,))


@pytest.mark.parametrize(
    "options, kind",
    [
        ({"spacing": [1.0, 2.0, 3.0]}, RuntimeError),
        ({"dim": 5}, IndexError),
        ({"dim": (0, 0)}, RuntimeError),
        ({"edge_order": 3}, RuntimeError),
        ({"spacing": "a"}, TypeError),
        ({"dim": (0, 1), "spacing": [1.0]}, RuntimeError),
    ],
)
def test_gradient_refuses(options, kind):
    x = taeda.rand(3, 3)
    with pytest.raises(kind) as ours:
        taeda.gradient(x, **options)
    torch = pytest.importorskip("torch")
    with pytest.raises(kind) as theirs:
        torch.gradient(torch.rand(3, 3), **options)
    if kind is not TypeError and "spacing" not in options:
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(RuntimeError, match="at least edge_order"):
        taeda.gradient(x[:1])
    with pytest.raises(RuntimeError, match="have one dimension"):
        taeda.gradient(x, spacing=(taeda.ones(3, 3),) * 2)


def test_lu():
    A = taeda.tensor([[0.0, 2.0], [4.0, 6.0]])
    with pytest.warns(UserWarning, match="torch.lu is deprecated"):
        factors, pivots = taeda.lu(A)
    with pytest.warns(UserWarning, match="torch.lu is deprecated"):
        same, _, infos = A.lu(get_infos=True)
    assert factors.tolist() == same.tolist() == [[4.0, 6.0], [0.0, 2.0]]
    assert pivots.tolist() == [2, 2] and infos == 0
