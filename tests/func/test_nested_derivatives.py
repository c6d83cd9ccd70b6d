"""Second and third derivatives by nested transforms, beside PyTorch's and closed forms."""

import numpy as np
import pytest

import taeda
import taeda.utils.checkpoint

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


# --- a tangent that was the same for all samples, written with what is differentiated outside ---

WRITES = {  # and the fourth derivative of each, at 0.4
    "mul_": (lambda x: (x * 1).mul_(x) ** 3, 360 * 0.4**2),
    "sin_": (lambda x: (x * 1).sin_() ** 2, -8 * np.cos(0.8)),
    "through a view": (lambda x: (x.clone().view(1, 1).mul_(x.view(1, 1)) ** 3).view(1), 57.6),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("outer", ["grad", "jacrev"])
@pytest.mark.parametrize("inner", ["grad", "jacrev"])
def test_fourth_derivatives_of_what_was_written(inner, outer, name):
    function, expected = WRITES[name]
    step = {"grad": taeda.func.grad, "jacrev": taeda.func.jacrev, "jacfwd": taeda.func.jacfwd}
    f = function
    for each in ("jacfwd", inner, "jacfwd", outer):
        f = step[each](lambda x, g=f: g(x).sum())
    near(f(vector(taeda, [0.4])), [expected])


def test_what_is_squared_in_place_inside_of_vmap_is_recorded_outside():
    f = lambda x: taeda.func.jacfwd(lambda y: (y * 1).square_())(x).sum()  # noqa: E731
    near(taeda.func.grad(f)(vector(taeda)), [2.0, 2.0, 2.0])


# --- forward mode: out=, views that are older than the level, views of another dtype ---


@pytest.fixture(params=["taeda", "torch"])
def t(request):
    return {"taeda": taeda, "torch": torch}[request.param]


OUTS = {
    "exp": lambda t, x, out: t.exp(x, out=out),
    "mm": lambda t, x, out: t.mm(x, x, out=out),
    "sum": lambda t, x, out: t.sum(x, 0, keepdim=True, out=out),
    "cat": lambda t, x, out: t.cat([x, x], out=out),
    "into a part": lambda t, x, out: t.exp(x[0], out=out[0]),
}


@pytest.mark.parametrize("dual", ["input", "out", "both"])
@pytest.mark.parametrize("name", OUTS)
def test_out_refuses_what_has_tangents(t, name, dual):
    forward_ad = t.autograd.forward_ad
    x, out = t.ones(1, 1), t.zeros(1, 1)
    with forward_ad.dual_level():
        if dual != "out":
            x = forward_ad.make_dual(x, x)
        if dual != "input":
            out = forward_ad.make_dual(out, t.ones(1, 1))
        with pytest.raises(NotImplementedError, match="it is an out= function"):
            OUTS[name](t, x, out)
    OUTS[name](t, t.ones(1, 1), t.zeros(1, 1) if name != "cat" else t.zeros(2, 1))


def test_views_made_before_a_level_have_the_tangents_of_their_base(t):
    forward_ad = t.autograd.forward_ad
    base = t.zeros(4)
    view, other, copied = base[:2], base[1:3], base.detach()[:2]
    with t.no_grad():
        unrecorded = base[2:]
    with forward_ad.dual_level():
        base.copy_(forward_ad.make_dual(t.ones(4), t.arange(4.0)))
        tangents = [forward_ad.unpack_dual(x).tangent for x in (view, other * 2, unrecorded)]
        assert [x.tolist() for x in tangents] == [[0, 1], [2, 4], [2, 3]]
        assert forward_ad.unpack_dual(copied).tangent is None
        view.mul_(3)
        assert forward_ad.unpack_dual(base).tangent.tolist() == [0, 3, 2, 3]
    assert (base.sum() + view.sum()).item() == 14


PARTS = {  # a tensor, a view of another dtype, and whether the view is written or its base
    "real, read": ("complex64", lambda z: z.real, "base"),
    "imag, read": ("complex64", lambda z: z.imag[1:], "base"),
    "of a conjugate": ("complex64", lambda z: z.conj().imag, "base"),
    "real, written": ("complex64", lambda z: z.real, "view"),
    "of a conjugate, written": ("complex64", lambda z: z.conj().imag, "view"),
    "pairs, written": ("float32", lambda r: r.view(2, 2), "pairs"),
    "a part of the pairs": ("float32", lambda r: r.view(2, 2)[1:], "pairs"),
}


@pytest.mark.parametrize("name", PARTS)
def test_views_of_another_dtype_have_tangents(name):
    dtype, make, written = PARTS[name]
    found = []
    for t in (taeda, torch):
        forward_ad = t.autograd.forward_ad
        base = t.zeros(4, dtype=getattr(t, dtype))
        view = t.view_as_complex(make(base)) if written == "pairs" else make(base)
        target = base if written == "base" else view
        values = (t.arange(target.numel()) + 1.0).to(target.dtype)
        values *= 2 + 1j if target.is_complex() else 2
        with forward_ad.dual_level():
            target.copy_(forward_ad.make_dual(t.ones_like(target), values))
            parts = [forward_ad.unpack_dual(x).tangent for x in (base, view, view * 2)]
            found.append([x.resolve_conj().tolist() for x in parts])
    assert found[0] == found[1]


# --- checkpoints and conjugates inside of transforms ---

CHECKPOINTED = {
    "vmap": lambda t, f, x: t.vmap(f)(x),
    "jacfwd": lambda t, f, x: t.func.jacfwd(f)(x),
    "jvp": lambda t, f, x: t.func.jvp(f, (x,), (x,))[1],
    "jacrev": lambda t, f, x: t.func.jacrev(f)(x),
    "grad of jvp": lambda t, f, x: t.func.grad(lambda y: t.func.jvp(f, (y,), (x,))[1].sum())(x),
    "jvp of jacrev": lambda t, f, x: t.func.jvp(t.func.jacrev(f), (x,), (x,))[1],
    "functionalize": lambda t, f, x: t.func.functionalize(f)(x),
    "grad of functionalize": lambda t, f, x: t.func.grad(
        lambda y: t.func.functionalize(f)(y).sum()
    )(x),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_a_checkpoint_inside_of_a_transform_changes_nothing(name):
    plain = lambda x: x.sin() * x  # noqa: E731
    kept = lambda x: taeda.utils.checkpoint.checkpoint(plain, x, use_reentrant=False)  # noqa: E731
    found = CHECKPOINTED[name](taeda, kept, vector(taeda))
    near(found, CHECKPOINTED[name](torch, plain, vector(torch)))


def test_views_of_conjugates_are_functionalized():
    def f(x):
        z = taeda.complex(x, x * x)
        w = z.conj() * z * z
        return w.conj().imag + w.real

    x = vector(taeda)
    expected = taeda.func.jacfwd(taeda.func.jacrev(f))(x)
    near(taeda.func.functionalize(taeda.func.jacfwd(taeda.func.jacrev(f)))(x), expected)
    both = taeda.func.functionalize(taeda.vmap(taeda.func.jacfwd(f)))(taeda.stack([x, x]))
    near(both[1], taeda.func.jacrev(f)(x))


# --- captured tensors, written by what is differentiated inside and outside ---

CAPTURED_WRITES = {
    "mul_": lambda c, p: c.mul_(p),
    "copy_": lambda c, p: c.copy_(p),
    "item": lambda c, p: c.__setitem__(slice(None), p),
    "view": lambda c, p: c[:].mul_(p),
}
INSIDE = {
    "grad": lambda f, rows, w: taeda.vmap(taeda.func.grad(f, argnums=1), in_dims=(0, None))(
        rows, w
    ),
    "jvp": lambda f, rows, w: taeda.vmap(
        lambda row: taeda.func.jvp(lambda w: f(row, w), (w,), (taeda.ones(3),))[1]
    )(rows),
}


@pytest.mark.parametrize("write", CAPTURED_WRITES)
@pytest.mark.parametrize("inside", INSIDE)
def test_a_captured_tensor_written_by_both_levels_has_the_gradients_of_both(write, inside):
    rows, w0, x = taeda.arange(6.0).view(2, 3), taeda.tensor([2.0, 3.0, 5.0]), taeda.ones(3) * 4

    def outer(w):
        captured = taeda.ones(3)

        def inner(row, shared):
            CAPTURED_WRITES[write](captured, w * shared)
            return (captured * row).sum()  # w * shared * row

        return INSIDE[inside](inner, rows, w0).sum()  # w * row, summed

    expected = rows.sum(0)
    assert taeda.func.grad(outer)(x).tolist() == expected.tolist()
    value, tangent = taeda.func.jvp(outer, (x,), (x,))
    assert value.item() == tangent.item() == (x * expected).sum().item()
    leaf = x.clone().requires_grad_()
    outer(leaf).backward()
    assert leaf.grad.tolist() == expected.tolist()


def test_a_captured_tensor_that_has_the_history_of_both_levels_is_not_read_wrongly_outside():
    rows, w0 = taeda.arange(6.0).view(2, 3), taeda.tensor([2.0, 3.0, 5.0])

    def outer(w):
        captured = taeda.ones(3)

        def inner(row, shared):
            captured.mul_(w * shared)
            return (captured * row).sum()

        taeda.vmap(taeda.func.grad(inner, argnums=1), in_dims=(0, None))(rows, w0)
        return captured.sum()

    with pytest.raises(RuntimeError, match="used after that call had ended"):
        taeda.func.grad(outer)(taeda.ones(3))
    value, tangent = taeda.func.jvp(outer, (taeda.ones(3),), (taeda.ones(3),))
    assert value.item() == tangent.item() == w0.sum().item()


# --- results of a checkpoint, written in place ---


def checkpointed(t, x):
    y = t.utils.checkpoint.checkpoint(lambda a: a.exp(), x, use_reentrant=False)
    y.mul_(x)
    return y.sum()


def in_dual_level(t, x):
    with t.autograd.forward_ad.dual_level():
        leaf = x.clone().requires_grad_()
        dual = t.autograd.forward_ad.make_dual(leaf, x)
        return t.autograd.grad(checkpointed(t, dual), leaf)[0]


#: Of x exp(x) at 0.5: the transform, and the value that it has for each element.
_E = float(np.exp(0.5))
WRITTEN_RESULTS = {
    "jvp of grad": (lambda f, x: taeda.func.jvp(taeda.func.grad(f), (x,), (x,))[1], 1.25 * _E),
    "grad of jvp": (
        lambda f, x: taeda.func.grad(lambda x: taeda.func.jvp(f, (x,), (x,))[1])(x),
        # d/dx of sum(x f'(x)): f' + x f''
        1.5 * _E + 1.25 * _E,
    ),
    "jacfwd of grad": (lambda f, x: taeda.func.jacfwd(taeda.func.grad(f))(x).sum(0), 2.5 * _E),
    "hessian": (lambda f, x: taeda.func.hessian(f)(x).sum(0), 2.5 * _E),
    "functionalize": (lambda f, x: taeda.func.functionalize(taeda.func.grad(f))(x), 1.5 * _E),
    "vmap": (lambda f, x: taeda.vmap(taeda.func.grad(f))(x.expand(2, 2))[1], 1.5 * _E),
    "dual level": (lambda f, x: in_dual_level(taeda, x), 1.5 * _E),
}


@pytest.mark.parametrize("name", WRITTEN_RESULTS)
def test_what_a_checkpoint_returns_may_be_written_inside_of_levels(name):
    transform, expected = WRITTEN_RESULTS[name]
    found = transform(lambda x: checkpointed(taeda, x), taeda.tensor([0.5, 0.5]))
    assert found.tolist() == pytest.approx([expected] * 2, rel=1e-5)


def test_a_checkpoint_in_a_dual_level_has_pytorchs_gradient():
    x = [0.5, 1.5]
    ours, theirs = in_dual_level(taeda, taeda.tensor(x)), in_dual_level(torch, torch.tensor(x))
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-6)


def test_a_view_that_a_checkpoint_returns_is_no_copy():
    def f(x):
        y = x * 1
        part = taeda.utils.checkpoint.checkpoint(lambda a: a[:1], y, use_reentrant=False)
        part.mul_(3.0)
        return (y * y).sum()

    x = taeda.tensor([2.0, 5.0])
    found = taeda.func.jvp(taeda.func.grad(f), (x,), (taeda.ones(2),))
    assert [t.tolist() for t in found] == [[36.0, 10.0], [18.0, 2.0]]


def test_a_checkpoint_stands_inside_of_functionalize_in_forward_mode():
    kept = lambda x: taeda.utils.checkpoint.checkpoint(taeda.exp, x, use_reentrant=False)  # noqa: E731
    x = vector(taeda)
    near(taeda.func.jacfwd(taeda.func.functionalize(kept))(x), np.diag(np.exp(X)))


# --- checkpoints around transforms ---

AROUND = {
    "grad": lambda f, c: c(taeda.func.grad(f)),
    "hessian": lambda f, c: c(taeda.func.hessian(f)),
    "jacrev": lambda f, c: c(taeda.func.jacrev(f)),
    "vmap of grad": lambda f, c: c(
        lambda x: taeda.func.vmap(taeda.func.grad(f))(taeda.stack([x, x * 2]))
    ),
    "vmap of jacrev": lambda f, c: c(
        lambda x: taeda.func.vmap(taeda.func.jacrev(f))(taeda.stack([x, x * 2]))
    ),
    "grad of a checkpoint of grad": lambda f, c: taeda.func.grad(
        lambda x: c(taeda.func.grad(f))(x).sum()
    ),
    "among others": lambda f, c: c(lambda x: taeda.func.hessian(f)(x.sin()) * x.cos()),
}


@pytest.mark.parametrize("name", AROUND)
def test_a_checkpoint_may_stand_around_a_transform(name):
    def function(x):
        return (x.sin() * x * x).sum()

    def kept(f):
        return lambda x: taeda.utils.checkpoint.checkpoint(f, x, use_reentrant=False)

    found = []
    for around in (kept, lambda f: f):
        x = taeda.tensor([0.3, -0.5], dtype=taeda.float64, requires_grad=True)
        y = AROUND[name](function, around)(x)
        (gradient,) = taeda.autograd.grad(y.sum(), x)
        found.append([y.detach(), gradient])
    taeda.testing.assert_close(*found)


# --- derivatives that are constant ---

CONSTANT = {  # functions whose derivative does not depend on x, and what it is
    "jvp of a product": (lambda t, x: t.func.jvp(lambda x: x * 3, (x,), (t.ones_like(x),))[1], 3.0),
    "jvp of vjp": (
        lambda t, x: t.func.jvp(
            lambda x: t.func.vjp(lambda x: x * x, x)[1](t.ones_like(x))[0], (x,), (t.ones_like(x),)
        )[1],
        2.0,
    ),
    "jvp of grad": (
        lambda t, x: t.func.jvp(
            t.func.grad(lambda x: (x * x).sum()), (x,), (t.ones_like(x),)
        )[1],
        2.0,
    ),
    "jacfwd": (lambda t, x: t.func.jacfwd(lambda x: x * 3)(x).sum(0), 3.0),
    "hessian": (lambda t, x: t.func.hessian(lambda x: (x * x).sum())(x).sum(0), 2.0),
    "vmap of jvp": (
        lambda t, x: t.func.vmap(
            lambda x: t.func.jvp(lambda x: x * 3, (x,), (t.ones_like(x),))[1]
        )(x),
        3.0,
    ),
    "functionalize of jvp": (
        lambda t, x: t.func.functionalize(
            lambda x: t.func.jvp(lambda x: x * 3, (x,), (t.ones_like(x),))[1]
        )(x),
        3.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_derivative_has_the_gradient_zero(name):
    """Where the function's value has a history, as in PyTorch: backward through it would raise."""
    function, value = CONSTANT[name]
    for t in (taeda, torch):
        x = vector(t).requires_grad_()
        y = function(t, x)
        assert y.requires_grad
        (gradient,) = t.autograd.grad(y.sum(), x)
        assert (y + 0).tolist() == [value] * 3
        assert (gradient + 0).tolist() == [0.0] * 3
        assert not function(t, vector(t)).requires_grad


def test_a_derivative_of_what_does_not_depend_on_its_argument_has_no_history():
    for t in (taeda, torch):
        x, w = vector(t).requires_grad_(), vector(t).requires_grad_()
        assert not t.func.jvp(t.ones_like, (x,), (w.detach(),))[1].requires_grad
        assert t.func.jvp(lambda x, w=w: x * w, (vector(t),), (w.detach(),))[1].requires_grad
