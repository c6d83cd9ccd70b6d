"""nn.grad beside PyTorch's."""

import numpy as np
import pytest

import taeda
import taeda.nn.grad

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims, groups):
    draw = np.random.default_rng(0).standard_normal
    x, w = draw((2, 4, *[7] * dims)), draw((6, 4 // groups, *[3] * dims))
    found = []
    for lib in (taeda, torch):
        a, b = lib.tensor(x), lib.tensor(w, requires_grad=True)
        options = {"stride": 2, "padding": 1, "groups": groups}
        y = getattr(lib.nn.functional, f"conv{dims}d")(a, b, **options)
        g = lib.ones_like(y).cumsum(-1).detach()
        gx = getattr(lib.nn.grad, f"conv{dims}d_input")(x.shape, b, g, **options)
        gw = getattr(lib.nn.grad, f"conv{dims}d_weight")(a, w.shape, g, **options)
        gx.sin().sum().backward()
        found.append([t.detach().numpy() for t in (gx, gw, b.grad)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-10)
