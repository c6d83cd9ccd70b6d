"""torch.fft, stft and istft beside PyTorch's, values and gradients."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


def array(shape, dtype):
    values = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(dtype)


def run(library, call, values):
    leaf = library.from_numpy(values.copy()).requires_grad_()
    result = call(library, leaf)
    weights = library.arange(1, result.numel() + 1).reshape(result.shape).to(result.real.dtype)
    score = (result.abs() ** 2 * weights).sum()
    (grad,) = library.autograd.grad(score, leaf, create_graph=True)
    (second,) = library.autograd.grad((grad.abs() ** 2).sum(), leaf)
    return result, grad, second


def compare(call, values):
    tolerance = 2e-5 if values.dtype in (np.float32, np.complex64) else 1e-11
    ours, theirs = run(taeda, call, values), run(torch, call, values)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == str(b.dtype)
        a, b = (t.detach().resolve_conj().numpy() for t in (a, b))
        np.testing.assert_allclose(a, b, tolerance, tolerance * max(1.0, np.abs(b).max()))


ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = [
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
    "hfftn",
    "ihfftn",
]
REAL_ONLY = ("rfft", "ihfft", "rfft2", "rfftn", "ihfftn")


def dtypes(name):
    return (
        [np.float64, np.float32] if name in REAL_ONLY else [np.float64, np.complex64, np.complex128]
    )


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_transforms_of_one_dimension(name, norm):
    for dtype in dtypes(name):
        for n, dim in ((None, -1), (5, -1), (9, 0), (4, 1), (1, 0)):
            compare(
                lambda lib, x, n=n, dim=dim: getattr(lib.fft, name)(x, n, dim, norm),
                array((3, 6), dtype),
            )


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("name", SEVERAL)
def test_transforms_of_several_dimensions(name, norm):
    for dtype in dtypes(name):
        for options in ({}, {"s": (4, 5)}, {"dim": (0, 2)}, {"s": (2, 7), "dim": (1, -3)}):
            compare(
                lambda lib, x, o=options: getattr(lib.fft, name)(x, **o, norm=norm),
                array((3, 4, 6), dtype),
            )


def test_integers_become_floats():
    for name in ("fft", "rfft", "irfft"):
        ours = getattr(taeda.fft, name)(taeda.arange(6))
        theirs = getattr(torch.fft, name)(torch.arange(6))
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-5, 1e-5)


def test_out_is_written():
    out = taeda.empty(0, dtype=taeda.complex64)
    x = taeda.randn(6)
    assert taeda.fft.fft(x, out=out) is out and taeda.equal(out, taeda.fft.fft(x))


def test_vmap_adds_a_dimension():
    x = taeda.randn(4, 3, 6, dtype=taeda.float64)
    for name in ("fft", "rfft", "irfft"):
        transform = getattr(taeda.fft, name)
        each = taeda.vmap(lambda row, t=transform: t(row, dim=0), in_dims=1, out_dims=1)(x)
        assert taeda.allclose(each, transform(x, dim=0))


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts(n):
    for name in ("fftfreq", "rfftfreq"):
        for options in ({}, {"d": 0.3}, {"dtype": "float64"}):
            ours, theirs = (
                getattr(lib.fft, name)(
                    n, **{k: getattr(lib, v) if k == "dtype" else v for k, v in options.items()}
                )
                for lib in (taeda, torch)
            )
            assert str(ours.dtype) == str(theirs.dtype)
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    values = array((n, 4, 3), np.float32)
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (0, 2)):
            ours, theirs = (
                getattr(lib.fft, name)(lib.from_numpy(values), dim).numpy()
                for lib in (taeda, torch)
            )
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.fft.fft(lib.ones(3), norm="both"),
        lambda lib: lib.fft.fft(lib.ones(3), 0),
        lambda lib: lib.fft.fft(lib.ones(3), dim=1),
        lambda lib: lib.fft.rfft(lib.ones(3, dtype=lib.complex64)),
        lambda lib: lib.fft.ihfft(lib.ones(3, dtype=lib.complex64)),
        lambda lib: lib.fft.fftn(lib.ones(3, 3), dim=(0, 0)),
        lambda lib: lib.fft.fftn(lib.ones(3, 3), s=(3,), dim=(0, 1)),
        lambda lib: lib.fft.fftn(lib.ones(3), s=(3, 3)),
        lambda lib: lib.fft.fft(lib.ones(3, dtype=lib.float16)),
        lambda lib: lib.stft(lib.ones(8), 4),
        lambda lib: lib.stft(lib.ones(8), 4, window=lib.ones(3), return_complex=True),
        lambda lib: lib.stft(lib.ones(8), 4, hop_length=0, return_complex=True),
        lambda lib: lib.stft(lib.ones(8), 4, win_length=5, return_complex=True),
        lambda lib: lib.istft(lib.ones(3, 5), 4),
        lambda lib: lib.istft(lib.ones(4, 5, dtype=lib.complex64), 6, onesided=False),
    ],
)
def test_what_pytorch_refuses_is_refused(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value)):
        call(taeda)


OPTIONS = [
    {},
    {"hop_length": 3},
    {"win_length": 6},
    {"center": False, "hop_length": 2},
    {"normalized": True},
    {"onesided": False},
    {"pad_mode": "constant"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(50,), (2, 50)])
def test_stft(options, shape):
    window = RNG.random(options.get("win_length", 8)) + 0.5

    def call(lib, x):
        taper = lib.from_numpy(window).to(x.dtype)
        return x.stft(8, window=taper, return_complex=True, **options)

    compare(call, array(shape, np.float64))
    compare(lambda lib, x: lib.stft(x, 8, return_complex=True, **options), array(shape, np.float32))
    signal = array(shape, np.float32)
    ours, theirs = (
        lib.stft(lib.from_numpy(signal), 8, return_complex=False, **options)
        for lib in (taeda, torch)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-5, 1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"hop_length": 3}, {"length": 41}, {"normalized": True}, {"center": False}]
)
def test_istft_gives_the_signal_again(options):
    window = RNG.random(8) + 0.5
    forward = {key: value for key, value in options.items() if key != "length"}

    def call(lib, x):
        taper = lib.from_numpy(window)
        spectra = lib.stft(x, 8, window=taper, return_complex=True, **forward)
        return lib.istft(spectra * 2, 8, window=taper, **options)

    compare(call, array((2, 50), np.float64))
    signal = array((50,), np.float64)
    again = call(taeda, taeda.from_numpy(signal)).numpy() / 2
    np.testing.assert_allclose(again, signal[: len(again)], 1e-10, 1e-10)
