"""What gradcheck refuses besides wrong gradients, and what increment_version refuses."""

from __future__ import annotations

import pytest

import taeda
from taeda.autograd import Function, gradcheck


class Jittering(Function):
    """The identity, whose gradient is scaled by a number that differs from call to call."""

    calls = 0

    @staticmethod
    def forward(ctx, x, jitter):
        ctx.jitter = jitter
        return x.clone()

    @staticmethod
    def backward(ctx, gy):
        Jittering.calls += 1
        return gy * (1 + ctx.jitter * Jittering.calls), None


class WrongForward(Function):
    """x * x with a tangent that is half of what it should be."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, gy):
        return 2 * ctx.saved_tensors[0] * gy

    @staticmethod
    def jvp(ctx, tangent):
        return ctx.saved_tensors[0] * tangent


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], dtype=taeda.float64, requires_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_gradient_that_differs_from_call_to_call_is_refused(x, fast_mode):
    assert gradcheck(lambda x: Jittering.apply(x, 0.0), x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(lambda x: Jittering.apply(x, 1e-8), x, fast_mode=fast_mode)
    Jittering.calls = 0
    assert gradcheck(lambda x: Jittering.apply(x, 1e-9), x, nondet_tol=1e-6, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_outputs_that_depend_on_values_in_shape_or_dtype_are_refused(fast_mode):
    one = taeda.ones(1, dtype=taeda.float64, requires_grad=True)
    for function, what in (
        (lambda x: taeda.cat([x, x]) if (x >= 1).all() else x, "shape"),
        (lambda x: x.float() if (x >= 1).all() else x, "dtype"),
    ):
        with pytest.raises(AssertionError, match=f"same {what} when inputs are perturbed"):
            gradcheck(function, one, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_tangent_is_named_as_forward_mode(x, fast_mode):
    assert gradcheck(WrongForward.apply, x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="computed with forward mode mismatch for output 0"):
        gradcheck(WrongForward.apply, x, check_forward_ad=True, fast_mode=fast_mode)


def test_inputs_are_put_back_to_the_bit():
    x = taeda.tensor([0.1, 0.2, 0.3], dtype=taeda.float64, requires_grad=True)
    tied = x.detach().clone().requires_grad_()  # each gets half of the gradient
    arguments = (x, 0, taeda.arange(3), tied, "amin")
    assert gradcheck(taeda.scatter_reduce, arguments, fast_mode=True)
    assert gradcheck(taeda.scatter_reduce, arguments)
    assert x.tolist() == [0.1, 0.2, 0.3]


def test_inference_tensors_are_not_marked_as_changed_outside():
    with taeda.inference_mode():
        y = taeda.ones(2)
        taeda.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="update to inference tensor outside InferenceMode"):
        taeda.autograd.graph.increment_version(y)


@pytest.mark.parametrize("jvp", [lambda x: x, lambda x: x * 2, lambda x: x.view_as(x)])
def test_a_jvp_that_gives_no_view_for_a_view_is_refused_as_by_pytorch(jvp):
    torch = pytest.importorskip("torch")
    said = []
    for lib in (taeda, torch):

        class Same(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g

            @staticmethod
            def jvp(ctx, t):
                return jvp(t)

        x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        try:
            said.append(lib.autograd.gradcheck(Same.apply, (x,), check_forward_ad=True))
        except RuntimeError as error:
            said.append(str(error).partition("\n")[0])
    assert said[0] == said[1]
