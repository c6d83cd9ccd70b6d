"""CrossMapLRN2d beside PyTorch's, whose window and gradient are not those of the formula."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def run(lib, size, channels, dtype="float32"):
    rng = np.random.default_rng(size * 10 + channels)
    values, weights = (rng.standard_normal((2, channels, 3, 2)).astype(dtype) for _ in range(2))
    x = lib.tensor(values, requires_grad=True)
    layer = lib.nn.CrossMapLRN2d(size, alpha=0.5, beta=0.75, k=1.5)
    y = layer(x)
    gradient = None
    if size > 1:
        (y * lib.tensor(weights)).sum().backward()
        gradient = x.grad.numpy()
    return y.detach().numpy(), gradient, repr(layer)


@pytest.mark.parametrize("channels", [1, 3, 6])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_values_and_gradients_are_pytorchs(size, channels):
    (own, own_gradient, name), (theirs, gradient, their_name) = (
        run(lib, size, channels) for lib in (taeda, torch)
    )
    np.testing.assert_allclose(own, theirs, rtol=2e-5, atol=1e-6)
    if gradient is not None:
        np.testing.assert_allclose(own_gradient, gradient, rtol=2e-5, atol=1e-6)
    assert name == their_name


def test_what_is_no_image_is_refused():
    messages = []
    for lib in (taeda, torch):
        with pytest.raises(ValueError, match="CrossMapLRN2d") as error:
            lib.nn.CrossMapLRN2d(3)(lib.ones(2, 3))
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_window_of_one_has_no_gradient_as_in_pytorch():
    for lib in (taeda, torch):
        y = lib.nn.CrossMapLRN2d(1)(lib.ones(1, 2, 2, 2, requires_grad=True))
        with pytest.raises(RuntimeError, match="exceeds dimension size"):
            y.sum().backward()
