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


# Each makes of a function of one number its derivative.
DERIVATIVES = {
    "grad": lambda t, f: t.func.grad(f),
    "vjp": lambda t, f: lambda x: t.func.vjp(f, x)[1](t.ones_like(x))[0],
    "jvp": lambda t, f: lambda x: t.func.jvp(f, (x,), (t.ones_like(x),))[1],
    "jacrev": lambda t, f: t.func.jacrev(f),
    "jacfwd": lambda t, f: t.func.jacfwd(f),
    "linearize": lambda t, f: lambda x: t.func.linearize(f, x)[1](t.ones_like(x)),
}


def nested(names, f, t=taeda):
    for name in names:
        f = DERIVATIVES[name](t, f)
    return f


def wave(x):
    return (2 * x).sin() + x**5


# wave's derivatives at 0.7, by hand
AT = 0.7
WAVES = [
    np.sin(2 * AT) + AT**5,
    2 * np.cos(2 * AT) + 5 * AT**4,
    -4 * np.sin(2 * AT) + 20 * AT**3,
    -8 * np.cos(2 * AT) + 60 * AT**2,
    16 * np.sin(2 * AT) + 120 * AT,
]


@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_transforms_nest_in_any_order(inner, outer):
    x = taeda.tensor(AT, dtype=taeda.float64)
    second = nested([inner, outer], wave)(x)
    assert second.item() == pytest.approx(WAVES[2])
    assert not second.requires_grad
    for outermost in DERIVATIVES:
        third = nested([inner, outer, outermost], wave)(x)
        assert third.item() == pytest.approx(WAVES[3]), outermost
        assert not third.requires_grad
    # and take part in an ordinary backward
    x.requires_grad_()
    second = nested([inner, outer], wave)(x)
    second.backward()
    assert x.grad.item() == pytest.approx(WAVES[3])


@pytest.mark.parametrize("names", [("jvp",) * 4, ("grad", "jvp") * 2, ("jacfwd", "vjp") * 2])
def test_four_levels(names):
    x = taeda.tensor(AT, dtype=taeda.float64)
    assert nested(names, wave)(x).item() == pytest.approx(WAVES[4])


@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_levels_are_not_confused(inner, outer):
    """d/dx x d/dy (x y^2) at y = 3 is 12 x; a tangent of x taken for one of y adds to it."""

    def f(x):
        slope = DERIVATIVES[inner](taeda, lambda y: x * y * y)
        return x * slope(taeda.tensor(3.0))

    assert DERIVATIVES[outer](taeda, f)(taeda.tensor(2.0)).item() == pytest.approx(24.0)


@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
def test_jacobians_of_jacobians(inner, outer):
    def call(t):
        f = lambda x: t.stack([x.prod(), (x * x.sin()).sum(), x[0] * x[2].exp()])  # noqa: E731
        return getattr(t.func, outer)(getattr(t.func, inner)(f))(t.tensor(X))

    both(call)


def cube(x):
    return (x**3).sum()


def test_forward_over_reverse():
    for call in (
        lambda t: t.func.jvp(t.func.grad(cube), (t.tensor(X),), (t.ones(3),)),
        lambda t: t.func.jacfwd(t.func.grad(cube))(t.tensor(X)),
        lambda t: t.func.jacfwd(t.func.jacrev(cube))(t.tensor(X)),
        lambda t: t.func.linearize(t.func.grad(cube), t.tensor(X))[1](t.ones(3)),
        lambda t: t.autograd.functional.hessian(
            cube, t.tensor(X), vectorize=True, outer_jacobian_strategy="forward-mode"
        ),
        lambda t: t.func.jvp(lambda x: t.func.vjp(t.sin, x)[1](x)[0], (t.tensor(X),), (t.ones(3),)),
        lambda t: t.func.grad_and_value(lambda x: t.func.jvp(cube, (x,), (x.cos(),))[1])(
            t.tensor(X)
        ),
    ):
        both(call)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_forward_over_a_checkpoint(use_reentrant):
    checkpoint = taeda.utils.checkpoint.checkpoint
    x = taeda.tensor(X, dtype=taeda.float64)

    def f(x):
        return checkpoint(lambda y: y.sin() * y, x, use_reentrant=use_reentrant).sum()

    expected = 2 * x.cos() - x * x.sin()
    if use_reentrant:  # a custom Function without jvp
        with pytest.raises(RuntimeError, match="jvp"):
            taeda.func.jvp(taeda.func.grad(f), (x,), (taeda.ones_like(x),))
    else:
        found = taeda.func.jvp(taeda.func.grad(f), (x,), (taeda.ones_like(x),))[1]
        assert taeda.allclose(found, expected)


