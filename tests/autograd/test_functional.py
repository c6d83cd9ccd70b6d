"""functional, forward_ad and gradcheck, against PyTorch and closed forms."""

from pathlib import Path

import pytest
from gen import table

import taeda


def vec(t, *values):
    return t.tensor(list(values), dtype=t.float64)


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def vjp(t):
    f = t.autograd.functional.vjp
    x, y = vec(t, 1.0, 2.0), vec(t, 3.0, 4.0)
    return (
        f(lambda a: a**2, x, vec(t, 1.0, 1.0)),
        f(lambda a, b: (a * b, a + b), (x, y), (vec(t, 1.0, 0.0), vec(t, 0.0, 1.0))),
        f(lambda a: a.sum(), x),
    )


@program
def jvp(t):
    f = t.autograd.functional.jvp
    x, y = vec(t, 1.0, 2.0), vec(t, 3.0, 4.0)
    return f(lambda a: a**3, x, vec(t, 1.0, 2.0)), f(lambda a, b: (a * b).sum(), (x, y), (y, x))


@program
def jacobian(t):
    f = t.autograd.functional.jacobian
    x, y = vec(t, 1.0, 2.0), vec(t, 3.0)
    return (
        f(lambda a: a.exp(), x),
        f(lambda a, b: (a * b, b.sum()), (x, y)),
        f(lambda a: a.view(2, 1) * a, x),
        f(lambda a: t.ones(2, dtype=t.float64), x),
    )


@program
def hessian(t):
    f = t.autograd.functional.hessian
    x, y = vec(t, 1.0, 2.0), vec(t, 3.0, 1.0)
    return f(lambda a: (a**3).sum(), x), f(lambda a, b: (a * a * b).sum(), (x, y))


@program
def products(t):
    af = t.autograd.functional
    x, v = vec(t, 1.0, 2.0), vec(t, 1.0, -1.0)

    def f(a):
        return (a**3).sum() * a[0]

    return af.hvp(f, x, v), af.vhp(f, x, v)


@program
def jacobian_can_be_differentiated(t):
    x = vec(t, 1.0, 2.0).requires_grad_()
    j = t.autograd.functional.jacobian(lambda a: a**3, x, create_graph=True)
    return t.autograd.grad(j.sum(), x)


@program
def strict_jacobian(t):
    t.autograd.functional.jacobian(lambda a: vec(t, 1.0), vec(t, 1.0), strict=True)


@program
def wrong_vector(t):
    t.autograd.functional.vjp(lambda a: a * 2, vec(t, 1.0, 2.0), vec(t, 1.0))


# --- forward mode ---

