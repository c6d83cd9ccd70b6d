"""Fourier transforms against NumPy's in double precision, for lengths with every kind of factor."""

import numpy as np
import pytest

import taeda

LENGTHS = [
    *range(1, 68), 97, 121, 127, 128, 211, 256, 272, 343, 360, 509, 999, 1000, 1021, 1024, 1331,
    2197, 4096, 8191, 44100,
]  # fmt: skip


def lines(count, n, precision):
    rng = np.random.default_rng(n)
    real = rng.standard_normal((count, n)).astype(precision)
    imaginary = rng.standard_normal((count, n)).astype(precision)
    return real, real + 1j * imaginary


def assert_near(result, expected):
    tolerance = 3e-6 if result.dtype.itemsize in (4,) or result.dtype == np.complex64 else 3e-14
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("count", [1, 3, 17])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_lines_of_any_length(n, precision, count):
    real, complex_ = lines(count, n, precision)
    calls = [("fft", complex_), ("ifft", complex_), ("rfft", real), ("ihfft", real), ("fft", real)]
    for name, x in calls:
        expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))
        assert_near(getattr(taeda.fft, name)(taeda.from_numpy(x)).resolve_conj().numpy(), expected)
    for m in {2 * n - 1, max(1, 2 * n - 2)}:
        expected = np.fft.irfft(complex_.astype(np.complex128), m)
        assert_near(taeda.fft.irfft(taeda.from_numpy(complex_), m).numpy(), expected)