def test_forward_over_what_hooks_have_packed():
    x = taeda.tensor(X, dtype=taeda.float64)

    def gradient(x):
        hooks = taeda.autograd.graph.saved_tensors_hooks(
            lambda t: t.detach().numpy().copy(), taeda.from_numpy
        )
        with hooks:
            return taeda.func.grad(lambda y: (y.exp() * y * y).sum())(x)

    found = taeda.func.jvp(gradient, (x,), (taeda.ones_like(x),))[1]
    assert taeda.allclose(found, x.exp() * (x * x + 4 * x + 2))


def test_functions_see_the_subclass_that_they_are_given():
    class Named(taeda.Tensor):
        pass

    seen = []

    def f(x):
        seen.append(type(x))
        return (x**2).sum()

    found = taeda.func.grad(f)(taeda.tensor([1.0, 2.0]).as_subclass(Named))
    assert seen == [Named] and found.tolist() == [2, 4]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_transforms_record_whatever_the_mode_outside(mode):
    def call(t):
        x, made_here = t.tensor(X), []
        with getattr(t, mode)():
            made_here.append(t.tensor(X))
            return [
                t.func.grad(cube)(x),
                t.func.grad(cube)(made_here[0]),
                t.func.vjp(cube, x)[1](t.tensor(2.0)),
                t.func.jvp(t.func.grad(cube), (x,), (made_here[0],)),
                t.func.jacfwd(t.func.jacrev(cube))(x),
                t.vmap(t.func.grad(cube))(made_here[0].expand(2, 3)),
                t.vmap(t.func.jvp, (None, None, 0))(cube, (x,), (t.eye(3),)),
                t.vmap(t.func.grad(t.func.grad(lambda x: x**3)))(x),
            ]

    both(call)
    with getattr(taeda, mode)():
        hessian = taeda.autograd.functional.hessian(cube, taeda.tensor(X))
        np.testing.assert_allclose(hessian.tolist(), np.diag(6 * np.array(X)), rtol=1e-6)


def test_the_tangent_may_be_differentiated_alone():
    def gradients(t):
        x, v = t.tensor(X), t.tensor(X, requires_grad=True)
        value, product = t.func.jvp(t.func.grad(cube), (x,), (v,))
        product.sum().backward()
        return v.grad, [value.requires_grad, product.requires_grad]

    both(gradients)


def test_writes_in_place_below_two_levels():
    def call(t):
        def f(x):
            y = x * 2
            y[1:].mul_(x[:2])
            y += x
            y.sin_()
            return y

        inner = lambda x: t.func.jvp(f, (x,), (x,))[1]  # noqa: E731
        return t.func.jvp(inner, (t.tensor(X),), (t.ones(3),))

    both(call)