FORWARD = {
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "sub number": lambda t, a, b: 3 - a,
    "exp": lambda t, a, b: a.exp(),
    "pow": lambda t, a, b: a**3,
    "sum": lambda t, a, b: (a * b).sum(),
    "view": lambda t, a, b: a.view(2, 1).expand(2, 3),
    "matmul": lambda t, a, b: a @ b,
    "cat": lambda t, a, b: t.cat([a, b, b.detach()]),
    "select": lambda t, a, b: a[0] * b[1:],
    "mean": lambda t, a, b: (a.sigmoid() * b.tanh()).mean(),
    "where": lambda t, a, b: t.where(a > 1.5, a * a, b),
    "softmax": lambda t, a, b: a.softmax(0),
    "only one is dual": lambda t, a, b: a + 1,
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(both, name):
    def program(t):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            a = fw.make_dual(vec(t, 1.0, 2.0), vec(t, 10.0, -1.0))
            b = fw.make_dual(vec(t, 3.0, 5.0), vec(t, 0.5, 2.0))
            out = fw.unpack_dual(FORWARD[name](t, a, b))
            return out.primal, out.tangent

    both(program)


@program
def forward_mode_in_place_and_views(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        a = fw.make_dual(vec(t, 1.0, 2.0), vec(t, 10.0, -1.0))
        base = vec(t, 1.0, 1.0, 1.0)
        view = base[1:]
        view.mul_(a)
        first = fw.unpack_dual(base).tangent
        base.mul_(2)
        return first, fw.unpack_dual(base).tangent, fw.unpack_dual(view).tangent


@program
def leaving_the_level(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        a = fw.make_dual(vec(t, 1.0), vec(t, 10.0))
        b = a * 2
    return fw.unpack_dual(b).tangent, (a * 2)


def test_nested_levels():
    """x^3 at 2 along 1, twice: the tangent at the inner level has one at the outer."""
    fw = taeda.autograd.forward_ad
    with fw.dual_level() as outer:
        x = fw.make_dual(taeda.tensor(2.0), taeda.tensor(1.0))
        with fw.dual_level() as inner:
            y = fw.make_dual(x, taeda.tensor(1.0)) ** 3
            value, slope = fw.unpack_dual(y)
            assert fw.unpack_dual(value, level=outer).tangent.item() == 12
            assert fw.unpack_dual(slope, level=outer) == (12, 12)
            with pytest.raises(RuntimeError, match="not the last one"):
                fw.exit_dual_level(level=outer)
        assert fw.unpack_dual(y, level=inner).tangent is None
        assert fw.unpack_dual(y).tangent.item() == 12
        with pytest.raises(RuntimeError, match="no level exists"):
            fw.make_dual(x, x, level=inner)


@program
def dual_without_a_level(t):
    t.autograd.forward_ad.make_dual(vec(t, 1.0), vec(t, 1.0))


@program
def tangent_of_another_shape(t):
    with t.autograd.forward_ad.dual_level():
        t.autograd.forward_ad.make_dual(vec(t, 1.0), vec(t, 1.0, 2.0))


@program
def forward_over_reverse(t):
    fw = t.autograd.forward_ad
    x = vec(t, 1.0, 2.0).requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(x, vec(t, 1.0, 0.5))
        y = (dual**3 * dual.exp()).sum()
        (g,) = t.autograd.grad(y, dual, create_graph=True)
        return fw.unpack_dual(g).tangent.detach()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(both, name):
    result = both(
        PROGRAMS[name],
        part=""
        if name
        in (
            "strict_jacobian",
            "tangent_of_another_shape",
            "wrong_vector",
            "dual_without_a_level",
        )
        else None,
    )
    assert result is not None


# --- gradcheck ---


def test_gradcheck_accepts_right_gradients():
    x = taeda.tensor([0.3, 0.7], dtype=taeda.float64, requires_grad=True)
    y = taeda.tensor([1.3, -0.7], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda a, b: (a * b).sin() + a.exp(), (x, y))
    assert taeda.autograd.gradcheck(lambda a, b: (a * b, a.sum()), (x, y), fast_mode=True)
    assert taeda.autograd.gradcheck(lambda a: a.exp() * a, x, check_forward_ad=True)
    assert taeda.autograd.gradgradcheck(lambda a, b: (a * b).sin() + a.exp(), (x, y))
    assert taeda.autograd.gradgradcheck(lambda a: a**3, x, fast_mode=True)
    assert taeda.autograd.gradcheck.gradcheck(taeda.sin, x)
    z = taeda.tensor([0.3 + 1j, 0.7 - 2j], dtype=taeda.complex128, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda a: a * a, z)
    assert taeda.autograd.gradcheck(lambda a: (a * a.conj()).real.sum(), z)
    assert taeda.autograd.gradcheck(lambda a: a * (1 + 2j), x)


class Wrong(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gy):
        return gy * 3


def test_gradcheck_finds_wrong_gradients():
    x = taeda.tensor([0.3, 0.7], dtype=taeda.float64, requires_grad=True)
    for fast in (False, True):
        with pytest.raises(
            RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"
        ):
            taeda.autograd.gradcheck(Wrong.apply, x, fast_mode=fast)
        assert not taeda.autograd.gradcheck(Wrong.apply, x, fast_mode=fast, raise_exception=False)


class ByValue(taeda.autograd.Function):
    """Right one gradient at a time, but not under vmap: its backward looks at the values."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gy):
        return gy * 2 if gy.sum().item() > 0 else gy + gy


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_functions_that_register_hooks(fast):
    def hooked(x):
        y = x.clone()
        y.register_hook(lambda gy: gy if gy is None else gy * scale)
        return y

    x = taeda.ones(2, 2, dtype=taeda.float64, requires_grad=True)
    scale = 1
    assert taeda.autograd.gradcheck(hooked, x, fast_mode=fast)
    scale = 2
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        taeda.autograd.gradcheck(hooked, x, fast_mode=fast)


def test_gradcheck_of_batched_gradients():
    x = taeda.randn(3, 4, dtype=taeda.float64, requires_grad=True)
    w = taeda.randn(4, 2, dtype=taeda.complex128, requires_grad=True)

    def f(x, w):
        return (x * 2).softmax(-1), x @ w.real

    batched = {"check_batched_grad": True, "check_batched_forward_grad": True}
    assert taeda.autograd.gradcheck(f, (x, w), check_forward_ad=True, **batched)
    assert taeda.autograd.gradgradcheck(f, (x, w), check_batched_grad=True)
    assert taeda.autograd.gradcheck(ByValue.apply, x)
    with pytest.raises(RuntimeError, match="computing batched gradients"):
        taeda.autograd.gradcheck(ByValue.apply, x, check_batched_grad=True)
    with pytest.raises(AssertionError, match="requires check_forward_ad to be True"):
        taeda.autograd.gradcheck(f, (x, w), check_batched_forward_grad=True)


def test_gradgradcheck_finds_wrong_second_derivatives():
    class Half(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, gy):
            (x,) = ctx.saved_tensors
            return 3 * x * x.detach() * gy  # loses half of the second derivative

        @staticmethod
        def jvp(ctx, x_t):
            (x,) = ctx.saved_tensors
            return 3 * x * x * x_t

    x = taeda.tensor([0.3, 0.7], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(Half.apply, x)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        taeda.autograd.gradgradcheck(Half.apply, x)
    for fast in (False, True):
        only_forward = {
            "check_fwd_over_rev": True,
            "check_rev_over_rev": False,
            "check_undefined_grad": False,
            "fast_mode": fast,
        }
        with pytest.raises(RuntimeError, match="forward mode"):
            taeda.autograd.gradgradcheck(Half.apply, x, **only_forward)


@pytest.mark.parametrize("fast", [False, True])
def test_forward_mode_over_backward_is_checked(fast):
    x = taeda.tensor([0.3, 0.7], dtype=taeda.float64, requires_grad=True)
    y = taeda.tensor([1.3, -0.7], dtype=taeda.float64, requires_grad=True)
    options = {"check_fwd_over_rev": True, "fast_mode": fast}
    assert taeda.autograd.gradgradcheck(taeda.sin, x, **options)
    assert taeda.autograd.gradgradcheck(lambda a, b: (a * b).sin() + a.exp(), (x, y), **options)
    assert taeda.autograd.gradgradcheck(lambda a: (a**3, 2), x, **options)
    z = taeda.tensor([0.3 + 1j, 0.7 - 2j], dtype=taeda.complex128, requires_grad=True)
    assert taeda.autograd.gradgradcheck(lambda a: a * a.conj() * a, z, **options)


def test_gradcheck_wants_a_mode_for_what_it_checks():
    x = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    check = taeda.autograd.gradgradcheck
    with pytest.raises(AssertionError, match="check_fwd_over_rev or check_rev_over_rev"):
        check(taeda.sin, x, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="check_undefined_grad=True requires"):
        check(taeda.sin, x, check_rev_over_rev=False, check_fwd_over_rev=True)
    with pytest.raises(AssertionError, match="check_forward_ad or check_backward_ad"):
        taeda.autograd.gradcheck(taeda.sin, x, check_backward_ad=False)


def test_gradcheck_wants_something_to_check():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        taeda.autograd.gradcheck(taeda.sin, taeda.ones(2, dtype=taeda.float64))


def test_a_physics_informed_loss_with_silu():
    """The residual of u'' - u, its gradient in a weight: a third derivative of the activation."""

    def residual(weight):
        x = taeda.linspace(-1, 1, 7, dtype=taeda.float64).requires_grad_()
        u = taeda.nn.functional.silu(weight * x)
        (du,) = taeda.autograd.grad(u.sum(), x, create_graph=True)
        (ddu,) = taeda.autograd.grad(du.sum(), x, create_graph=True)
        return ((ddu - u) ** 2).mean()

    weight = taeda.tensor(1.3, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(residual, weight)
    assert taeda.autograd.gradgradcheck(residual, weight)


def test_the_table_has_a_formula_for_every_gradient():
    """A pointwise entry may leave `grad` out; then its second derivative raises."""
    ops = table.load(Path(__file__).resolve().parents[2] / "ops")
    silent = [op.ident for op in ops if op.dual and op.grad is None]
    assert not silent, "give these entries a formula, for derivatives of any order"


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian_of_a_number(strategy):
    x = taeda.tensor(3.0)
    options = {"strategy": strategy, "vectorize": strategy == "forward-mode"}
    assert taeda.autograd.functional.jacobian(lambda v: v * v, x, **options).equal(
        taeda.tensor(6.0)
    )


def test_outputs_that_are_no_tensors_are_named():
    x = taeda.ones(2)
    message = "outputs of the user-provided function given to {} must be .* but the {} has type"
    for name, arguments in (("hessian", (x,)), ("vhp", (x, x))):
        function = getattr(taeda.autograd.functional, name)
        for result, where in (((x.sum(), "s"), "value at index 1"), ("s", "given outputs")):
            with pytest.raises(TypeError, match=message.format(name, f"{where}.*")):
                function(lambda _, result=result: result, *arguments)


def test_the_level_of_forward_mode_is_minus_one_outside():
    fw = taeda.autograd.forward_ad
    assert fw._current_level == -1
    with fw.dual_level():
        assert fw._current_level >= 0
    assert fw._current_level == -1
