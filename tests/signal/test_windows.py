"""Windows beside PyTorch's: values, dtypes, errors."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

WINDOWS = {name: [{}] for name in taeda.signal.windows.__all__} | {
    "exponential": [{}, {"tau": 0.5}, {"center": 2.5, "sym": False}, {"center": 0, "sym": False}],
    "gaussian": [{}, {"std": 0.4}],
    "kaiser": [{}, {"beta": 0.0}, {"beta": 3}],
    "general_cosine": [{"a": [0.46, 0.23, 0.31]}, {"a": (1,)}],
    "general_hamming": [{}, {"alpha": 0.7}],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_values_are_pytorchs(name, dtype):
    for options in WINDOWS[name]:
        for points in (0, 1, 2, 3, 10, 257):
            for sym in {options.get("sym", True), False}:
                ours, theirs = (
                    getattr(lib.signal.windows, name)(
                        points, dtype=getattr(lib, dtype), **{**options, "sym": sym}
                    )
                    for lib in (taeda, torch)
                )
                assert str(ours.dtype) == str(theirs.dtype)
                tolerance = 2e-6 if dtype == "float32" else 1e-13
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), tolerance, tolerance)


@pytest.mark.parametrize(
    ("name", "points", "options"),
    [(name, -1, WINDOWS[name][0]) for name in WINDOWS]
    + [
        ("exponential", 3, {"tau": 0}),
        ("exponential", 3, {"center": 1}),
        ("gaussian", 3, {"std": -1}),
        ("kaiser", 3, {"beta": -1}),
        ("general_cosine", 3, {"a": 2}),
        ("general_cosine", 3, {"a": []}),
        ("hann", 3, {"dtype": "int64"}),
        ("hann", 3, {"nothing": 1}),
    ],
)
def test_errors_are_pytorchs(name, points, options):
    errors = []
    for lib in (taeda, torch):
        given = {k: getattr(lib, v) if k == "dtype" else v for k, v in options.items()}
        with pytest.raises((ValueError, TypeError)) as raised:
            getattr(lib.signal.windows, name)(points, **given)
        errors.append((raised.type, str(raised.value).replace("taeda.", "torch.")))
    if "nothing" in options:
        errors = [kind for kind, _ in errors]
    assert errors[0] == errors[1]


def test_gradients_are_asked_for_and_default_dtypes_count():
    taeda.set_default_dtype(taeda.float64)
    try:
        assert taeda.signal.windows.cosine(4).dtype == taeda.float64
    finally:
        taeda.set_default_dtype(taeda.float32)
    assert taeda.signal.windows.cosine(4, requires_grad=True).requires_grad
    assert taeda.signal.windows.kaiser(4, device="meta").device.type == "meta"


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_windows_and_steps_of_any_length(dtype):
    """Beginnings, blocks of 64 and what is left of them."""
    calls = {
        "linspace": lambda lib, n, **of: lib.linspace(-1.7, 3.1, n, **of),
        "hann": lambda lib, n, **of: lib.hann_window(n, **of),
        "hamming": lambda lib, n, **of: lib.hamming_window(n, False, **of),
        "blackman": lambda lib, n, **of: lib.blackman_window(n, **of),
        "bartlett": lambda lib, n, **of: lib.bartlett_window(n, False, **of),
        "kaiser": lambda lib, n, **of: lib.kaiser_window(n, **of),
    }
    if dtype == "bfloat16":
        del calls["linspace"]  # PyTorch adds up steps of that type
    tolerance = {"float32": 2e-6, "float64": 1e-13, "bfloat16": 4e-2}[dtype]
    for name, call in calls.items():
        for n in (0, 1, 2, 3, 9, 63, 64, 65, 130, 1001, 5003):
            ours, theirs = (call(lib, n, dtype=getattr(lib, dtype)) for lib in (taeda, torch))
            ours, theirs = ours.double().numpy(), theirs.double().numpy()
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=f"{name} {n}")
            if name == "linspace":
                np.testing.assert_array_equal(ours, theirs)