def test_a_custom_jvp_below_two_levels():
    class Cube(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def jvp(ctx, x_t):
            (x,) = ctx.saved_tensors
            return 3 * x * x * x_t

    x = taeda.tensor(AT, dtype=taeda.float64)
    assert nested(["jvp"], Cube.apply)(x).item() == pytest.approx(3 * AT**2)
    assert nested(["jvp", "jvp"], Cube.apply)(x).item() == pytest.approx(6 * AT)


def test_tangents_stay_apart_in_results():
    """x + 1 has the tangent of x; what is written into it must not reach x."""

    def call(t):
        def f(x):
            y = x + 1
            y.mul_(5)
            return x, y

        return t.func.jvp(f, (t.tensor(X),), (t.ones(3),))

    both(call)


def test_levels_of_several_threads():
    import threading

    results, barrier = {}, threading.Barrier(2, timeout=60)

    def work(k):
        def f(x):
            barrier.wait()  # both threads are in their levels
            y = taeda.func.jvp(wave, (x,), (taeda.ones_like(x),))[1]
            barrier.wait()
            return y

        x = taeda.tensor(AT + k, dtype=taeda.float64)
        results[k] = taeda.func.jvp(f, (x,), (taeda.ones_like(x),))[1].item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        x = AT + k
        assert results[k] == pytest.approx(-4 * np.sin(2 * x) + 20 * x**3)


def test_mistakes():
    with pytest.raises(RuntimeError, match="scalar Tensor"):
        taeda.func.grad(lambda x: x)(taeda.ones(2))
    with pytest.raises(RuntimeError, match="only 1 positional"):
        taeda.func.grad(lambda x: x, argnums=1)(taeda.ones(2))


LINEARIZED = {
    "not recorded": lambda t: t.no_grad()(lambda x: x * x),
    "partly recorded": lambda t: lambda x: t.no_grad()(t.sin)(x) * x,
    "written after it is read": lambda t: lambda x: x.exp().mul_(2),
    "writes its argument": lambda t: lambda x: x.mul_(x.cos()),
    "stops the gradient": lambda t: lambda x: (x * 1).detach() * x,
    "a constant": lambda t: t.ones_like,
    "several": lambda t: lambda x: {"a": x.sin(), "b": (x[0] * x,)},
}


@pytest.mark.parametrize("name", LINEARIZED)
def test_linearize_is_jvp_at_a_point(name):
    f = LINEARIZED[name](taeda)
    x, t = taeda.tensor(X, dtype=taeda.float64), taeda.tensor([1.0, -2.0, 0.5], dtype=taeda.float64)
    value, push = taeda.func.linearize(f, x.clone())
    expected, derivative = LINEARIZED[name](torch), torch.tensor(X, dtype=torch.float64)
    expected = torch.func.jvp(expected, (derivative,), (torch.tensor(t.tolist()).double(),))
    leaves = taeda.utils._pytree.tree_leaves
    for found, wanted in ((value, expected[0]), (push(t), expected[1]), (push(t), expected[1])):
        for a, b in zip(leaves(found), torch.utils._pytree.tree_leaves(wanted), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_linearize_draws_the_same_numbers_and_leaves_the_generator_alone():
    f = lambda x: taeda.nn.functional.dropout(x * x)  # noqa: E731
    value, push = taeda.func.linearize(f, taeda.ones(64))
    state = taeda.get_rng_state()
    assert taeda.equal(push(taeda.ones(64)), 2 * value)
    assert taeda.equal(push(taeda.ones(64)), 2 * value)
    assert taeda.equal(taeda.get_rng_state(), state)


def test_linearize_keeps_its_point():
    x = taeda.tensor(X)
    _, push = taeda.func.linearize(lambda x: x * x, x)
    x.zero_()
    np.testing.assert_allclose(push(taeda.ones(3)).tolist(), [2 * v for v in X], rtol=1e-6)


@pytest.mark.parametrize("softmax", [taeda.softmax, taeda.log_softmax])
def test_third_gradients_have_no_history_that_leads_nowhere(softmax):
    c = taeda.linspace(0.5, 2.0, 4)
    once = lambda f: lambda x: (taeda.func.grad(f)(x) * c).sum()  # noqa: E731
    third = taeda.func.grad(once(once(lambda x: (softmax(x, 0) * c).sum())))(c)
    assert not third.requires_grad
