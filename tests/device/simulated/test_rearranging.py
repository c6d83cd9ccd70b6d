"""Flips, triangles and padding on a simulated device, by its kernels."""

import pytest
from tests.device.simulated.by_kernels import FLOATING, NUMBERS, agree, layouts, values

import taeda
from taeda import _C
from taeda.nn import functional as F


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


@pytest.mark.parametrize("dims", [(), (0,), (2,), (0, 2), (-1, -2, 0)])
def test_flips_of_any_layout(dims):
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            agree(lambda x: x.flip(dims), x, what=f"{dtype} {layout}")


def test_flips_of_few_elements():
    for sizes in ((0, 3), (1,), (1, 1, 1)):
        agree(lambda x: x.flip(0), values("float32", sizes))
    assert taeda.tensor(3.0, device="cuda").flip(()).item() == 3


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_any_layout(name):
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (2, 4, 5)).items():
            for diagonal in (0, 1, -2, 9, -9):
                what = f"{dtype} {layout} {diagonal}"
                agree(lambda x, k=diagonal: getattr(x, name)(k), x, what=what)
    for sizes in ((0, 3), (3, 0), (2, 0, 4, 4), (1, 1)):
        agree(lambda x: getattr(x, name)(), values("float32", sizes))
    for diagonal in (2**63 - 1, -(2**63)):
        agree(lambda x, k=diagonal: getattr(x, name)(k), values("int64", (3, 3)))


def test_a_triangle_in_place():
    x = values("float32", (4, 4))
    agree(lambda x: x.clone().tril_(-1), x)
    agree(lambda x: x.clone().t().triu_(), x)


PADS = [(1, 2), (0, 0), (2, 0, 1, 3), (-1, 2), (1, -2, -1, 1), (1, 1, 2, 0, 0, 3), (-2, -3)]


@pytest.mark.parametrize("pad", PADS, ids=str)
def test_padding_by_a_constant(pad):
    for dtype in NUMBERS:
        value = 1 if dtype == "bool" else 3
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            agree(lambda x, v=value: F.pad(x, pad, value=v), x, what=f"{dtype} {layout}")


def test_padding_of_more_dimensions_than_a_kernel_counts():
    x = values("float32", (2, 3, 2, 3))
    for pad in ((1, 1, 1, 1, 1, 1, 1, 1), (0, -1, 2, 0, -1, 1, 1, 0), (0, 0, 0, 0, 0, 0, -1, -1)):
        agree(lambda x, p=pad: F.pad(x, p, value=0.5), x, what=str(pad))
        agree(lambda x, p=pad: F.pad(x.permute(3, 1, 0, 2), p), x, what=str(pad))


def test_padding_of_nothing():
    agree(lambda x: F.pad(x, (1, 2), value=7), values("float32", (0,)))
    agree(lambda x: F.pad(x, (1, 2), value=7), values("float32", (0, 3)))
    agree(lambda x: F.pad(x, (-1, -2)), values("float32", (3,)))


MODES = [
    ("reflect", (2, 3)), ("reflect", (3, 1, 2, 2)), ("reflect", (1, 0, 2, 1, 1, 1)),
    ("replicate", (3, 5)), ("replicate", (-1, 7)), ("replicate", (1, 2, 4, 0)),
    ("replicate", (1, 1, 0, 2, 3, 1)), ("circular", (2, 4)), ("circular", (3, -1)),
    ("circular", (-2, 2, 1, 3)), ("circular", (1, 1, 2, 1, 1, 2)), ("reflect", (2, -2)),
]  # fmt: skip


@pytest.mark.parametrize("mode, pad", MODES, ids=str)
def test_padding_with_its_own_elements(mode, pad):
    sizes = (2, 3, *((3, 4, 5)[-(len(pad) // 2) :]))
    for dtype in [*FLOATING, "int64", "complex64", "complex128"]:
        for layout, x in layouts(dtype, sizes).items():
            agree(lambda x: F.pad(x, pad, mode=mode), x, what=f"{dtype} {layout}")


@pytest.mark.parametrize("mode, pad", MODES, ids=str)
def test_the_gradient_of_padding_gathers(mode, pad):
    sizes = (2, 3, *((3, 4, 5)[-(len(pad) // 2) :]))

    def gradient(x, w):
        x = x.clone().requires_grad_()
        y = F.pad(x, pad, mode=mode)
        return taeda.autograd.grad(y, x, w[: y.numel()].reshape(y.shape))[0]

    small = values("int64", (4000,), 1)  # whose sums no dtype rounds
    for dtype in [*FLOATING, "complex64", "complex128"]:
        agree(gradient, values(dtype, sizes), small.to(getattr(taeda, dtype)), what=dtype)
