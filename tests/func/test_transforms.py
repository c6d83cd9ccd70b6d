"""torch.func against PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def both(call):
    """The call with each framework, as nested lists."""

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return value.tolist() if hasattr(value, "tolist") else value

    def close(a, b):
        if isinstance(a, dict):
            assert list(a) == list(b)
            a, b = list(a.values()), list(b.values())
        if isinstance(a, list) and a and isinstance(a[0], (list, dict)):
            assert len(a) == len(b)
            for x, y in zip(a, b):
                close(x, y)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    ours, theirs = plain(call(taeda)), plain(call(torch))
    close(ours, theirs)


def f(lib, x):
    return (x.sin() * x**2).sum()


X = [0.3, -1.2, 2.0]
CALLS = {
    "grad": lambda t: t.func.grad(lambda x: f(t, x))(t.tensor(X)),
    "second": lambda t: t.func.grad(lambda x: t.func.grad(lambda y: f(t, y))(x).sum())(t.tensor(X)),
    "third": lambda t: t.func.grad(t.func.grad(t.func.grad(lambda x: x**5)))(t.tensor(2.0)),
    "argnums": lambda t: t.func.grad(lambda x, y: (x * y**2).sum(), argnums=(0, 1))(
        t.tensor(X), t.ones(3) * 2
    ),
    "dict": lambda t: t.func.grad(lambda p, x: (p["w"] * x + p["b"][0]).exp().sum())(
        {"w": t.tensor(X), "b": [t.ones(3)]}, t.ones(3)
    ),
    "aux": lambda t: t.func.grad(lambda x: (f(t, x), x * 2), has_aux=True)(t.tensor(X)),
    "value": lambda t: t.func.grad_and_value(lambda x: f(t, x))(t.tensor(X)),
    "unused": lambda t: t.func.grad(lambda x, y: y.sum())(t.tensor(X), t.tensor(X)),
    "captured": lambda t: (lambda w: t.func.grad(lambda x: (w * x).prod())(w))(t.tensor(X)),
    "vjp": lambda t: t.func.vjp(lambda x, y: (x * y, x.sum()), t.tensor(X), t.tensor(X))[1](
        (t.ones(3), t.tensor(2.0))
    ),
    "jvp": lambda t: t.func.jvp(lambda x: x.exp() * x[0], (t.tensor(X),), (t.ones(3),)),
    "jacrev": lambda t: t.func.jacrev(lambda x: x[:2, None] * x)(t.tensor(X)),
    "jacfwd": lambda t: t.func.jacfwd(lambda x: x[:2, None] * x)(t.tensor(X)),
    "jacrev of two": lambda t: t.func.jacrev(lambda x, y: (x * y, y.sum()), argnums=(0, 1))(
        t.tensor(X), t.tensor(X)
    ),
    "hessian": lambda t: t.func.hessian(lambda x: f(t, x))(t.tensor(X)),
    "jac of grad": lambda t: t.func.jacrev(t.func.grad(lambda x: f(t, x)))(t.tensor(X)),
    "linearize": lambda t: t.func.linearize(lambda x: x.sin(), t.tensor(X))[1](t.ones(3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_pytorchs(name):
    both(CALLS[name])


def test_transforms_take_part_in_backward():
    def gradients(t):
        w = t.tensor(X, requires_grad=True)
        x = t.tensor(X, requires_grad=True)
        y = t.func.grad(lambda z: (w**2 * z**3).sum())(t.ones(3))  # by w only through the closure
        z = t.func.grad(lambda z: (z**3).sum())(x)
        (y.sum() + z.sum()).backward()
        return w.grad, x.grad

    both(gradients)
    plain = taeda.func.grad(lambda x: (x**2).sum())(taeda.ones(2))
    assert not plain.requires_grad and plain.grad_fn is None
    with taeda.no_grad():
        x = taeda.ones(2, requires_grad=True)
        assert not taeda.func.grad(lambda x: (x**2).sum())(x).requires_grad


def test_functional_call_under_grad():
    def gradients(t):
        t.manual_seed(0)
        model = t.nn.Linear(3, 1)
        params = {k: v.detach() for k, v in model.named_parameters()}
        loss = lambda p, x: (t.func.functional_call(model, p, (x,)) ** 2).mean()  # noqa: E731
        return t.func.grad(loss)(params, t.ones(2, 3))

    both(gradients)


def test_mistakes():
    with pytest.raises(RuntimeError, match="scalar tensor"):
        taeda.func.grad(lambda x: x)(taeda.ones(2))
    with pytest.raises(RuntimeError, match="only 1 positional"):
        taeda.func.grad(lambda x: x, argnums=1)(taeda.ones(2))
    with pytest.raises(NotImplementedError, match="vmap"):
        taeda.func.vmap(lambda x: x)
