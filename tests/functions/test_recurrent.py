"""torch.lstm, gru, rnn_tanh, rnn_relu and their cells beside PyTorch's, with gradients."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def network(lib, name, layers, directions, bias, proj=0):
    draw = np.random.default_rng(2).standard_normal
    weights, gates = [], 5 * GATES[name]
    for layer in range(layers):
        for _ in range(directions):
            inputs = 3 if layer == 0 else (proj or 5) * directions
            shapes = [(gates, inputs), (gates, proj or 5)] + [(gates,)] * (2 * bias)
            weights += [draw(s) * 0.4 for s in shapes + ([(proj, 5)] if proj else [])]
    return [lib.tensor(w, requires_grad=True) for w in weights]


def states(lib, name, count, batch, proj=0):
    draw = np.random.default_rng(4).standard_normal
    h = lib.tensor(draw((count, batch, proj or 5)))
    return [h, lib.tensor(draw((count, batch, 5)))] if name == "lstm" else h


def equal(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-12)


@pytest.mark.parametrize(
    ("layers", "directions", "bias"), [(1, 1, True), (2, 2, True), (2, 1, False)]
)
@pytest.mark.parametrize("name", GATES)
def test_networks(name, layers, directions, bias):
    for batch_first in (False, True):
        found = []
        for lib in (taeda, torch):
            params = network(lib, name, layers, directions, bias)
            x = lib.tensor(np.random.default_rng(1).standard_normal((4, 4, 3)))
            hx = states(lib, name, layers * directions, 4)
            both = directions == 2
            result = getattr(lib, name)(
                x, hx, params, bias, layers, 0.0, True, both, batch_first=batch_first
            )
            sum(r.sin().sum() for r in result).backward()
            found.append([*result, *(p.grad for p in params)])
        equal(*found)


def test_a_projection():
    found = []
    for lib in (taeda, torch):
        params = network(lib, "lstm", 2, 1, True, proj=2)
        x = lib.ones(4, 2, 3, dtype=lib.float64)
        hx = states(lib, "lstm", 2, 2, proj=2)
        found.append(lib.lstm(x, hx, params, True, 2, 0.0, False, False, False))
    equal(*found)


@pytest.mark.parametrize("name", GATES)
def test_packed_sequences(name):
    found = []
    for lib in (taeda, torch):
        params = network(lib, name, 1, 2, True)
        x = lib.tensor(np.random.default_rng(1).standard_normal((6, 3)))
        hx = states(lib, name, 2, 3)
        sizes = lib.tensor([3, 2, 1])
        found.append(getattr(lib, name)(x, sizes, hx, params, True, 1, 0.0, False, True))
    equal(*found)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("bias", [True, False])
def test_cells(name, bias):
    found = []
    for lib in (taeda, torch):
        params = network(lib, name, 1, 1, bias)
        hx = states(lib, name, 1, 2)
        hx = [h[0] for h in hx] if name == "lstm" else hx[0]
        x = lib.tensor(np.random.default_rng(1).standard_normal((2, 3)))
        result = getattr(lib, f"{name}_cell")(x, hx, *params)
        found.append(result if isinstance(result, tuple) else (result,))
    equal(*found)


def test_wrong_arguments():
    x, h = taeda.ones(2, 1, 3), taeda.ones(1, 1, 5)
    params = [taeda.ones(5, 3), taeda.ones(5, 5)]
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        taeda.rnn_tanh(x, h, params, True, 1, 0.0, False, False, False)
    with pytest.raises(TypeError, match="batch_first"):
        taeda.gru(x, h, params)
