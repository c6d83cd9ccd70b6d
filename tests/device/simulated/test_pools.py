"""Pooling on a simulated device, by its kernels, with gradients: values are the CPU's."""

import itertools

import numpy as np
import pytest
from tests.device.simulated.by_kernels import (
    FLOATING,
    INTEGERS,
    TOLERANCE,
    agree,
    layouts,
    values,
    with_gradients,
)

import taeda
import taeda.nn.functional as F
from taeda import _C

SIZES = {1: (2, 3, 11), 2: (2, 3, 7, 6), 3: (2, 2, 5, 6, 7)}
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_MEAN = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
# kernel, stride, padding, dilation
WINDOWS = [(2, 2, 0, 1), (3, 1, 1, 1), (3, 2, 1, 1), (2, 3, 1, 2), (3, 1, 1, 2), (2, 5, 0, 1)]


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def in_formats(x):
    """A tensor in row-major order and, of images and volumes, with channels last."""
    formats = {4: taeda.channels_last, 5: taeda.channels_last_3d}
    yield "row-major", x
    if x.dim() in formats:
        yield "channels last", x.contiguous(memory_format=formats[x.dim()])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ceil", [False, True])
def test_max_pooling(n, ceil):
    for dtype in FLOATING:
        for window, (name, x) in itertools.product(WINDOWS, in_formats(values(dtype, SIZES[n]))):
            what = f"{dtype} {window} {name}"
            agree(
                lambda x, w=window: with_gradients(lambda x: MAX[n](x, *w, ceil_mode=ceil), x),
                x,
                what=what,
            )
            agree(
                lambda x, w=window: MAX[n](x, *w, ceil_mode=ceil, return_indices=True),
                x,
                what=what + " with indices",
            )


def test_gradients_by_the_indices_of_maxima():
    for n, dtype in itertools.product((1, 2, 3), FLOATING):
        for name, x in in_formats(values(dtype, SIZES[n])):
            agree(
                lambda x, n=n: with_gradients(lambda x: MAX[n](x, 3, 2, 1, return_indices=True), x),
                x,
                what=f"{dtype} {n} {name}",
            )


def test_windows_of_integers():
    for dtype in INTEGERS:
        for ceil in (False, True):
            agree(
                lambda x, c=ceil: F.max_pool2d(x, 3, 2, 1, 2, ceil_mode=c), values(dtype, (2, 6, 7))
            )
    agree(lambda x: F.avg_pool2d(x, 2), values("int64", (2, 3, 6, 7)) * 7)


def test_large_windows_number_their_elements_in_32_bits():
    x = values("float32", (1, 2, 20, 17))
    agree(lambda x: with_gradients(lambda x: F.max_pool2d(x, (18, 16), 1), x), x)


def test_equal_values_and_nan_in_windows():
    nan, inf = float("nan"), float("inf")
    x = taeda.tensor([[[1.0, 1, nan, 2, nan, -inf, -inf, -inf, 3, 3, inf, inf]]])
    for window in ((3, 1), (3, 3), (4, 2, 1)):
        agree(lambda x, w=window: F.max_pool1d(x, *w, return_indices=True), x)
        agree(lambda x, w=window: with_gradients(lambda x: F.max_pool1d(x, *w), x), x)
    agree(lambda x: F.adaptive_max_pool1d(x, 5, return_indices=True), x)


def test_max_pooling_of_any_layout():
    for layout, x in layouts("float32", (3, 4, 6)).items():
        agree(lambda x: with_gradients(lambda x: F.max_pool2d(x, 2), x), x, what=layout)
        agree(lambda x: with_gradients(lambda x: F.avg_pool2d(x, 2), x), x, what=layout)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_pooling(n, ceil):
    for dtype, padded in itertools.product(FLOATING, (False, True)):
        for (kernel, stride, padding, _), (name, x) in itertools.product(
            WINDOWS, in_formats(values(dtype, SIZES[n]))
        ):
            agree(
                lambda x, w=(kernel, stride, padding), p=padded: with_gradients(
                    lambda x: MEAN[n](x, *w, ceil_mode=ceil, count_include_pad=p), x
                ),
                x,
                what=f"{dtype} {kernel, stride, padding} {padded} {name}",
            )


