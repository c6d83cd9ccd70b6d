"""softmax, normalisations, scans and sorting on a simulated device, by kernels, with gradients."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import (
    FLOATING,
    NUMBERS,
    REAL,
    agree,
    layouts,
    values,
    with_gradients,
)

import taeda
import taeda.nn.functional as F
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


@pytest.mark.parametrize("call", [F.softmax, F.log_softmax], ids=["softmax", "log_softmax"])
def test_softmax(call):
    for dtype in FLOATING:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                what = f"{dtype} {layout} {dim}"
                agree(lambda t, d=dim: with_gradients(lambda t: call(t, d), t), x, what=what)
    for n in (31, 33, 1025, 5000):
        x = values("float32", (2, n))
        agree(lambda t: with_gradients(lambda t: call(t, 1), t), x, what=f"{n}")
    agree(lambda t: call(t, 0, dtype=taeda.float32), values("float16", (5, 3)))


def test_softmax_of_infinities():
    inf = float("inf")
    x = taeda.tensor([[1.0, inf], [-inf, -inf], [float("nan"), 0.0], [-inf, 2.0]])
    agree(lambda t: t.softmax(1), x)
    agree(lambda t: t.log_softmax(1), x)


@pytest.mark.parametrize("shape", [(4, 7), (3, 2, 40), (2, 1500)])
def test_layer_norm(shape):
    for dtype in FLOATING:
        x = values(dtype, shape)
        w, b = values(dtype, shape[-1:], 1), values(dtype, shape[-1:], 2)
        agree(lambda x: with_gradients(lambda x: F.layer_norm(x, shape[-1:]), x), x, what=dtype)
        agree(
            lambda x, w, b: with_gradients(
                lambda *t: F.layer_norm(t[0], shape[-1:], *t[1:]), x, w, b
            ),
            x,
            w,
            b,
            what=f"{dtype} with weights",
        )


def test_layer_norm_of_many_rows():
    for dtype in ("float32", "float64"):
        x, w, b = values(dtype, (3000, 8)), values(dtype, (8,), 1), values(dtype, (8,), 2)
        agree(
            lambda x, w, b: with_gradients(lambda *t: F.layer_norm(t[0], (8,), *t[1:]), x, w, b),
            x,
            w,
            b,
        )


def test_group_norm():
    for dtype in FLOATING:
        x, w, b = values(dtype, (3, 6, 5)), values(dtype, (6,), 1), values(dtype, (6,), 2)
        for groups in (1, 2, 6):
            agree(
                lambda x, w, b, g=groups: with_gradients(
                    lambda x, w, b: F.group_norm(x, g, w, b), x, w, b
                ),
                x,
                w,
                b,
                what=f"{dtype} {groups}",
            )


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training):
    for dtype in ("float32", "float64"):
        for x in (values(dtype, (4, 3)), values(dtype, (2, 3, 5, 4))):
            stacked = [x, x.contiguous(memory_format=taeda.channels_last)] if x.dim() == 4 else [x]
            mean, var = values(dtype, (3,), 1), values(dtype, (3,), 2).abs() + 0.5
            w, b = values(dtype, (3,), 3), values(dtype, (3,), 4)
            for laid_out in stacked:

                def call(x, w, b, mean=mean, var=var):
                    running = mean.to(x.device), var.to(x.device)
                    return F.batch_norm(x, *running, w, b, training=training, momentum=0.0)

                agree(
                    lambda *t: with_gradients(call, *t), laid_out, w, b, what=f"{dtype} {x.dim()}"
                )


def test_running_logarithms_of_sums():
    for dtype in [*FLOATING, "complex64", "complex128"]:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                agree(
                    lambda t, d=dim: with_gradients(lambda t: taeda.logcumsumexp(t, d), t),
                    x,
                    what=f"{dtype} {layout} {dim}",
                )
    for n in (31, 33, 300):
        for dtype in ("float16", "float32", "float64", "complex64"):
            x = values(dtype, (2, n)) * 4
            agree(lambda t: with_gradients(lambda t: taeda.logcumsumexp(t, 1), t), x, what=f"{n}")
    inf = float("inf")
    x = taeda.tensor([[-inf, -inf, 1, 2, -inf], [1, inf, 2, -inf, inf], [0, 1, float("nan"), 1, 2]])
    agree(lambda t: taeda.logcumsumexp(t, 1), x)


def test_gradients_and_tangents_of_running_products():
    for dtype in [*FLOATING, "complex64", "complex128"]:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                agree(
                    lambda t, d=dim: with_gradients(lambda t: taeda.cumprod(t, d), t),
                    x,
                    what=f"{dtype} {layout} {dim}",
                )
    for n in (31, 33, 300):
        for dtype in ("float64", "complex64", "complex128"):
            x = values(dtype, (2, n)) * 0.01 + 1
            x[0, 7] = 0.0
            agree(lambda t: with_gradients(lambda t: taeda.cumprod(t, 1), t), x, what=f"{n}")
            for call in (taeda.cumprod, taeda.logcumsumexp):
                agree(
                    lambda t, f=call: taeda.func.jvp(lambda t: f(t, 1), (t,), (t * 2 - 1,)),
                    x,
                    what=f"{n} {dtype} tangent",
                )
    scalar = taeda.tensor(3.0, dtype=taeda.float64)
    agree(lambda t: with_gradients(lambda t: taeda.cumprod(t.squeeze(0), 0), t), scalar.reshape(1))


def test_products_of_a_part_of_a_row_may_be_too_large_for_float():
    x = taeda.tensor([1.0] + 7 * [1e30], device="cuda", requires_grad=True)
    first = taeda.tensor([1.0] + 7 * [0.0], device="cuda")
    (gx,) = taeda.autograd.grad(x.cumprod(0), x, first)
    assert gx.tolist() == first.tolist()  # a sum of products with 0, but for that of no element
    x = taeda.tensor([1e-30, 1e30, 1e30, 1e30, 1e-30, 1e-30], device="cuda")
    t = taeda.tensor([0.0, 0, 0, 0, 0, 1], device="cuda")
    _, tangent = taeda.func.jvp(lambda x: x.cumprod(0), (x,), (t,))
    np.testing.assert_allclose(tangent.tolist(), [0, 0, 0, 0, 0, 1e30], rtol=1e-5)


RUNNING = {
    "cumsum": (taeda.cumsum, NUMBERS),
    "cumprod": (taeda.cumprod, NUMBERS),
    "cummax": (taeda.cummax, REAL),
    "cummin": (taeda.cummin, REAL),
}


@pytest.mark.parametrize("name", RUNNING)
def test_scans(name):
    call, dtypes = RUNNING[name]
    for dtype in dtypes:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                agree(lambda t, d=dim: call(t, d), x, what=f"{name} {dtype} {layout} {dim}")
    for n in (31, 33, 1025, 3000):
        x = taeda.ones(2, n) if name == "cumprod" else values("float32", (2, n))
        agree(lambda t: call(t, 1), x, what=f"{name} {n}")
        agree(lambda t: call(t, 0), x, what=f"{name} {n} columns")


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending):
    for dtype in REAL:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                agree(
                    lambda t, d=dim: t.sort(dim=d, descending=descending, stable=True),
                    x,
                    what=f"{dtype} {layout} {dim}",
                )
    for n in (1, 2, 63, 1000):
        agree(lambda t: t.sort(descending=descending, stable=True), values("int32", (2, n)))
    special = taeda.tensor([1.0, float("nan"), -0.0, 0.0, float("inf"), -float("inf"), -2.0])
    agree(lambda t: t.sort(descending=descending, stable=True), special)


def test_topk():
    x = taeda.randperm(300).reshape(3, 100)
    for dtype in ("int64", "float32", "float16"):
        for k in (1, 7, 100):
            for largest in (False, True):
                agree(
                    lambda t, k=k, m=largest: t.topk(k, dim=1, largest=m),
                    x.to(getattr(taeda, dtype)),
                    what=f"{dtype} {k}",
                )
    agree(lambda t: t.topk(2, dim=0), x)
