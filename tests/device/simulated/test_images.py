"""Resizing, sampling and unfolding images on a simulated device: values are the CPU's."""

import itertools

import pytest
from tests.device.simulated.by_kernels import FLOATING, agree, same, values, with_gradients

import taeda
import taeda.nn.functional as F
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


SIZES = {1: (2, 3, 9), 2: (1, 3, 6, 7), 3: (1, 2, 3, 4, 5)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_resizing_to_sizes(n):
    for dtype, mode in itertools.product(FLOATING, ("nearest", "nearest-exact", LINEAR[n])):
        for size, aligned in itertools.product((1, 4, 11), (None, True)):
            if aligned and mode.startswith("nearest"):
                continue
            agree(
                lambda x, m=mode, s=size, a=aligned: with_gradients(
                    lambda x: F.interpolate(x, s, mode=m, align_corners=a), x
                ),
                values(dtype, SIZES[n]),
                what=f"{dtype} {mode} {size} {aligned}",
            )


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing_by_scales(mode):
    for scale in (0.3, 1.7, 2.0, (2.5, 0.6)):
        for recompute in (False, True):
            if mode == "area" and recompute:
                continue
            agree(
                lambda x, s=scale, r=recompute: with_gradients(
                    lambda x: F.interpolate(
                        x, scale_factor=s, mode=mode, recompute_scale_factor=r or None
                    ),
                    x,
                ),
                values("float32", SIZES[2]),
                what=f"{scale} {recompute}",
            )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_filters_of_images(mode, antialias):
    for dtype, size in itertools.product(FLOATING, ((2, 3), (6, 7), (13, 5), (1, 1))):
        for aligned in (False, True):
            agree(
                lambda x, s=size, a=aligned: with_gradients(
                    lambda x: F.interpolate(x, s, mode=mode, align_corners=a, antialias=antialias),
                    x,
                ),
                values(dtype, SIZES[2]),
                what=f"{dtype} {size} {aligned}",
            )


def test_images_with_channels_last():
    x = values("float32", SIZES[2]).contiguous(memory_format=taeda.channels_last)
    for mode in ("nearest", "bilinear", "bicubic"):
        agree(lambda x, m=mode: with_gradients(lambda x: F.interpolate(x, (4, 9), mode=m), x), x)


def test_nearest_elements_of_all_types():
    for dtype in [*FLOATING, "uint8"]:
        agree(lambda x: F.interpolate(x, (4, 9)), values(dtype, SIZES[2]), what=dtype)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_bytes_are_weighed_in_fixed_point(mode, antialias):
    x = (values("int64", (2, 3, 9, 8)) * 51 % 256).to(taeda.uint8)
    for size in ((5, 4), (9, 8), (20, 17), (3, 16)):
        agree(
            lambda x, s=size: F.interpolate(x, s, mode=mode, antialias=antialias),
            x,
            what=f"{size}",
        )


def test_empty_images():
    x = taeda.zeros(0, 2, 3, 4)
    agree(lambda x: with_gradients(lambda x: F.interpolate(x, (2, 2), mode="bilinear"), x), x)
    agree(lambda x: F.unfold(x, 2), x)


MODES = [("bilinear", False), ("bilinear", True), ("nearest", False), ("bicubic", True)]


def sampled_gradient(x, grid, gy):
    x = x.detach().requires_grad_()
    y = F.grid_sample(x, grid, align_corners=False)
    return taeda.autograd.grad(y, x, gy)[0]


def test_gradients_of_images_by_one_warp_a_plane_or_several(deterministic, bits):
    # 1 and 6 planes are shared by warps, 600 are not.
    for dtype, planes in itertools.product(FLOATING, ((1, 1), (2, 3), (200, 3))):
        sizes = (11, 13) if planes[0] < 3 else (2, 3)
        x, gy = values(dtype, (*planes, *sizes)), values(dtype, (*planes, 9, 8), 1)
        grid = values(dtype, (planes[0], 9, 8, 2), 2)
        expected = sampled_gradient(x, grid, gy)
        found = bits(lambda a=x, g=grid, w=gy: sampled_gradient(a.cuda(), g.cuda(), w.cuda()))
        same(found.cuda(), expected, f"{dtype} {planes}")
        taeda.use_deterministic_algorithms(False)  # those of few planes are then added atomically
        agree(sampled_gradient, x, grid, gy, what=f"{dtype} {planes}")
        taeda.use_deterministic_algorithms(True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_at_positions(padding):
    for dtype, (mode, aligned) in itertools.product(FLOATING, MODES):
        x, grid = values(dtype, (2, 3, 5, 6)), values(dtype, (2, 7, 6, 2), 1)
        agree(
            lambda x, g, m=mode, a=aligned: with_gradients(
                lambda x, g: F.grid_sample(x, g, m, padding, a), x, g
            ),
            x,
            grid,
            what=f"{dtype} {mode} {aligned}",
        )
    x, grid = values("float32", (1, 2, 3, 4, 5)), values("float32", (1, 3, 3, 4, 3), 1)
    for mode in ("bilinear", "nearest"):
        agree(
            lambda x, g, m=mode: with_gradients(
                lambda x, g: F.grid_sample(x, g, m, padding, False), x, g
            ),
            x,
            grid,
            what=f"volume {mode}",
        )


def test_positions_far_away_or_not_finite():
    nan, inf = float("nan"), float("inf")
    grid = taeda.tensor([[[[1e20, 0.0], [nan, 0.1], [-inf, 0.2], [inf, -3.0], [-1.0, 1.0]]]])
    x = values("float32", (1, 2, 4, 4))
    agree(lambda x, g: F.grid_sample(x, g, "bilinear", "border", False), x, grid)
    for padding in ("zeros", "border"):
        agree(lambda x, g, p=padding: F.grid_sample(x, g, "bicubic", p, False), x, grid)
        agree(lambda x, g, p=padding: F.grid_sample(x, g, "nearest", p, False), x, grid)
    read = F.grid_sample(x.to("cuda"), grid.to("cuda"), align_corners=False)
    assert read[0, :, 0, :4].tolist() == [[0] * 4] * 2  # as PyTorch's on CUDA
    agree(
        lambda x, g: with_gradients(lambda x, g: F.grid_sample(x, g, align_corners=False), x, g),
        x,
        grid[:, :, :0],
    )


@pytest.mark.parametrize(
    "window", [(2, 1, 0, 1), (3, 1, 1, 2), ((2, 3), (2, 1), (1, 0), (1, 2)), (1, 1, 0, 3)]
)
def test_windows_as_columns(window):
    for dtype in ("bool", *FLOATING, "complex64", "complex128"):
        x = values(dtype, (2, 3, 7, 8))
        columns = F.unfold(x, *window)
        what = f"{dtype}"
        if dtype == "bool":
            agree(lambda x: F.unfold(x, *window), x, what=what)
            agree(lambda x: F.fold(x, (7, 8), *window), columns, what=what)
            continue
        agree(lambda x: with_gradients(lambda x: F.unfold(x, *window), x), x, what=what)
        agree(lambda x: with_gradients(lambda x: F.fold(x, (7, 8), *window), x), columns, what=what)
    agree(lambda x: F.unfold(x, *window), values("float32", (3, 8, 7)).transpose(1, 2))
