"""Methods of Tensor that programs seldom call, against PyTorch."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")


def outcome(call, package):
    """What a call gives, and its warnings; or the type and the start of the text that it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call(package)
        except Exception as error:
            return type(error).__name__, str(error)[:70]
    if hasattr(found, "dtype"):
        found = str(found.dtype).partition(".")[2], found.tolist()
    return found, [str(w.message) for w in caught]


def matrix(t):
    return t.tensor([[1.5, -2.0, 3.0], [0.25, 4.0, -1.0]])


CALLS = [
    lambda t: matrix(t).resize(3, 2),
    lambda t: matrix(t).t().resize(6),
    lambda t: matrix(t).resize(5),
    lambda t: matrix(t).resize_as(t.ones(6)),
    lambda t: matrix(t).reinforce(1),
    lambda t: matrix(t).solve(1),
    lambda t: matrix(t).lstsq(1),
    lambda t: matrix(t).module_load(t.ones(2, 3)),
    lambda t: matrix(t).module_load(t.ones(2), assign=True),
    lambda t: matrix(t).float_power_(2),
    lambda t: t.tensor([2.0, 3.0], dtype=t.float64).float_power_(3),
    lambda t: matrix(t).const_data_ptr() > 0,
    lambda t: (matrix(t) > 0)._is_all_true(),
    lambda t: (matrix(t) > 0)._is_any_true(),
    lambda t: t.hash_tensor(matrix(t)),
    lambda t: matrix(t).hash_tensor(1),
    lambda t: matrix(t).hash_tensor(dim=[0], keepdim=True),
    lambda t: t.hash_tensor(matrix(t), (0, -1), keepdim=True),
    lambda t: t.hash_tensor(t.tensor(2.0)),
    lambda t: t.hash_tensor(t.tensor([3, -200, 7])),
    lambda t: t.hash_tensor(t.tensor([[True, False], [True, True]]), 1),
    lambda t: t.hash_tensor(matrix(t).half()),
    lambda t: t.hash_tensor(t.zeros(2, 0, 3), 0),
    lambda t: t.hash_tensor(t.zeros(2, 0), 1),
    lambda t: t.hash_tensor(t.zeros(0)),
    lambda t: t.hash_tensor(matrix(t), 2),
    lambda t: t.hash_tensor(matrix(t), mode=1),
    lambda t: t.hash_tensor(matrix(t) + 1j),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_results_and_errors_are_pytorchs(number):
    assert outcome(CALLS[number], taeda) == outcome(CALLS[number], torch)


def test_polygamma_in_place():
    x, y = (t.tensor([0.5, 2.0], dtype=t.float64) for t in (taeda, torch))
    assert x.polygamma_(1) is x
    assert x.tolist() == pytest.approx(y.polygamma_(1).tolist())


@pytest.mark.parametrize("call", [lambda x: x.polygamma_(1), lambda x: x.float_power_(3)])
def test_backward_reads_what_was_there_before_the_write(call):
    found = []
    for lib in (taeda, pytest.importorskip("torch")):
        leaf = lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True)
        call(leaf * 1).sum().backward()
        found.append(leaf.grad.tolist())
    assert found[0] == pytest.approx(found[1])


def test_resizing_has_a_gradient():
    grads = []
    for t in (taeda, torch):
        x = matrix(t).requires_grad_()
        with pytest.warns(UserWarning, match="non-inplace resize"):
            (x.resize(6) * t.arange(6.0)).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_devices_that_are_not_there():
    for name in ("xpu", "mtia"):
        with pytest.raises(RuntimeError, match=name):
            getattr(taeda.ones(1), name)()
