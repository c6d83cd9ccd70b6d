"""Reductions and normalizations with a mask beside PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

MASKS = {
    "some": [[True, False, True, True], [False, True, True, False], [True, True, True, True]],
    "row": [True, False, True, False],
    "none in a row": [[True, True, False, True], [False] * 4, [True] * 4],
    "bytes": [[1, 0, 0, 1]],
    "without": None,
}
REDUCTIONS = "sum prod amax amin logsumexp mean var std norm".split()
ONE_DIM = "argmax argmin median cumsum cumprod softmax log_softmax softmin".split()


def data(kind):
    values = np.random.default_rng(3).standard_normal((3, 4)) * 3
    return values.astype(kind) if kind != "bool" else values > 0


def both(call):
    """What the call gives with either library: a NumPy array and its dtype, or an error."""
    results = []
    for lib in (taeda, torch):
        try:
            result = call(lib)
            results.append((result.detach().numpy(), str(result.dtype)))
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
            results.append(type(error))
    return results


def check(call):
    ours, theirs = both(call)
    if isinstance(theirs, type):
        assert isinstance(ours, type)
        assert issubclass(ours, theirs)
        return
    assert ours[1] == theirs[1]
    np.testing.assert_allclose(ours[0], theirs[0], 1e-5, 1e-6)


def given(lib, mask):
    return None if MASKS[mask] is None else lib.tensor(MASKS[mask])


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "bool", "complex64"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, mask, kind):
    for dim in (None, (), 0, -1, (0, 1)):
        for options in ({}, {"keepdim": True}, {"dtype": "float64"}):
            if "dtype" in options and kind == "complex64":
                continue  # PyTorch refuses some, with a sum's warning others

            def call(lib, dim=dim, options=options):
                options = {k: getattr(lib, v) if k == "dtype" else v for k, v in options.items()}
                x = lib.from_numpy(data(kind))
                return getattr(lib.masked, name)(x, dim=dim, mask=given(lib, mask), **options)

            check(call)


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ONE_DIM)
def test_along_one_dimension(name, mask, kind):
    for dim in (0, -1):
        check(
            lambda lib, dim=dim: getattr(lib.masked, name)(
                lib.from_numpy(data(kind)), dim, mask=given(lib, mask)
            )
        )


@pytest.mark.parametrize("mask", MASKS)
def test_norms_and_normalize(mask):
    for order in (1, 2.0, 3, float("inf"), float("-inf"), 0):
        for name in ("norm", "normalize"):
            check(
                lambda lib, name=name, order=order: getattr(lib.masked, name)(
                    lib.from_numpy(data("float32")), order, 1, mask=given(lib, mask)
                )
            )


def test_variances_take_a_correction():
    for options in ({"unbiased": False}, {"correction": 2}, {"unbiased": True, "correction": 1}):
        check(
            lambda lib, o=options: lib.masked.var(
                lib.from_numpy(data("float64")), 1, mask=given(lib, "some"), **o
            )
        )


def test_logaddexp_masks_both():
    check(
        lambda lib: lib.masked.logaddexp(
            lib.from_numpy(data("float32")),
            lib.from_numpy(data("float32")).flip(0),
            input_mask=given(lib, "some"),
            other_mask=given(lib, "row"),
        )
    )


def test_odd_arguments_are_refused():
    x = taeda.ones(2)
    with pytest.raises(IndexError, match="broadcastable mask"):
        taeda.masked.sum(x, mask=taeda.ones(1, 2, dtype=taeda.bool))
    with pytest.raises(RuntimeError, match="appears multiple times"):
        taeda.masked.sum(x, (0, 0))
    with pytest.raises(IndexError, match="out of range"):
        taeda.masked.amax(x, 1)
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        taeda.masked.mean(taeda.ones(2, dtype=taeda.int64))


@pytest.mark.parametrize("name", [n for n in REDUCTIONS + ONE_DIM if "arg" not in n])
def test_gradients(name):
    gradients = []
    for lib in (taeda, torch):
        x = lib.from_numpy(data("float64")).requires_grad_()
        result = getattr(lib.masked, name)(x, dim=1, mask=given(lib, "some"))
        weight = lib.arange(1.0, result.numel() + 1, dtype=lib.float64).reshape(result.shape)
        product = lib.where(result.isfinite(), result * weight, 0)
        product.sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, 1e-9, 1e-12)
