"""What a node saves: only what the gradients that are wanted read, as PyTorch's nodes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda

F = taeda.nn.functional
FROZEN = taeda.ones(4, 4)

COUNTS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "times a number": (0, lambda x: 2 * x),
    "over a number": (0, lambda x: x / 3),
    "times a constant": (1, lambda x: x * FROZEN[0]),
    "times itself": (2, lambda x: x * x),
    "cat": (0, lambda x: taeda.cat([x, x])),
    "stack": (0, lambda x: taeda.stack([x, x])),
    "a frozen layer": (1, lambda x: F.linear(x, FROZEN)),
    "a product with a constant": (1, lambda x: x @ FROZEN),
    "square root": (1, lambda x: x.sqrt()),
    "cross entropy of logits": (2, lambda x: F.binary_cross_entropy_with_logits(x, FROZEN[0])),
}


@pytest.mark.parametrize("name", COUNTS)
def test_count_of_saved_tensors(name: str) -> None:
    expected, f = COUNTS[name]
    seen = []
    x = taeda.ones(4, requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        f(x).sum()
    assert len(seen) == expected


WRITTEN_LATER: dict[str, Callable[[Any], Any]] = {
    "times a number": lambda y: 2 * y,
    "times a constant": lambda y: y * FROZEN[0],
    "a frozen layer": lambda y: F.linear(y, FROZEN),
    "cat": lambda y: taeda.cat([y, y]),
    "roll": lambda y: y.roll(1),
    "square root": lambda y: y.sqrt(),
    "lerp": lambda y: y.lerp(y, 0.5),
}


@pytest.mark.parametrize("name", WRITTEN_LATER)
def test_an_input_that_no_gradient_reads_may_be_written(name: str) -> None:
    f = WRITTEN_LATER[name]
    x = taeda.tensor([1.0, 4.0, 9.0, 16.0], requires_grad=True)
    (expected,) = taeda.autograd.grad(f(x.clone()).sum(), x)
    y = x.clone()
    z = f(y)
    y.add_(1)
    z.sum().backward()
    assert taeda.equal(x.grad, expected)


def test_what_a_gradient_reads_may_not_be_written() -> None:
    x = taeda.ones(4, requires_grad=True)
    for f in (lambda y: y * y, lambda y: y.sin(), lambda y: y * x):
        y = x.clone()
        z = f(y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_a_recurrent_buffer() -> None:
    w = taeda.ones(4, requires_grad=True)
    buffer = taeda.zeros(3, 4)
    for t in range(1, 3):
        buffer[t] = buffer[t - 1] * 0.9 + w
    buffer.sum().backward()
    taeda.testing.assert_close(w.grad, taeda.full((4,), 2.9))


def test_a_leaky_neuron_in_place() -> None:
    w = taeda.ones(4, requires_grad=True)
    v = taeda.zeros(4)
    for _ in range(3):
        i = v * 2 + w
        v.mul_(0.5).add_(i)
    v.sum().backward()
    assert w.grad.tolist() == [9.75] * 4


def test_what_is_needed_of_a_power_in_place() -> None:
    """The answer to what is kept is taken before the call, which makes the base require grad."""
    exponent = taeda.full((3,), 2.0, requires_grad=True)
    base = taeda.tensor([1.0, 2.0, 3.0])
    base.pow_(exponent)
    base.sum().backward()
    expected = taeda.tensor([1.0, 4.0, 9.0]) * taeda.tensor([1.0, 2.0, 3.0]).log()
    taeda.testing.assert_close(exponent.grad, expected)


# In place, with the result enough for backward.
OVERWRITING: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu_,
    "leaky_relu": lambda x: F.leaky_relu_(x, 0.1),
    "elu": lambda x: F.elu_(x, 1.5),
    "celu": lambda x: F.celu_(x, 0.7),
    "selu": F.selu_,
    "hardtanh": F.hardtanh_,
    "relu6": lambda x: F.relu6(x, inplace=True),
    "sigmoid": taeda.sigmoid_,
    "tanh": taeda.tanh_,
    "exp": taeda.exp_,
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_an_activation_in_place_keeps_its_result_and_nothing_else(name: str) -> None:
    f, seen = OVERWRITING[name], []
    y = taeda.ones(4, requires_grad=True) * 2
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        f(y)
    assert [t.data_ptr() for t in seen] == [y.data_ptr()]


@pytest.mark.parametrize("name", OVERWRITING)
def test_derivatives_from_the_result(name: str) -> None:
    f = OVERWRITING[name]
    x = taeda.tensor([-3.0, -0.5, 0.3, 0.9, 2.0, 7.0], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda x: f(x * 1), x)
    assert taeda.autograd.gradgradcheck(lambda x: f(x * 1), x)


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "celu", "selu", "hardtanh", "relu6"])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_gradients_at_kinks_in_place_are_those_of_the_copy(name: str, dtype: Any) -> None:
    f = getattr(F, name)
    points = [-100.0, -1.0, -0.0, 0.0, 1e-30, 1.0, 6.0, 8.0, float("inf"), -float("inf")]
    x = taeda.tensor(points, dtype=dtype, requires_grad=True)
    (expected,) = taeda.autograd.grad(f(x).sum(), x)
    (got,) = taeda.autograd.grad(f(x * 1, inplace=True).sum(), x)
    # What the result has lost to rounding is lost to the gradient: y + alpha far below zero.
    taeda.testing.assert_close(got, expected, rtol=0.016, atol=2 * taeda.finfo(dtype).eps)


def test_bounds_that_half_precision_rounds() -> None:
    """0.1 becomes 0.10009765625, which lies above it, and 0.7 0.69921875, below."""
    x = taeda.tensor([0.0, 0.5, 1.0], dtype=taeda.bfloat16, requires_grad=True)
    F.hardtanh(x * 1, 0.1, 0.7, inplace=True).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


@pytest.mark.parametrize("f", [F.leaky_relu, F.elu, F.celu])
def test_a_slope_whose_sign_the_result_loses(f: Callable[..., Any]) -> None:
    x = taeda.tensor([-1.0, 2.0], requires_grad=True)
    (gradient,) = taeda.autograd.grad(f(x, -0.5).sum(), x)
    assert gradient[1] == 1
    y = f(x * 1, -0.5, inplace=True)
    with pytest.raises(RuntimeError, match="with a negative slope which is not supported"):
        y.sum().backward()


def test_names_of_nodes_in_place() -> None:
    x = taeda.ones(2, requires_grad=True)
    for f, name in [
        (F.leaky_relu, "LeakyReluBackward"),
        (F.elu, "EluBackward"),
        (F.selu, "EluBackward"),
        (F.celu, "CeluBackward"),
    ]:
        assert f(x).grad_fn.name() == f"{name}0"
        assert f(x * 1, inplace=True).grad_fn.name() == f"{name}1"
    assert F.hardtanh(x * 1, inplace=True).grad_fn.name() == "HardtanhBackward0"
