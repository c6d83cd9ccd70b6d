"""index_reduce, segment_reduce and bins where vectors do the work: NumPy."""

import numpy as np
import pytest

import taeda as torch

UFUNCS = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply, "mean": np.add}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", UFUNCS)
def test_rows_are_reduced_in_order(reduce, include_self, dtype):
    x = torch.randint(1, 4, (9, 37)).to(dtype)
    source, index = torch.randint(1, 4, (14, 37)).to(dtype), torch.randint(0, 7, (14,))
    found = x.index_reduce(0, index, source, reduce, include_self=include_self)
    wanted, counts = x.numpy().copy(), np.full(9, int(include_self))
    for i, row in zip(index.numpy(), source.numpy(), strict=True):
        wanted[i] = UFUNCS[reduce](wanted[i], row) if counts[i] else row
        counts[i] += 1
    if reduce == "mean":
        divisors = np.maximum(counts, 1)[:, None]
        wanted = wanted // divisors if dtype == torch.int64 else wanted / divisors
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_nan_is_the_extreme_of_a_row_and_indices_are_checked_first():
    x, source = torch.zeros(2, 20), torch.ones(2, 20)
    source[0, 3] = torch.nan
    index = torch.tensor([1, 1])
    assert x.index_reduce(0, index, source, "amax").isnan().sum() == 1
    with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
        x.index_reduce_(0, torch.tensor([0, 2]), source, "amax")
    assert not x.any()


@pytest.mark.parametrize("bins", [1, 10, 1000])
def test_edges_of_equal_bins_belong_to_the_bin_on_their_right(bins):
    edges = torch.linspace(-3, 2, bins + 1)
    found = torch.histogram(edges, bins, range=(-3, 2)).hist.numpy()
    wanted, _ = np.histogram(edges.numpy(), edges.numpy())
    np.testing.assert_array_equal(found, wanted)


def test_overloads_that_only_pytorch_has_are_found_by_call_and_by_name():
    x = torch.randn(1, 1, 4, 6)
    resize = torch.ops.aten._upsample_bilinear2d_aa
    by_scale = resize(x, output_size=None, align_corners=False, scale_factors=[2.0, 0.5])
    assert by_scale.shape == (1, 1, 8, 3)
    assert torch.equal(resize.vec(x, [8, 3], False, None), resize(x, [8, 3], False))
    mean = torch.ops.aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)[1]
    assert torch.allclose(mean, x.mean((0, 2, 3)))
