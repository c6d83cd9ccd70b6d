"""Fourier transforms on a simulated device, by their kernel, against NumPy's in double."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import agree, layouts, values, with_gradients

import taeda
from taeda import _C

# Every radix alone and with others; odd and even; the longest in one pass, of float and of double;
# two passes; primes and their multiples, which are convolutions, in one pass and in two.
LENGTHS = [
    *range(1, 18), 21, 25, 28, 30, 35, 49, 60, 64, 81, 105, 125, 128, 210, 243, 343, 512, 1000,
    1024, 1050, 2048, 2187, 2401, 4096, 5000, 11 * 13, 101, 211, 509, 1021, 1031,
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def assert_near(ours, expected):
    ours = ours.resolve_conj().cpu().numpy()
    single = ours.dtype in (np.float32, np.complex64)
    assert ours.shape == expected.shape
    size = max(np.abs(expected).max(), 1e-300)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=(2e-6 if single else 4e-15) * size)


def lines(count, n, precision):
    rng = np.random.default_rng(n)
    real = rng.standard_normal((count, n)).astype(precision)
    return real, real + 1j * rng.standard_normal((count, n)).astype(precision)


def cuda(x):
    return taeda.from_numpy(x).to("cuda")


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_lines_of_any_length(n, precision):
    for count in (1, 5) if n < 600 else (2,):
        real, complex_ = lines(count, n, precision)
        for name, x in [("fft", complex_), ("ifft", complex_), ("rfft", real), ("ihfft", real)]:
            expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))
            assert_near(getattr(taeda.fft, name)(cuda(x)), expected)
        half = complex_[:, : n // 2 + 1].copy()
        expected = np.fft.irfft(half.astype(np.complex128), n)
        assert_near(taeda.fft.irfft(cuda(half), n), expected)
        assert_near(taeda.fft.fft(cuda(real)), np.fft.fft(real.astype(np.float64)))


@pytest.mark.parametrize("n", [1 << 15, 3 * 7**5, 10007])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_long_lines(n, precision):
    real, complex_ = lines(1, n, precision)
    for name, x in [("ifft", complex_), ("rfft", real)]:
        expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))
        assert_near(getattr(taeda.fft, name)(cuda(x)), expected)


def test_more_lines_than_the_device_takes_at_a_time():
    """Blocks go on with others, read by neighbours and written by elements."""
    card = taeda.cuda.get_device_properties(0)
    blocks = card.multi_processor_count * (card.max_threads_per_multi_processor // 128)
    x = lines(4 * blocks + 40, 256, np.float64)[1]  # a block has up to four
    y = taeda.fft.fft(cuda(x.T.copy()), dim=0)
    assert_near(y, np.fft.fft(x).T)


def test_a_line_of_three_passes():
    x = lines(1, 1 << 19, np.float32)[1]
    assert_near(taeda.fft.fft(cuda(x)), np.fft.fft(x.astype(np.complex128)))


@pytest.mark.parametrize("n", [4, 30, 300, 11])
def test_dimensions_with_neighbours(n):
    """Lines along each dimension, from and to memory in either order, at once with others."""
    for dtype in ("complex64", "complex128"):
        for name, x in layouts(dtype, (n, 3, 7)).items():
            for dim in (0, 1, 2) if name != "repeated" else (1, 2):  # sums of equals cancel
                agree(lambda x, d=dim: taeda.fft.fft(x, dim=d), x, what=f"{dtype} {name} {dim}")


def test_several_dimensions_and_normalizations():
    calls = {
        "fftn": lambda x, norm: taeda.fft.fftn(x, norm=norm),
        "ifft2": lambda x, norm: taeda.fft.ifft2(x, dim=(0, 2), norm=norm),
        "irfftn": lambda x, norm: taeda.fft.irfftn(x, norm=norm),
        "hfftn": lambda x, norm: taeda.fft.hfftn(x, (4, 7), (2, 0), norm=norm),
        "rfftn": lambda x, norm: taeda.fft.rfftn(x.real, norm=norm),
        "ihfftn": lambda x, norm: taeda.fft.ihfftn(x.real, norm=norm),
        "padded": lambda x, norm: taeda.fft.fft(x, 9, norm=norm),
    }
    for dtype in ("complex64", "complex128"):
        x = values(dtype, (4, 6, 5))
        for name, call in calls.items():
            for norm in ("backward", "ortho", "forward"):
                agree(lambda x, c=call, m=norm: c(x, m).resolve_conj(), x, what=f"{name} {norm}")


def test_gradients_are_the_cpus():
    for n in (8, 11):
        x = values("float64", (3, n))
        agree(lambda x: with_gradients(lambda x: taeda.fft.rfft(x).abs(), x), x)
        agree(lambda x, n=n: with_gradients(lambda x: taeda.fft.irfft(x, n), x), x)
    agree(lambda x: with_gradients(lambda x: taeda.stft(x, 16, return_complex=True).abs(), x), x)


def test_nothing_to_transform():
    assert taeda.fft.fft(taeda.zeros(0, 4, device="cuda")).shape == (0, 4)
    assert taeda.fft.rfft(taeda.zeros(3, 0, 4, device="cuda")).shape == (3, 0, 3)


def test_what_is_not_finite_stays_in_its_line():
    x = taeda.ones(3, 12, dtype=taeda.complex64, device="cuda")
    x[1, 4] = float("nan")
    y = taeda.fft.fft(x).cpu()
    assert y[1].isnan().all() and not y[0].isnan().any() and not y[2].isnan().any()
