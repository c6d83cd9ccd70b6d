"""bincount and histc of many elements, which several threads count into tables of their own."""

import numpy as np
import pytest

import taeda

RNG = np.random.default_rng(0)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = taeda.get_num_threads()
    taeda.set_num_threads(request.param)
    yield
    taeda.set_num_threads(before)


@pytest.mark.parametrize("places", [1, 10, 255, 1000, 16384, 40_000])
@pytest.mark.parametrize("minlength", [0, 700, 20_000])
def test_bincount(threads, places, minlength):
    for n in (1, 1000, 300_001):
        x = RNG.integers(0, places, n)
        counts = taeda.bincount(taeda.from_numpy(x), minlength=minlength).numpy()
        np.testing.assert_array_equal(counts, np.bincount(x, minlength=minlength))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 100, 1023, 20_000])
def test_histc_takes_the_same_bins_as_torch(threads, bins, dtype):
    torch = pytest.importorskip("torch")
    x = (2 * RNG.normal(size=300_001)).astype(dtype)
    for low, high in ((-3, 3), (0, 1), (-1e-3, 100), (0, 0)):
        if low != high:
            x[:6] = [low, high, np.nan, np.inf, -np.inf, 0]
        else:
            x = np.nan_to_num(x, posinf=1, neginf=1)
        counts = taeda.histc(taeda.from_numpy(x), bins, low, high).numpy()
        expected = torch.histc(torch.from_numpy(x), bins, low, high).numpy()
        np.testing.assert_array_equal(counts, expected)
