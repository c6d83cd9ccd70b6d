"""torch.histogram and torch.histogramdd beside NumPy and PyTorch."""

import numpy as np
import pytest

import taeda

X = taeda.tensor([1.0, 2.0, 1.0, 4.0, -3.0, 0.5, 2.5, 4.0])
POINTS = taeda.arange(24.0).reshape(12, 2).sin() * 3
nan = float("nan")


def generator():
    return np.random.default_rng(7)


@pytest.mark.parametrize("bins", [1, 4, 100])
@pytest.mark.parametrize("range", [None, (-1.0, 3.0), (2.0, 2.0)])
@pytest.mark.parametrize("density", [False, True])
def test_equal_bins_as_numpy(bins, range, density):
    x = generator().normal(size=1000)
    x[:4] = -1, 3, 2, 2
    weight = generator().uniform(0.5, 2, size=1000)
    for w in (None, weight):
        want, edges = np.histogram(x, bins, range, density, w)
        given = None if w is None else taeda.tensor(w)
        hist, bin_edges = taeda.histogram(
            taeda.tensor(x), bins, range=range, weight=given, density=density
        )
        np.testing.assert_allclose(bin_edges.numpy(), edges, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(hist.numpy(), want, rtol=1e-9)


def test_edges_as_numpy():
    x = generator().normal(size=(20, 30))
    edges = np.array([-2.0, -1, 0.25, 0.5, 2])
    want, _ = np.histogram(x, edges)
    result = taeda.tensor(x).histogram(taeda.tensor(edges))
    assert result.hist.tolist() == want.tolist() and result.bin_edges.tolist() == edges.tolist()


@pytest.mark.parametrize("bins", [3, (2, 4)])
@pytest.mark.parametrize("range", [None, (-1.0, 2.0, 0.0, 3.0)])
@pytest.mark.parametrize("density", [False, True])
def test_points_as_numpy(bins, range, density):
    x = POINTS.double()
    weight = taeda.arange(12.0, dtype=taeda.float64)
    pairs = None if range is None else (range[:2], range[2:])
    want, edges = np.histogramdd(x.numpy(), bins, pairs, density, weight.numpy())
    given = bins if isinstance(bins, int) else list(bins)
    result = taeda.histogramdd(x, given, range=range, weight=weight, density=density)
    np.testing.assert_allclose(result.hist.numpy(), want, rtol=1e-12)
    for mine, theirs in zip(result.bin_edges, edges):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)


def test_what_is_outside_is_ignored():
    x = taeda.tensor([nan, -1.0, 0.0, 1.0, 3.0, 4.0, float("inf")])
    assert x.histogram(3, range=(0.0, 3.0)).hist.tolist() == [1, 1, 1]


def test_out_and_names():
    out = taeda.empty(0), taeda.empty(0)
    result = taeda.histogram(X, 4, out=out)
    assert result.hist is out[0] and out[1].shape == (5,)
    assert isinstance(result, taeda.return_types.histogram)
    assert repr(result).startswith("torch.return_types.histogram(\nhist=tensor([")
    assert isinstance(taeda.histogramdd(POINTS, 2), taeda.return_types.histogramdd)


CALLS = {
    "default": lambda t, x, p: t.histogram(x),
    "edges": lambda t, x, p: t.histogram(x, t.tensor([0.0, 2.0, 3.0, 4.0])),
    "falling edges": lambda t, x, p: t.histogram(x, t.tensor([3.0, 2.0])),
    "one value": lambda t, x, p: t.histogram(x[:1], 4),
    "empty": lambda t, x, p: t.histogram(x[:0], 4),
    "empty, density": lambda t, x, p: t.histogram(x[:0], 4, density=True),
    "number": lambda t, x, p: t.histogram(x[0], 2),
    "points": lambda t, x, p: t.histogramdd(p, [2, 3], range=[0.0, 2, -1, 3], density=True),
    "points' edges": lambda t, x, p: t.histogramdd(p, [t.tensor([0.0, 1, 2]), t.tensor([-1.0, 3])]),
    "points in blocks": lambda t, x, p: t.histogramdd(p.reshape(3, 4, 2), [2, 2]),
    "points, weight": lambda t, x, p: t.histogramdd(
        p.reshape(3, 4, 2), 2, weight=t.ones(3, 4) * 0.5
    ),
    "integers": lambda t, x, p: t.histogram(x.long(), 4),
    "half": lambda t, x, p: t.histogram(x.half(), 4),
    "no bins": lambda t, x, p: t.histogram(x, 0),
    "no edges": lambda t, x, p: t.histogram(x, t.tensor([])),
    "one edge": lambda t, x, p: t.histogram(x, t.tensor([0.0])),
    "square edges": lambda t, x, p: t.histogram(x, t.ones(2, 2)),
    "double edges": lambda t, x, p: t.histogram(x, t.ones(2).double()),
    "falling range": lambda t, x, p: t.histogram(x, 4, range=(3.0, 1.0)),
    "range and edges": lambda t, x, p: t.histogram(x, t.ones(2), range=(3.0, 1.0)),
    "NaN": lambda t, x, p: t.histogram(x * nan, 4),
    "weight's shape": lambda t, x, p: t.histogram(x, 4, weight=t.ones(3)),
    "weight's dtype": lambda t, x, p: t.histogram(x, 4, weight=t.ones(8).double()),
    "bins of too few": lambda t, x, p: t.histogramdd(p, [2]),
    "points of one dimension": lambda t, x, p: t.histogramdd(x, [2]),
    "points' range": lambda t, x, p: t.histogramdd(p, 2, range=[0.0, 1.0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")

    def outcome(library):
        x, points = library.tensor(X.tolist()), library.tensor(POINTS.tolist())
        try:
            hist, edges = CALLS[name](library, x, points)
        except (RuntimeError, TypeError) as error:
            return type(error).__name__, str(error).partition(" got ")[0][:40]
        edges = [edges] if not isinstance(edges, tuple) else edges
        return [[round(v, 5) for v in t.flatten().tolist()] for t in (hist, *edges)], hist.shape

    mine, theirs = outcome(taeda), outcome(torch)
    if name == "range and edges":  # PyTorch lists its overloads
        assert mine[0] == theirs[0] == "TypeError"
    else:
        assert str(mine) == str(theirs)


@pytest.mark.parametrize("bins", [[2, 3], 2, [taeda.tensor([-1.0, 0.0, 2.0])] * 2])
def test_calls_by_schema(bins):
    expected = taeda.histogramdd(POINTS, bins)
    overload = {list: "default", int: "int_bins"}[type(bins)]
    if isinstance(bins, list) and isinstance(bins[0], taeda.Tensor):
        overload = "TensorList_bins"
    found = getattr(taeda.ops.aten.histogramdd, overload)(POINTS, bins)
    with taeda.profiler.profile():
        profiled = taeda.histogramdd(POINTS, bins)
    for hist, edges in (found, profiled):
        assert hist.equal(expected.hist)
        assert all(x.equal(y) for x, y in zip(edges, expected.bin_edges, strict=True))
