"""Transforms of transforms, in every order, against PyTorch and finite differences."""

import itertools
import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def rows(y):
    """A result of any shape as a number for each element of its first dimension."""
    return y if y.dim() < 2 else y.flatten(1).sum(1)


def batch(t, f, x):
    return t.func.vmap(f)(t.stack([x, 0.5 * x.flip(0)]))


def module_of(t, f):
    """A module whose parameter is the argument of f."""

    class Holder(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = t.nn.Parameter(t.zeros(2, dtype=t.float64))

        def forward(self):
            return f(self.x)

    return Holder()


# Each makes of a function of one vector another such function.
TRANSFORMS = {
    "grad": lambda t, f: t.func.grad(lambda x: (f(x) * 0.5).sum()),
    "vjp": lambda t, f: lambda x: (lambda y, back: back(y.cos())[0])(*t.func.vjp(f, x)),
    "jvp": lambda t, f: lambda x: t.func.jvp(f, (x,), (x.cos(),))[1],
    "jacrev": lambda t, f: lambda x: rows(t.func.jacrev(f)(x)),
    "jacfwd": lambda t, f: lambda x: rows(t.func.jacfwd(f)(x)),
    "hessian": lambda t, f: lambda x: rows(t.func.hessian(f)(x)),
    "vmap": lambda t, f: lambda x: rows(batch(t, f, x)),
    "linearize": lambda t, f: lambda x: t.func.linearize(f, x)[1](x.sin()),
    "functionalize": lambda t, f: t.func.functionalize(f),
    "functional_call": lambda t, f: lambda x: t.func.functional_call(module_of(t, f), {"x": x}, ()),
}


def jacobian(f, x):
    """By PyTorch's ordinary autograd, in loops."""
    y = f(x)
    grads = [
        torch.autograd.grad(v, x, create_graph=True, allow_unused=True)[0]
        if v.requires_grad
        else None
        for v in y.reshape(-1)
    ]
    grads = [torch.zeros_like(x) if g is None else g for g in grads]
    return torch.stack(grads).reshape((*y.shape, *x.shape))


def along(f, x, v):
    return (jacobian(f, x) * v).sum(-1)


# The same without torch.func.
LOOPS = {
    "grad": lambda f: lambda x: jacobian(lambda x: (f(x) * 0.5).sum(), x),
    "vjp": lambda f: lambda x: rows((jacobian(f, x) * f(x).cos().unsqueeze(-1)).movedim(-1, 0)),
    "jvp": lambda f: lambda x: along(f, x, x.cos()),
    "jacrev": lambda f: lambda x: rows(jacobian(f, x)),
    "jacfwd": lambda f: lambda x: rows(jacobian(f, x)),
    "hessian": lambda f: lambda x: rows(jacobian(lambda x: jacobian(f, x), x)),
    "vmap": lambda f: lambda x: rows(torch.stack([f(x), f(0.5 * x.flip(0))])),
    "linearize": lambda f: lambda x: along(f, x, x.sin()),
    "functionalize": lambda f: f,
    "functional_call": lambda f: f,
    "slope": lambda f: lambda x: jacobian(lambda x: f(x).sum(), x),
}


def products(t, x):
    w = t.tensor([[0.3, -0.7], [1.1, 0.4]], dtype=t.float64)
    return (w @ x).sin() * x


def branches(t, x):
    return t.where(x > 0.2, x**3, x.exp() * x.prod())


def views_and_writes(t, x):
    y = x * x
    y[1:].add_(x[:1].sin())
    y.add_(x.flip(0).view(2, 1).squeeze(1))
    y[0] = x[0].exp() * x[1]
    return y * x.prod()


def number(t, x):
    return (x.sin() * x[0] ** 2).sum().exp()


FUNCTIONS = [products, branches, views_and_writes, number]
X = [0.6, -0.4]


def composed(t, names, function):
    f = lambda x: function(t, x)  # noqa: E731
    for name in names:
        f = TRANSFORMS[name](t, f)
    return f


def value(t, names, function, x=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(composed(t, names, function)(t.tensor(x, dtype=t.float64)).tolist())


def by_loops(names, function):
    f = lambda x: function(torch, x)  # noqa: E731
    for name in names:
        f = LOOPS[name](f)
    return np.array(f(torch.tensor(X, dtype=torch.float64, requires_grad=True)).tolist())


def same(found, expected, names):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=str(names))


@pytest.mark.parametrize("outermost", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_and_two_are_what_loops_compute(function, outermost):
    for names in [(outermost,), *((inner, outermost) for inner in TRANSFORMS)]:
        same(value(taeda, names, function), by_loops(names, function), names)


# PyTorch's linearize nests in nothing, its functionalize not in itself.
THEIRS = [name for name in TRANSFORMS if name not in ("linearize", "functionalize")]


@pytest.mark.parametrize("outermost", THEIRS)
def test_pairs_are_those_of_torch_func(outermost):
    for inner in THEIRS:
        names = (inner, outermost)
        same(value(taeda, names, products), value(torch, names, products), names)


@pytest.mark.parametrize("outermost", TRANSFORMS)
@pytest.mark.parametrize("middle", TRANSFORMS)
def test_three_are_what_loops_compute(middle, outermost):
    for inner in TRANSFORMS:
        names = (inner, middle, outermost)
        if names.count("hessian") < 2:  # the loops take seconds for more
            same(value(taeda, names, number), by_loops(names, number), names)


@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_of_compositions_are_finite_differences(function, inner):
    x, h = np.array(X), 1e-6
    for names in [(inner,), *((inner, other) for other in ("grad", "vmap", "jacfwd"))]:
        slope = value(taeda, (*names, "jvp"), function)
        ahead = value(taeda, names, function, (x + h * np.cos(x)).tolist())
        behind = value(taeda, names, function, (x - h * np.cos(x)).tolist())
        np.testing.assert_allclose(
            slope, (ahead - behind) / (2 * h), rtol=2e-4, atol=1e-5, err_msg=str(names)
        )


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-".join)
def test_compositions_take_part_in_an_ordinary_backward(names):
    def gradient(t):
        x = t.tensor(X, dtype=t.float64, requires_grad=True)
        y = composed(t, names, products)(x)
        plain = composed(t, names, products)(x.detach())
        assert not plain.requires_grad and plain.grad_fn is None
        y.sum().backward()
        return x.grad.tolist()

    same(gradient(taeda), by_loops((*names, "slope"), products), names)


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-".join)
def test_what_is_captured_is_differentiated_outside(names):
    """The weight of the inner function is an outer transform's argument."""
    x = taeda.tensor(X, dtype=taeda.float64)

    def of_weight(w):
        return composed(taeda, names, lambda t, x: (x * w).sin() * (w * w).sum())(x).sum()

    w, h = taeda.tensor([0.7, 1.3], dtype=taeda.float64), 1e-6
    direction = taeda.tensor([0.4, -1.0], dtype=taeda.float64)
    expected = ((of_weight(w + h * direction) - of_weight(w - h * direction)) / (2 * h)).item()
    slope = taeda.func.grad(of_weight)(w) @ direction
    along = taeda.func.jvp(of_weight, (w,), (direction,))[1]
    leaf = w.clone().requires_grad_()
    of_weight(leaf).backward()
    for found in (slope, along, leaf.grad @ direction):
        assert found.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    both = taeda.func.vmap(of_weight)(taeda.stack([w, 2 * w]))
    assert both.tolist() == pytest.approx([of_weight(w).item(), of_weight(2 * w).item()])


def cube_function(t):
    """x ** 3 by a Function that vmap runs inside."""

    class Cube(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, gy):
            return gy * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 3 * ctx.saved_tensors[0] ** 2

    return Cube


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-".join)
def test_functions_with_a_generated_rule_are_what_they_compute(names):
    cube = cube_function(taeda).apply
    found = value(taeda, names, lambda t, x: cube(x).sum().sin() * x)
    same(found, by_loops(names, lambda t, x: (x**3).sum().sin() * x), names)


@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids="-".join)
def test_nothing_depends_on_no_grad_outside(names):
    with taeda.no_grad():
        found = value(taeda, names, views_and_writes)
    same(found, by_loops(names, views_and_writes), names)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100])