def test_a_divisor_in_place_of_the_count():
    for n in (2, 3):
        x = values("float32", SIZES[n])
        for divisor in (1, -3, 5):
            agree(
                lambda x, n=n, d=divisor: with_gradients(
                    lambda x: MEAN[n](x, 3, 2, 1, divisor_override=d), x
                ),
                x,
                what=f"{n} {divisor}",
            )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_adaptive_pooling(n):
    for dtype in FLOATING:
        for size in (1, 2, 3, 7, tuple(range(1, n + 1)), (4, *(1,) * (n - 1))):
            for name, x in in_formats(values(dtype, SIZES[n])):
                what = f"{dtype} {size} {name}"
                agree(
                    lambda x, s=size: with_gradients(lambda x: ADAPTIVE_MEAN[n](x, s), x),
                    x,
                    what=what,
                )
                agree(
                    lambda x, s=size: with_gradients(
                        lambda x: ADAPTIVE_MAX[n](x, s, return_indices=True), x
                    ),
                    x,
                    what=what,
                )


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling(n):
    pool = getattr(F, f"fractional_max_pool{n}d")
    for dtype in FLOATING:
        x = values(dtype, SIZES[n])
        x[0, 0, 1] = float("nan")
        u = values("float64", (2, SIZES[n][1], n), 3).sigmoid().to(x.dtype)
        for kernel, out in [(2, 3), (3, 1), (1, (4, 5, 6)[:n]), (2, (3, 4, 5)[:n])]:
            agree(
                lambda x, u, k=kernel, o=out: with_gradients(
                    lambda x: pool(x, k, o, return_indices=False, _random_samples=u), x
                ),
                x,
                u,
                what=f"{dtype} {kernel} {out}",
            )
            agree(
                lambda x, u, k=kernel, o=out: pool(x, k, o, return_indices=True, _random_samples=u),
                x,
                u,
            )


def test_fractional_windows_at_no_number_are_raised_later():
    u = taeda.full((1, 1, 2), float("nan"), device="cuda")
    F.fractional_max_pool2d(taeda.ones(1, 1, 4, 4, device="cuda"), 2, 2, _random_samples=u)
    with pytest.raises(RuntimeError, match="random_samples must be finite"):
        taeda.cuda.synchronize()


def test_empty_batches_and_results():
    x = taeda.zeros(0, 2, 4, 4)
    agree(lambda x: with_gradients(lambda x: F.max_pool2d(x, 2), x), x)
    agree(lambda x: with_gradients(lambda x: F.avg_pool2d(x, 2), x), x)
    agree(lambda x: with_gradients(lambda x: F.adaptive_avg_pool2d(x, 2), x), x)
    agree(
        lambda x: with_gradients(lambda x: F.adaptive_avg_pool2d(x, 0), x), taeda.ones(1, 2, 4, 4)
    )


def test_second_derivatives_and_tangents():
    def second(x, call):
        x = x.detach().requires_grad_()
        (gx,) = taeda.autograd.grad(call(x).square().sum(), x, create_graph=True)
        return taeda.autograd.grad(gx.square().sum(), x)

    def tangent(x, call):
        return taeda.func.jvp(call, (x,), (x * 2 + 1,))

    calls = [
        lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: F.max_pool2d(x, 2, return_indices=True)[0],
    ]  # fmt: skip
    for call in calls:
        agree(lambda x, f=call: second(x, f), values("float64", (2, 3, 6, 5)))
        agree(lambda x, f=call: tangent(x, f), values("float64", (2, 3, 6, 5)))


def test_gradients_of_few_large_planes_by_sorted_indices(bits):
    scatter = taeda.ops.taeda.pool_scatter
    random = np.random.default_rng(0)
    index = random.integers(0, 6000, (2, 9000))
    index[:, ::2] = 17  # a hot element, as windows that overlap have
    for dtype in FLOATING:
        gy = values(dtype, (2, 9000), 1)
        i, g = taeda.tensor(index).cuda(), gy.cuda()
        found = bits(lambda i=i, g=g: scatter(g, i, [2, 6000], 1)).double().numpy()
        expected = np.zeros((2, 6000))
        np.add.at(expected, (np.arange(2)[:, None], index), gy.double().numpy())
        rtol, atol = TOLERANCE[dtype]
        np.testing.assert_allclose(
            found, expected, rtol=rtol, atol=50 * atol * (dtype == "float32") + atol
        )
    i[1, 5] = 6000
    scatter(g, i, [2, 6000], 1)
    with pytest.raises(IndexError, match=r"index 6000 out of range \[0, 6000\)"):
        taeda.cuda.synchronize()


def test_gradients_of_fractional_and_adaptive_pools_of_a_large_plane():
    x = values("float32", (1, 1, 120, 110))
    u = taeda.tensor([[[0.3, 0.6]]])
    agree(
        lambda x, u: with_gradients(
            lambda x: F.fractional_max_pool2d(x, 2, (100, 95), _random_samples=u), x
        ),
        x,
        u,
    )
    agree(lambda x: with_gradients(lambda x: F.adaptive_max_pool2d(x, (100, 95)), x), x)


def test_an_index_outside_of_its_plane_is_raised_later():
    index = taeda.tensor([[[0, 9]]], device="cuda")
    y = taeda.ops.taeda.pool_scatter(taeda.ones(1, 1, 2, device="cuda"), index, [1, 1, 4], 1)
    with pytest.raises(IndexError, match=r"index 9 out of range \[0, 4\)"):
        taeda.cuda.synchronize()
    assert y.tolist() == [[[1, 0, 0, 0]]]
