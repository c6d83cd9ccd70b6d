"""Second and third derivatives by nested transforms, beside PyTorch's and closed forms."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

X = [1.0, 2.0, 3.0]


def vector(t, values=X):
    return t.tensor(values, dtype=t.float64)


def near(found, expected):
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=1e-7, atol=1e-12)


# --- operators whose gradient vmap computes by its definition ---

DEFINED = {
    "cross_entropy": lambda t, x: t.nn.functional.cross_entropy(x[None], t.tensor([1])),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,)),
    "nll_loss": lambda t, x: t.nn.functional.nll_loss(x.log_softmax(0)[None], t.tensor([1])),
}


@pytest.mark.parametrize("name", DEFINED)
def test_jacobians_of_jacobians_are_those_of_torch(name):
    f = DEFINED[name]
    found = taeda.func.jacrev(taeda.func.jacrev(lambda x: f(taeda, x)))(vector(taeda))
    expected = torch.func.jacrev(torch.func.jacrev(lambda x: f(torch, x)))(vector(torch))
    assert expected.abs().max() > 0.1
    near(found, expected)


@pytest.mark.parametrize("name", DEFINED)
def test_an_ordinary_backward_goes_through_a_jacobian(name):
    grads = []
    for t in (taeda, torch):
        x = vector(t).requires_grad_()
        t.func.jacrev(lambda x, t=t: DEFINED[name](t, x))(x).pow(2).sum().backward()
        grads.append(x.grad)
    near(grads[0], grads[1])


def test_a_vectorized_jacobian_has_a_history():
    grads = []
    for t in (taeda, torch):
        x = vector(t).requires_grad_()
        rows = t.autograd.functional.jacobian(
            lambda x, t=t: t.nn.functional.layer_norm(x, (3,)), x, create_graph=True, vectorize=True
        )
        rows[0].pow(2).sum().backward()
        grads.append(x.grad)
    near(grads[0], grads[1])


# --- products of matrices: third derivatives ---

PRODUCTS = {  # of x, and the third derivative
    "mm": (lambda t, x: t.mm(t.mm(x, x), x) @ x, lambda x: 24 * x),
    "addmm": (lambda t, x: t.addmm(x, t.mm(x, x), t.mm(x, x), beta=2), lambda x: 24 * x),
    "inv": (lambda t, x: t.linalg.inv(x), lambda x: -6 * x**-4),
    "cholesky": (lambda t, x: t.linalg.cholesky(x), lambda x: 0.375 * x**-2.5),
    "a batch": (lambda t, x: x @ (x @ x.view(1, 1, 1)), lambda x: 6 + 0 * x),
}


@pytest.mark.parametrize("order", ["jjj", "gjj", "jgj", "jjg"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_third_derivatives_of_products(name, order):
    function, third = PRODUCTS[name]
    step = {"j": taeda.func.jacrev, "g": taeda.func.grad}
    f = lambda x: function(taeda, x.view(1, 1)).sum()  # noqa: E731
    for letter in reversed(order):
        f = step[letter](f)
    near(f(vector(taeda, 2.0)), third(2.0))


# --- what is written through views ---


def written_part(t, x):
    y = x * 1
    y[:2].mul_(x[:2])
    return y.sum()


def square_in_a_fresh_tensor(t, x):
    y = t.zeros(2, dtype=x.dtype)
    y[0] = x[0] * x[0]
    return (y**2).sum()


ORDERS = {
    "hessian": lambda f: taeda.func.hessian(f),
    "jacrev of jacrev": lambda f: taeda.func.jacrev(taeda.func.jacrev(f)),
    "jacfwd of grad": lambda f: taeda.func.jacfwd(taeda.func.grad(f)),
    "jacfwd of jacfwd": lambda f: taeda.func.jacfwd(taeda.func.jacfwd(f)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_second_derivatives_of_what_a_view_wrote(order):
    found = ORDERS[order](lambda x: written_part(taeda, x))(vector(taeda))
    near(found, np.diag([2.0, 2.0, 0.0]))


@pytest.mark.parametrize("order", ORDERS)
def test_second_derivatives_of_what_a_fresh_tensor_was_given(order):
    found = ORDERS[order](lambda x: square_in_a_fresh_tensor(taeda, x))(vector(taeda))
    near(found.detach(), np.diag([12.0, 0.0, 0.0]))


VIEWS = {  # made before their base has a tangent
    "all": lambda m: m[:],
    "transposed": lambda m: m.view(3, 1).t()[0],
    "a view of a view": lambda m: m[:][1:],
    "strided": lambda m: m.as_strided((2,), (2,)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_reaches_the_tangents_of_views_made_before(name):
    def f(t, x):
        m = t.zeros(3, dtype=x.dtype)
        view = VIEWS[name](m)
        m[:2].copy_(x[:2])
        return view * 1

    given = vector(taeda), vector(taeda, [10.0, 20.0, 30.0])
    found = taeda.func.jvp(lambda x: f(taeda, x), given[:1], given[1:])
    expected = torch.func.jvp(
        lambda x: f(torch, x), (vector(torch),), (vector(torch, [10.0, 20.0, 30.0]),)
    )
    near(found[0], expected[0])
    near(found[1], expected[1])
    near(
        taeda.func.jacfwd(lambda x: f(taeda, x))(vector(taeda)),
        torch.func.jacrev(lambda x: f(torch, x))(vector(torch)),
    )


def test_a_primal_has_no_tangent_though_its_base_has_one():
    with taeda.autograd.forward_ad.dual_level() as _:
        dual = taeda.autograd.forward_ad.make_dual(vector(taeda), vector(taeda)) * 2
        primal, tangent = taeda.autograd.forward_ad.unpack_dual(dual)
        assert tangent.tolist() == [2.0, 4.0, 6.0]
        for value in (primal, primal[1:], primal * 3):
            assert taeda.autograd.forward_ad.unpack_dual(value).tangent is None


# --- indices in vmap ---


@pytest.mark.parametrize("at", [(slice(None), [0, 1]), ([1, 0, 1],), ([0, 1], slice(None), [1, 0])])
def test_indices_in_vmap_are_differentiated_twice(at):
    def f(t, x):
        index = tuple(t.tensor(i) if isinstance(i, list) else i for i in at)
        return t.func.vmap(lambda s: s[index] ** 3)(x.view(1, 2, 2, 2))[0].sum(0)

    def second(t):
        x = t.linspace(0.5, 2, 8, dtype=t.float64)
        return t.func.jacrev(t.func.jacrev(lambda x: f(t, x)))(x)

    near(second(taeda), second(torch))