def test_chunks_are_the_whole(chunk_size):
    f = lambda x: products(taeda, x)  # noqa: E731
    x = taeda.tensor(X, dtype=taeda.float64)
    for by in (taeda.func.jacrev, taeda.func.jacfwd):
        assert taeda.allclose(by(f, chunk_size=chunk_size)(x), by(f)(x), rtol=1e-12)
        batch = taeda.stack([x, 2 * x, -x])
        inside = taeda.vmap(by(f), chunk_size=chunk_size)(batch)
        assert taeda.allclose(inside, taeda.stack([by(f)(row) for row in batch]), rtol=1e-12)


@pytest.mark.parametrize("inner", [n for n in TRANSFORMS if n != "vmap"])
def test_a_batch_of_no_samples_has_the_shape_of_some(inner):
    f = composed(taeda, (inner,), products)
    none, some = taeda.zeros(0, 2, dtype=taeda.float64), taeda.zeros(3, 2, dtype=taeda.float64)
    found, like = taeda.vmap(f)(none), taeda.vmap(f)(some)
    assert found.shape == (0, *like.shape[1:]) and found.dtype == like.dtype


def test_jacobians_of_nothing_are_empty():
    x = taeda.zeros(2, dtype=taeda.float64)
    for by in (taeda.func.jacrev, taeda.func.jacfwd):
        assert by(lambda x: x[:0])(x).shape == (0, 2)
        assert by(lambda x: x.sum() * taeda.ones(3, dtype=taeda.float64))(x[:0]).shape == (3, 0)


@pytest.mark.parametrize("inner", TRANSFORMS)
def test_control_flow_by_values_raises_in_vmap(inner):
    def f(t, x):
        return x * 2 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        taeda.vmap(composed(taeda, (inner,), f))(taeda.ones(3, 2, dtype=taeda.float64))


def test_only_what_is_differentiated_outside_has_a_history():
    w, xs = taeda.tensor(X), taeda.ones(3, 2)
    of_sample = taeda.func.vmap(taeda.func.grad(lambda w, x: (w * x).sum() ** 2), (None, 0))
    assert not of_sample(w, xs).requires_grad
    w.requires_grad_()
    assert of_sample(w, xs).requires_grad
    captured = taeda.func.vmap(taeda.func.grad(lambda x: (w * x).sum() ** 2))(xs)
    assert captured.requires_grad


def test_what_no_sample_changes_is_differentiated_too():
    """w * w has no batch, and its history is that of the code outside."""
    w, xs = taeda.tensor([2.0, 3.0]), taeda.tensor([[1.0, 10.0], [100.0, 1000.0]])
    loss = lambda w: taeda.vmap(lambda x: x * (w * w))(xs).sum()  # noqa: E731
    expected = [2 * 2.0 * 101, 2 * 3.0 * 1010]
    assert taeda.func.grad(loss)(w).tolist() == expected
    assert taeda.func.jvp(loss, (w,), (taeda.ones(2),))[1].item() == sum(expected)
    leaf = w.clone().requires_grad_()
    loss(leaf).backward()
    assert leaf.grad.tolist() == expected
