"""What a Function's jvp may return, against PyTorch."""

import pytest


def viewing(t, forward, jvp):
    class Viewing(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x)

        @staticmethod
        def vjp(ctx, gy):
            return gy.new_zeros(3)

        @staticmethod
        def jvp(ctx, tangent):
            return jvp(tangent)

    return Viewing


def tangent_of(t, function, primal=None):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        x = t.tensor([1.0, 2.0, 3.0]) if primal is None else primal
        y = function.apply(fw.make_dual(x, t.tensor([4.0, 5.0, 6.0])))
        return fw.unpack_dual(y).tangent


@pytest.mark.parametrize(
    ("jvp", "part"),
    [
        (lambda g: g[:2], None),
        (lambda g: g[:2].clone(), "jvp is not returning a view"),
        (lambda g: g.clone()[:2], "not returning a view of the given grad input"),
    ],
)
def test_the_tangent_of_a_view_must_be_a_view_of_the_given_tangent(both, jvp, part):
    both(lambda t: tangent_of(t, viewing(t, lambda x: x[:2], jvp)), part)


@pytest.mark.parametrize("jvp", [lambda g: g.view_as(g), lambda g: g, lambda g: 2 * g])
def test_the_tangent_of_an_argument_returned_as_it_is_must_be_a_view(both, jvp):
    part = "A custom Function's forward is returning a view (or an input as-is)"
    both(lambda t: tangent_of(t, viewing(t, lambda x: x, jvp)), part)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("jvp", [lambda g: g.mul_(2), lambda g: 2 * g, lambda g: g])
def test_the_tangent_of_a_dirty_argument_must_be_written_in_place(both, jvp, requires_grad):
    def program(t):
        class Doubled(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, gy):
                return 2 * gy

            @staticmethod
            def jvp(ctx, tangent):
                return jvp(tangent)

        x = t.ones(3, requires_grad=requires_grad).clone()
        return tangent_of(t, Doubled, x).detach()

    both(program, "jvp function must modify the corresponding gradient inplace")


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_results_without_a_derivative_take_no_tangent(both, marked, given):
    def program(t):
        class Two(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                z = y.clone()
                if marked:
                    ctx.mark_non_differentiable(z)
                return x.clone(), z

            @staticmethod
            def jvp(ctx, tx, ty):
                return tx, tx.clone() if given else None

        fw = t.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(t.ones(2), t.tensor([3.0, 4.0]))
            y = t.ones(2) if marked else t.ones(2, dtype=t.int64)
            return [fw.unpack_dual(r).tangent for r in Two.apply(x, y)]

    both(program, "You should return None at that position instead.")


def test_jvp_does_not_see_what_was_saved_for_backward(both):
    def program(t):
        class Saving(t.autograd.Function):
            seen = None

            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx, gy):
                return gy * ctx.saved_tensors[0]

            @staticmethod
            def jvp(ctx, tangent):
                Saving.seen = len(ctx.saved_tensors)
                return tangent

        x = t.ones(3, requires_grad=True)
        tangent_of(t, Saving, x)
        y = Saving.apply(x)
        y.sum().backward()
        return Saving.seen, x.grad

    both(program)


def test_forward_mode_can_be_switched_off(both):
    def program(t):
        fw = t.autograd.forward_ad
        found = [fw._is_fwd_grad_enabled()]
        with fw.dual_level():
            x = fw.make_dual(t.ones(2), t.tensor([3.0, 4.0]))
            with fw._set_fwd_grad_enabled(False):
                found += [fw._is_fwd_grad_enabled(), fw.unpack_dual(x).tangent]
                y = x * 2
            found += [fw._is_fwd_grad_enabled(), fw.unpack_dual(x).tangent]
            found += [fw.unpack_dual(y).tangent, fw.unpack_dual(x * 2).tangent]
        return found

    both(program)


@pytest.mark.parametrize("primal", ["plain", "conj", "neg"])
@pytest.mark.parametrize("tangent", ["plain", "conj", "neg"])
def test_a_tangent_that_is_read_otherwise_than_its_primal_is_copied(both, primal, tangent):
    read = {"plain": lambda x: x, "conj": lambda x: x.conj(), "neg": lambda x: x._neg_view()}

    def program(t):
        fw = t.autograd.forward_ad
        x = read[primal](t.tensor([1 + 2j, 3 - 1j]))
        g = read[tangent](t.tensor([5 + 1j, 2 + 2j]))
        with fw.dual_level():
            dual = fw.make_dual(x, g)
            parts = [fw.unpack_dual(part(dual)).tangent for part in (t.real, t.imag)]
            return fw.unpack_dual(dual).tangent is g, parts

    both(program)


def test_a_tangent_cannot_have_a_tangent_of_its_own_level(both):
    def program(t):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            dual = fw.make_dual(t.ones(2), t.ones(2))
            return fw.make_dual(t.ones(2), dual)

    both(program, "has a forward gradient at the same level")


def test_a_tangent_of_another_size_is_refused(both):
    def program(t):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            return fw.make_dual(t.ones(2), t.ones(3))

    both(program, "Trying to set a forward gradient that has a different size")
