"""gradcheck of functions some of whose outputs have no gradient: only the others are compared."""

import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck
from taeda.autograd.gradcheck import GradcheckError


class _Halves(taeda.autograd.Function):
    """Twice x, and its square, marked as not differentiable; `factor` times the gradient."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        square = x**2
        ctx.mark_non_differentiable(square)
        return x * 2, square

    @staticmethod
    def backward(ctx, grad, _):
        return grad * _Halves.factor


@pytest.fixture
def x():
    return taeda.tensor([0.5, -1.5, 2.0], dtype=taeda.float64, requires_grad=True)


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"check_batched_grad": True}])
def test_outputs_without_gradient_are_left_out(x, options):
    assert gradcheck(lambda x: (x * 2, x.detach() * 3), x, **options)
    assert gradcheck(lambda x: (x.detach().abs(), x.sin(), x.argmax()), x, **options)
    assert gradgradcheck(lambda x: (x**3, x.detach()), x)


def test_outputs_without_gradient_are_left_out_in_forward_mode(x):
    assert gradcheck(lambda x: (x.detach() * 3, x * 2), x, check_forward_ad=True)


def test_outputs_marked_as_not_differentiable_are_left_out(x, monkeypatch):
    assert gradcheck(_Halves.apply, x)
    monkeypatch.setattr(_Halves, "factor", 3.0)
    with pytest.raises(GradcheckError, match="output 0"):
        gradcheck(_Halves.apply, x)


def test_a_function_without_any_gradient_must_be_constant(x):
    assert gradcheck(lambda x: taeda.ones(2, dtype=taeda.float64), x)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 3, x)
