"""Dtypes beside which PyTorch's results are not what one would guess: sums of floats as integers,
bool factors, losses of integers, indices from NumPy, lists beside tensors without dimensions."""

import math

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

BOTH = (torch, taeda)
ODD = [0.5, -0.25, 300.0, -300.0, 70000.0, 3e9, -3e9, 5e9, 1e19, math.nan, math.inf]


def plain(value):
    if hasattr(value, "tolist"):
        return str(value.dtype).split(".")[1], repr(value.detach().tolist())
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def outcome(call, lib):
    """Values and dtypes, or the exception's class."""
    try:
        return plain(call(lib))
    except Exception as error:
        return type(error)


def same(call):
    theirs, ours = (outcome(call, lib) for lib in BOTH)
    assert ours == theirs


# --- sums of floats as integers ---

INTEGERS = ["int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
def test_floats_become_integers_before_they_are_added(name, source, dtype):
    for value in ODD:

        def call(lib, value=value):
            x = lib.tensor([[value, 1.0, 2.0], [1.0, value, 1.0]], dtype=getattr(lib, source))
            as_type = getattr(lib, dtype)
            whole = [] if "cum" in name else [getattr(x, name)(dtype=as_type)]
            return [*whole, *(getattr(x, name)(d, dtype=as_type) for d in (0, 1))]

        same(call)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_nan_of_half_precision_is_no_number_either(dtype):
    same(lambda t: t.tensor([1.0, math.nan, 2.5]).half().nansum(dtype=getattr(t, dtype)))


def test_nansum_to_integers_has_no_derivative_and_a_shape_on_meta():
    x = taeda.ones(2, 3, requires_grad=True)
    assert not x.nansum(dtype=taeda.int64).requires_grad
    y = taeda.ones(2, 3, device="meta").nansum(1, dtype=taeda.int64)
    assert (y.shape, y.dtype) == ((2,), taeda.int64)


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64", "bool"])
def test_a_mean_has_no_integer_dtype(dtype):
    same(lambda t: t.nanmean(t.tensor([1.0, math.nan, 3.0]), dtype=getattr(t, dtype)).real)


# --- bool factors ---


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("name", ["add", "sub", "rsub", "add_", "sub_"])
@pytest.mark.parametrize("alpha", [True, False, 1, 2])
def test_a_bool_alpha_is_of_bools(name, alpha, dtype):
    def call(lib, other):
        x = lib.tensor([1, 0], dtype=getattr(lib, dtype))
        return getattr(x if name[-1] == "_" else lib, name)(
            *(() if name[-1] == "_" else (x,)), other(lib, x), alpha=alpha
        )

    same(lambda lib: call(lib, lambda _, x: x.clone()))
    same(lambda lib: call(lib, lambda _, x: 2))


# --- losses ---


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float64"])
def test_hinge_losses_of_integers_are_integers(dtype, reduction):
    def call(lib, margin):
        x = lib.tensor([1, 2, 3]).to(getattr(lib, dtype))
        loss = lib.nn.functional.hinge_embedding_loss
        return loss(x, lib.tensor([1, -1, 1]), margin=margin, reduction=reduction)

    for margin in (1.0, 2.5, 4.0):
        same(lambda lib, margin=margin: call(lib, margin))


@pytest.mark.parametrize("dtype", ["complex64", "float64", "float16", "int64", "bool"])
@pytest.mark.parametrize("weight", ["weight", "pos_weight"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_weights_do_not_change_the_dtype_of_a_loss(dtype, weight, reduction):
    names = ["binary_cross_entropy_with_logits"]
    names += ["binary_cross_entropy"] if weight == "weight" else []
    for name in names:

        def call(lib, name=name):
            x = lib.tensor([0.25, 0.5], requires_grad=True)
            options = {weight: lib.tensor([1, 2]).to(getattr(lib, dtype)), "reduction": reduction}
            y = getattr(lib.nn.functional, name)(x, lib.tensor([0.0, 1.0]), **options)
            (gx,) = lib.autograd.grad(y.sum(), x)
            return [lib.round(y, decimals=5), lib.round(gx, decimals=5)]

        same(call)


# --- indices from NumPy ---


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint16", "float32", "float64"])
def test_arrays_are_indices_as_lists_are(dtype):
    for values in ([1, 0], [], 1, [[1], [0]]):
        index = np.array(values, dtype=dtype)
        same(lambda t, i=index: t.arange(6).view(3, 2)[i])
        same(lambda t, i=index: t.arange(6).view(3, 2)[:, i])

        def write(lib, index=index):
            x = lib.zeros(3)
            x[index] = 1
            return x

        same(write)
    same(lambda t: t.arange(3)[np.array([0.5, 1.9])])
    same(lambda t: t.arange(3)[np.array([True, False, True])])
    same(lambda t: t.arange(3)[np.array([3.0])])


# --- lists beside a tensor without dimensions ---


@pytest.mark.parametrize("name", "add sub mul div maximum minimum clamp_max clamp_min pow".split())
def test_a_tensor_beside_a_list_is_a_number(name):
    def call(lib, suffix="", dtype="float64"):
        x = [lib.tensor(1.0), lib.ones(2)]
        made = getattr(lib, f"_foreach_{name}{suffix}")(x, lib.tensor(2, dtype=getattr(lib, dtype)))
        return x if suffix else list(made)

    same(call)
    same(lambda lib: call(lib, "_"))
    same(lambda lib: call(lib, dtype="int64"))
    same(lambda lib: list(lib._foreach_pow(lib.tensor(2.0).double(), [lib.tensor(3.0)])))


# --- numbers and tensors that fill ---


@pytest.mark.parametrize("dtype", [*INTEGERS, "uint16", "uint64", "float32"])
def test_a_tensor_that_fills_another_is_converted_and_a_number_has_to_fit(dtype):
    for value in (300, -2, -2.5, 70000.0, math.nan, 1 + 2j):
        same(lambda t, v=value: t.zeros(2, dtype=getattr(t, dtype)).fill_(t.tensor(v)))
        same(lambda t, v=value: t.fill(t.zeros(2, dtype=getattr(t, dtype)), t.tensor(v)))
        if dtype != "uint64":  # to which negative numbers are converted
            same(lambda t, v=value: t.zeros(2, dtype=getattr(t, dtype)).fill_(v))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float32", "complex64"])
def test_what_drops_all_keeps_the_dtype(dtype):
    for name in ("dropout", "dropout_"):
        same(lambda t, n=name: getattr(t, n)(t.ones(2).to(getattr(t, dtype)), 1.0, True))


# --- bins ---


def test_weights_of_a_histogram_are_as_many_as_elements():
    for shape in ((3,), (3, 1), (1, 3), (4,), ()):

        def call(lib, shape=shape, bins=3):
            return list(lib.histogram(lib.tensor([1.0, 2.0, 3.0]), bins, weight=lib.ones(shape)))

        same(call)
        same(lambda lib, call=call: call(lib, bins=lib.tensor([0.0, 2.0, 4.0])))


def test_points_without_coordinates_are_in_no_bin():
    for shape in ((3, 0), (0, 0), (0, 3)):
        for bins in (2, [], [2, 2, 2]):
            for density in (False, True):
                same(
                    lambda t, s=shape, b=bins, d=density: list(
                        t.histogramdd(t.zeros(s), b, density=d)
                    )
                )


# --- others ---


@pytest.mark.parametrize("padding", [(1, 1), (-1,), (1,), (0,), (2,)])
@pytest.mark.parametrize("transposed", [True, False])
def test_output_padding_is_checked_of_every_convolution(padding, transposed):
    def call(lib):
        x, w = lib.ones(1, 1, 4), lib.ones(1, 1, 2)
        return lib.convolution(x, w, None, [2], [0], [1], transposed, list(padding), 1)

    same(call)


@pytest.mark.parametrize("dtypes", ["float32 float64 float32", "float32 float32 int64"])
@pytest.mark.parametrize("sizes", [(2, 3), (0, 3), (2, 0)])
@pytest.mark.parametrize("dims", [[], [0], [0, 1]])
def test_trilinear_has_the_first_dtype(dtypes, sizes, dims):
    def call(lib):
        parts = [lib.ones(sizes, dtype=getattr(lib, d)) for d in dtypes.split()]
        return lib._trilinear(*parts, [], [], [], dims)

    same(call)


@pytest.mark.parametrize("name", "alpha_dropout feature_alpha_dropout dropout1d dropout2d".split())
def test_samples_that_share_a_tensor_drop_different_elements(name):
    taeda.manual_seed(0)
    x = taeda.ones(2, 50, 3) if name == "dropout1d" else taeda.ones(2, 50, 3, 3)
    drop = getattr(taeda.nn.functional, name)
    made = taeda.vmap(lambda a: drop(x, 0.5, True) + 0 * a, randomness="different")(taeda.ones(2))
    assert made.shape == (2, *x.shape) and not taeda.equal(made[0], made[1])
    made = taeda.vmap(lambda a: drop(x, 0.5, True) + 0 * a, randomness="same")(taeda.ones(2))
    assert taeda.equal(made[0], made[1])


def test_a_matrix_that_stands_for_several_has_one_rank():
    for driver in ("gelsd", "gelsy", "gelss", "gels"):

        def call(lib, driver=driver):
            a = lib.tensor([[[1.0, 2.0], [3.0, 5.0], [1.0, 1.0]]])
            found = lib.linalg.lstsq(a, lib.ones(4, 3, 2), driver=driver)
            return [tuple(found[i].shape) for i in range(4)]

        same(call)
