"""Alias without history inside of transforms: detach() as round's slope, as a softmax's shift."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

X = [0.7, 1.9, -0.4]


def straight_through(t, x):
    y = x * 1.3
    return y + (y.round() - y).detach()


def factor(t, x):
    return (x * 1).detach() * x


def shifted(t, x):
    return (x - x.detach().max()).exp() * x


def normed(t, x):
    y = x.sin()
    return y / (y * y).sum().sqrt().detach()


def of_a_view(t, x):
    return (x * 1)[1:].detach() * x[:-1] * x[1:]


def twice(t, x):
    return (x * x).detach().detach() * x


def by_order(t, x):
    return t.zeros_like(x).scatter(0, x.detach().argsort(), x) * x


def writes_the_base(t, x):
    y = x * 1
    z = y.detach()
    y.mul_(x)
    return z * x


def writes_the_alias(t, x):
    y = x * 1
    z = y.detach()
    z.mul_(3)
    return z * x


PROGRAMS = [straight_through, factor, shifted, normed, of_a_view, twice, by_order, writes_the_base,
            writes_the_alias]  # fmt: skip
TRANSFORMS = {
    "jacfwd": lambda t, f: t.func.jacfwd(f),
    "jacrev": lambda t, f: t.func.jacrev(f),
    "hessian": lambda t, f: t.func.hessian(lambda x: f(x).sum()),
    "forward over reverse": lambda t, f: t.func.jacfwd(t.func.jacrev(f)),
    "vmap of jvp": lambda t, f: t.func.vmap(lambda x: t.func.jvp(f, (x,), (x.cos(),))[1]),
    "vmap of grad": lambda t, f: t.func.vmap(t.func.grad(lambda x: f(x).sum())),
    "vmap of hessian": lambda t, f: t.func.vmap(t.func.hessian(lambda x: f(x).sum())),
    "grad of vmap": lambda t, f: t.func.grad(lambda x: t.func.vmap(f)(x).sum()),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_detach_stops_derivatives_as_in_pytorch(name, program):
    def run(t):
        x = t.tensor(X, dtype=t.float64)
        if "vmap" in name:
            x = t.stack([x, x * 0.5])
        return TRANSFORMS[name](t, lambda x: program(t, x))(x)

    expected = run(torch).numpy(force=True)
    np.testing.assert_allclose(run(taeda).numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_detach_stops_derivatives_inside_functionalize(program):
    f = lambda x: program(taeda, x)  # noqa: E731
    x = taeda.tensor(X, dtype=taeda.float64)
    expected = torch.func.jacrev(lambda x: program(torch, x))(torch.tensor(X, dtype=torch.float64))
    for jacobian in (taeda.func.jacfwd, taeda.func.jacrev):
        for found in (jacobian(taeda.func.functionalize(f)), taeda.func.functionalize(jacobian(f))):
            np.testing.assert_allclose(found(x).numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_detach_in_a_checkpoint_inside_of_jacfwd():
    from taeda.utils.checkpoint import checkpoint

    x = taeda.tensor(X, dtype=taeda.float64)
    f = lambda x: checkpoint(lambda y: straight_through(taeda, y), x, use_reentrant=False)  # noqa: E731
    np.testing.assert_allclose(taeda.func.jacfwd(f)(x).numpy(), 1.3 * np.eye(3))


def test_what_detach_gives_requires_no_grad_inside_of_vmap():
    seen = []

    def f(x):
        z = (x * 1).detach()
        seen.append((z.requires_grad, z.is_leaf, z._base is None))
        return x.sum()

    taeda.func.vmap(taeda.func.grad(f))(taeda.ones(2, 3))
    assert seen == [(False, True, True)]


def test_detach_shares_memory_and_version_inside_of_vmap():
    def f(x):
        y = x * 1
        z = y.detach()
        z.add_(1)
        return y, taeda.tensor(y._version)

    y, version = taeda.func.vmap(f)(taeda.zeros(2, 3))
    assert y.tolist() == [[1.0] * 3] * 2
    assert version.tolist() == [1, 1]


def test_a_saved_tensor_that_is_written_through_its_alias_is_refused_inside_of_vmap():
    def f(x):
        y = x.exp()
        y.detach().mul_(2)
        return y.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        taeda.func.vmap(taeda.func.grad(f))(taeda.ones(2, 3))


@pytest.mark.parametrize("name", [*TRANSFORMS, "jvp of functionalize", "functionalize of jvp"])
def test_detach_in_place_stops_them_too(name):
    def program(t, x):
        return (x * 2).detach_() * x

    def by_detach(t, x):
        return (x * 2).detach() * x

    transforms = TRANSFORMS | {
        "jvp of functionalize": lambda t, f: (
            lambda x: t.func.jvp(t.func.functionalize(f), (x,), (x.cos(),))[1]
        ),
        "functionalize of jvp": lambda t, f: t.func.functionalize(
            lambda x: t.func.jvp(f, (x,), (x.cos(),))[1]
        ),
    }

    def run(t, f):
        x = t.tensor(X, dtype=t.float64)
        if "vmap" in name:
            x = t.stack([x, x * 0.5])
        return transforms[name](t, lambda x: f(t, x))(x)

    expected = run(torch, by_detach).numpy(force=True)
    np.testing.assert_allclose(run(taeda, program).numpy(), expected, rtol=1e-9, atol=1e-12)
