"""utils.checkpoint: the same gradients as without, fewer saved tensors, and its errors."""

import pytest

import taeda
from taeda.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def leaf(*values):
    return taeda.tensor(list(values), dtype=taeda.float64, requires_grad=True)


def region(x, w):
    return ((x * w).tanh() * w).exp()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradients(use_reentrant):
    x, w = leaf(0.5, 1.0), leaf(2.0, -1.0)
    region(x, w).sum().backward()
    expected = x.grad, w.grad
    x.grad = w.grad = None
    checkpoint(region, x, w, use_reentrant=use_reentrant).sum().backward()
    assert taeda.equal(x.grad, expected[0]) and taeda.equal(w.grad, expected[1])


def test_recomputes_once_and_stops_early():
    calls = []

    def counted(x):
        calls.append("start")
        y = x.exp().sin()
        calls.append("end")
        return y * 1

    x = leaf(0.5)
    y = checkpoint(counted, x, use_reentrant=False)
    assert calls == ["start", "end"]
    y.backward(retain_graph=True)
    assert calls[2:] in (["start"], ["start", "end"])
    first = x.grad.clone()
    y.backward()  # once more, from the start
    assert taeda.equal(x.grad, 2 * first)


def test_intermediate_tensors_are_not_kept():
    alive = []

    def region(x):
        h = x.exp()
        import weakref

        alive.append(weakref.ref(h))
        return h.sin()

    x = leaf(0.5)
    y = checkpoint(region, x, use_reentrant=False)
    assert alive[0]() is None
    y.backward()
    assert x.grad is not None


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_random_numbers_repeat(use_reentrant):
    def noisy(x):
        return x * taeda.rand(4, dtype=taeda.float64)

    x = taeda.ones(4, dtype=taeda.float64, requires_grad=True)
    taeda.manual_seed(0)
    y = checkpoint(noisy, x, use_reentrant=use_reentrant)
    after = taeda.rand(1)
    y.sum().backward()
    assert taeda.equal(x.grad, y.detach())
    taeda.manual_seed(0)
    taeda.rand(4, dtype=taeda.float64)
    assert taeda.equal(taeda.rand(1), after)


def test_nested():
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, x * 2, use_reentrant=False).tanh()

    x = leaf(0.3, 0.6)
    outer_plain = (x * 2).sin().exp().tanh().sum()
    (expected,) = taeda.autograd.grad(outer_plain, x)
    (found,) = taeda.autograd.grad(checkpoint(outer, x, use_reentrant=False).sum(), x)
    assert taeda.allclose(found, expected)


def test_second_derivative():
    x = leaf(0.3, 0.6)

    def f(v):
        return (v.sin() * v.exp()).sum()

    results = []
    for run in (f, lambda v: checkpoint(f, v, use_reentrant=False)):
        (g,) = taeda.autograd.grad(run(x), x, create_graph=True)
        (gg,) = taeda.autograd.grad(g.sum(), x)
        results.append((g.detach(), gg))
    assert taeda.allclose(results[0][0], results[1][0]) and taeda.allclose(
        results[0][1], results[1][1]
    )


def test_keyword_arguments_and_other_values():
    def f(x, k, *, w):
        return {"y": x * k + w}, k

    x, w = leaf(1.0), leaf(5.0)
    out, k = checkpoint(f, x, 3, w=w, use_reentrant=False)
    out["y"].backward()
    assert (k, x.grad.item(), w.grad.item()) == (3, 3, 1)


def test_reentrant_and_grad():
    x, w = leaf(1.0), leaf(2.0)
    y = checkpoint(region, x, w, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"torch.utils.checkpoint is incompatible with .grad()"):
        taeda.autograd.grad(y.sum(), x)


def test_changed_recomputation_is_found():
    sizes = iter([2, 3, 2, 3])

    def changing(x):
        return (x[: next(sizes)] * 2).exp()

    x = leaf(1.0, 2.0, 3.0)
    y = checkpoint(changing, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()


def test_fewer_tensors_in_the_recomputation():
    flags = iter([True, False])

    def changing(x):
        y = x.exp()
        return y.sin() if next(flags) else y

    y = checkpoint(changing, leaf(1.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        y.backward()


def test_under_no_grad():
    with taeda.no_grad():
        assert not checkpoint(region, leaf(1.0), leaf(1.0), use_reentrant=False).requires_grad


def test_warns_without_use_reentrant():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(region, leaf(1.0), leaf(1.0))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_sequential(use_reentrant):
    functions = [taeda.sin, taeda.exp, taeda.tanh, taeda.sin, taeda.exp]
    x = leaf(0.3)
    y = x
    for f in functions:
        y = f(y)
    (expected,) = taeda.autograd.grad(y, x)
    checkpoint_sequential(functions, 2, x, use_reentrant=use_reentrant).backward()
    assert taeda.allclose(x.grad, expected)