@pytest.mark.parametrize("n", [1 << 16, 3 << 15, 100003, 1 << 17])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_long_lines(n, precision):
    real, complex_ = lines(1, n, precision)
    for name, x in [("fft", complex_), ("ifft", complex_), ("rfft", real)]:
        expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))
        assert_near(getattr(taeda.fft, name)(taeda.from_numpy(x)).resolve_conj().numpy(), expected)
    expected = np.fft.irfft(complex_[:, : n // 2 + 1].astype(np.complex128), n)
    half = taeda.from_numpy(complex_)[:, : n // 2 + 1]
    assert_near(taeda.fft.irfft(half, n).numpy(), expected)


@pytest.mark.parametrize("neighbours", [1, 3, 8, 16, 21, 64])
@pytest.mark.parametrize("n", [2, 7, 16, 30, 96, 300, 1009])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_dimensions_with_neighbours(n, neighbours, precision):
    """Transforms along the first of two dimensions, from and to either order in memory."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, neighbours)).astype(precision)
    z = x + 1j * rng.standard_normal((n, neighbours)).astype(precision)
    for ours, theirs in [(taeda.from_numpy(z), z), (taeda.from_numpy(z.T.copy()).T, z)]:
        exact = theirs.astype(np.complex128)
        assert_near(taeda.fft.fft(ours, dim=0).numpy(), np.fft.fft(exact, axis=0))
        assert_near(taeda.fft.ifft(ours, dim=0).numpy(), np.fft.ifft(exact, axis=0))
        for m in (2 * n - 2, 2 * n - 1):
            assert_near(taeda.fft.irfft(ours, m, dim=0).numpy(), np.fft.irfft(exact, m, axis=0))
        out = taeda.empty(neighbours, n, dtype=ours.dtype).T
        taeda.fft.fft(ours, dim=0, out=out)
        assert_near(out.numpy(), np.fft.fft(exact, axis=0))
    exact = x.astype(np.float64)
    assert_near(taeda.fft.rfft(taeda.from_numpy(x), dim=0).numpy(), np.fft.rfft(exact, axis=0))
    assert_near(taeda.fft.fft(taeda.from_numpy(x), dim=0).numpy(), np.fft.fft(exact, axis=0))


@pytest.mark.parametrize("sizes", [(5, 3, 24, 34), (4, 60, 37), (3, 7, 256, 19), (11, 96, 9)])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_what_is_left_of_groups_of_lines(sizes, precision):
    """Columns that vectors do not divide, of several matrices."""
    rng = np.random.default_rng(0)
    real = rng.standard_normal(sizes).astype(precision)
    x = real + 1j * rng.standard_normal(sizes).astype(precision)
    for name, of in [("fft2", x), ("ifft2", x), ("rfft2", real), ("irfft2", x)]:
        expected = getattr(np.fft, name)(of.astype(np.result_type(of, np.float64)))
        assert_near(getattr(taeda.fft, name)(taeda.from_numpy(of)).numpy(), expected)
    for dim in (0, 1, -2):
        for of in (x, real):
            expected = np.fft.fft(of.astype(np.result_type(of, np.float64)), axis=dim)
            assert_near(taeda.fft.fft(taeda.from_numpy(of), dim=dim).numpy(), expected)


@pytest.mark.parametrize("n", [1000, 1009, 1 << 14, 1 << 20])
def test_rounding_errors_grow_with_the_logarithm_of_the_length(n):
    _, z = lines(1, n, np.float32)
    exact = np.fft.fft(z.astype(np.complex128))
    error = np.linalg.norm(taeda.fft.fft(taeda.from_numpy(z)).numpy() - exact)
    chirps = (
        3 if n == 1009 else 1
    )  # a prime: several transforms, of numbers of several rounded products
    assert error / np.linalg.norm(exact) < chirps * 5e-8 * np.log2(n) ** 0.5


@pytest.mark.parametrize("dims", [(0,), (1,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("layout", ["dense", "transposed", "sliced", "expanded"])
def test_dimensions_and_layouts(dims, layout):
    x = np.random.default_rng(0).standard_normal((6, 5, 4, 2))
    z = x[..., 0] + 1j * x[..., 1]
    ours = taeda.from_numpy(z.copy())
    if layout == "transposed":
        z, ours = z.transpose(2, 0, 1), ours.permute(2, 0, 1)
    elif layout == "sliced":
        z, ours = z[::2, 1:, ::-1], ours[::2, 1:].flip(2)
    elif layout == "expanded":
        z, ours = np.broadcast_to(z[:, :1], z.shape), ours[:, :1].expand(6, 5, 4)
    assert_near(taeda.fft.fftn(ours, dim=dims).numpy(), np.fft.fftn(z, axes=dims))
    assert_near(taeda.fft.rfftn(ours.real, dim=dims).numpy(), np.fft.rfftn(z.real, axes=dims))
    assert_near(
        taeda.fft.irfftn(ours, s=[7] * len(dims), dim=dims).numpy(),
        np.fft.irfftn(z, s=[7] * len(dims), axes=dims),
    )


def test_threads_give_the_same_bits():
    x = taeda.randn(3, 1 << 16, dtype=taeda.complex64)
    results = []
    for threads in (1, 2):
        before = taeda.get_num_threads()
        taeda.set_num_threads(threads)
        results.append(taeda.view_as_real(taeda.fft.fft(x)))
        taeda.set_num_threads(before)
    assert taeda.equal(*results)


def test_nan_and_infinity_reach_their_own_line_only():
    x = taeda.ones(2, 6)
    x[0, 1] = float("nan")
    y = taeda.fft.rfft(x)
    assert y[0].isnan().all() and not y[1].isnan().any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: taeda.fft.fft(x, 0),
            RuntimeError,
            "Invalid number of data points .0. specified",
        ),
        (lambda x: taeda.fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda x: taeda.fft.fft(x[0, 0]), IndexError, "tensor has no dimensions"),
        (lambda x: taeda.fft.fft(x, dim=2), IndexError, "Dimension out of range"),
        (lambda x: taeda.fft.rfft(x + 0j), RuntimeError, "rfft expects a real input tensor"),
        (lambda x: taeda.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda x: taeda.fft.fftn(x, (1, 2, 3)), RuntimeError, "only has 2 dimensions"),
        (lambda x: taeda.fft.fftn(x, (1,), (0, 1)), RuntimeError, "must have the same length"),
        (lambda x: taeda.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda x: taeda.fft.irfft(x[:, :1]), RuntimeError, "Invalid number of data points"),
        (lambda x: taeda.stft(x, 2), RuntimeError, "return_complex parameter"),
        (lambda x: taeda.stft(x, 9, return_complex=True), RuntimeError, ""),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(taeda.ones(3, 4))


def test_none_is_not_an_empty_list():
    x = taeda.arange(6.0).reshape(2, 3)
    assert taeda.fft.fftn(x, dim=None).real[0, 0] == 15
    assert taeda.equal(taeda.fft.fftn(x, dim=()).real, x)


@pytest.mark.parametrize("n", [4, 8, 10, 12, 15, 16, 24, 45, 60, 64, 96, 100, 256])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_more_lines_than_a_cache_holds(n, precision):
    """Memory is asked for ahead; the last lines are fewer than a group."""
    real, complex_ = lines((1 << 16) // n + 3, n, precision)
    for name, x in [("fft", complex_), ("ifft", complex_), ("rfft", real), ("fft", real)]:
        expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))
        assert_near(getattr(taeda.fft, name)(taeda.from_numpy(x)).numpy(), expected)
    expected = np.fft.irfft(complex_.astype(np.complex128), n)
    assert_near(taeda.fft.irfft(taeda.from_numpy(complex_), n).numpy(), expected)


@pytest.mark.parametrize("n", [2, 5, 16, 64, 100, 1024, 1500])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("norm", ["backward", "ortho"])
def test_neighbours_become_lines(n, precision, norm):
    """Along the first dimension: what is read lies side by side, the results do not."""
    _, z = lines(n, 3 * 16 + 5, precision)
    wide = z.astype(np.complex128)
    for name in ("fft", "ifft"):
        got = getattr(taeda.fft, name)(taeda.from_numpy(z), dim=0, norm=norm)
        assert_near(got.numpy(), getattr(np.fft, name)(wide, axis=0, norm=norm))
        three = taeda.from_numpy(z).expand(2, *z.shape)
        got = getattr(taeda.fft, name)(three, dim=1, norm=norm)
        expected = getattr(np.fft, name)(wide, axis=0, norm=norm)
        assert_near(got.numpy(), np.stack([expected] * 2))
