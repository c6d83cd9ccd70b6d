"""Tensors larger than the last cache: results are stored past it, whole lines at a time."""

import numpy as np
import pytest

import taeda as torch

ROWS, COLUMNS = 2900, 2999  # rows that begin anywhere in a cache line


@pytest.fixture(scope="module")
def arrays():
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    return x, random.standard_normal((COLUMNS, ROWS), dtype=np.float32)


MOVES = {
    "row": lambda x, y: x + y[:, 0],
    "column": lambda x, y: x + y[:1].T,
    "transposed": lambda x, y: x + y.T,
    "view": lambda x, y: x[1:, 3:] * 2,
    "every second": lambda x, y: y[:, ::2] + y[:, ::2],
    "compared": lambda x, y: (x < y.T) == (y.T > x),
}


@pytest.mark.parametrize("name", MOVES)
def test_elements(arrays, name):
    x, y = arrays
    result = MOVES[name](torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_array_equal(result.numpy(), MOVES[name](x, y))


def test_copies(arrays):
    x, y = map(torch.from_numpy, arrays)
    for result, expected in [
        (y.t().contiguous(), arrays[1].T),
        (x[1:, 3:].clone(), arrays[0][1:, 3:]),
        (x.flip(1), arrays[0][:, ::-1]),
        (x.flip(0, 1), arrays[0][::-1, ::-1]),
        (torch.cat([x, y.t()], 1), np.concatenate([arrays[0], arrays[1].T], 1)),
        (x.double(), arrays[0].astype(np.float64)),
        ((x * 1000).long(), (arrays[0] * np.float32(1000)).astype(np.int64)),
        (x.masked_fill(x > 0, 0.0), np.where(arrays[0] > 0, np.float32(0), arrays[0])),
    ]:
        np.testing.assert_array_equal(result.numpy(), expected)


def test_an_operand_that_is_written(arrays):
    x, y = arrays
    z = torch.from_numpy(x.copy())
    z.add_(torch.from_numpy(y).t())
    np.testing.assert_array_equal(z.numpy(), x + y.T)


@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums(arrays, dim):
    x = arrays[0]
    result = torch.from_numpy(x).cumsum(dim)
    np.testing.assert_array_equal(
        result.numpy(), x.astype(np.float64).cumsum(dim).astype(np.float32)
    )


def test_rows(arrays):
    x = arrays[0].astype(np.float64)
    t = torch.from_numpy(arrays[0])
    e = np.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(t.softmax(1).numpy(), y, rtol=1e-5)
    np.testing.assert_allclose(t.log_softmax(1).numpy(), np.log(y), rtol=1e-5)
    centered = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    result = torch.nn.functional.layer_norm(t, (COLUMNS,))
    np.testing.assert_allclose(result.numpy(), centered, rtol=1e-5, atol=1e-6)


def test_gradients_of_rows(arrays):
    gy = arrays[1].T.astype(np.float64)
    for log in (False, True):
        t = torch.from_numpy(arrays[0]).requires_grad_()
        y = torch.log_softmax(t, 1) if log else torch.softmax(t, 1)
        y.backward(torch.from_numpy(arrays[1]).t())
        v = y.detach().numpy().astype(np.float64)
        if log:
            expected = gy - np.exp(v) * gy.sum(1, keepdims=True)
        else:
            expected = v * (gy - (gy * v).sum(1, keepdims=True))
        np.testing.assert_allclose(t.grad.numpy(), expected, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "int8", "uint8"])
def test_places_in_columns(dtype):
    """Ties take the first place, NaN the first of its kind; columns beyond whole vectors too."""
    random = np.random.default_rng(1)
    x = random.integers(0, 100, (300, 517)).astype(dtype)
    if dtype.startswith("float"):
        x[200, ::7] = x[120, ::7] = np.nan
        x[:, 3] = -np.inf
    t = torch.from_numpy(x)
    for name in ("max", "min"):
        result = getattr(t, name)(0)
        indices = getattr(np, f"arg{name}")(x, 0)  # as PyTorch: the first extreme, the first NaN
        np.testing.assert_array_equal(result.indices.numpy(), indices)
        np.testing.assert_array_equal(result.values.numpy(), getattr(np, name)(x, 0))
        np.testing.assert_array_equal(getattr(t, f"arg{name}")(0).numpy(), indices)
