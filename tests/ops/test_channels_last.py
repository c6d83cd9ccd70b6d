"""The channels-last layout through pooling, resizing, padding and group norm: strides and values as
PyTorch's, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda

Call = Callable[[Any, Any], Any]  # of a framework's nn.functional and an image (2, 4, 6, 8)

IMAGES: dict[str, Call] = {
    "max_pool2d": lambda F, x: F.max_pool2d(x, 2),
    "max_pool2d, padded": lambda F, x: F.max_pool2d(x, (3, 2), 2, 1),
    "max_pool2d, ceil": lambda F, x: F.max_pool2d(x, 3, 2, 0, 1, True),
    "max_pool2d, dilated": lambda F, x: F.max_pool2d(x, 2, 1, 1, 2),
    "max_pool2d, indices": lambda F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "avg_pool2d": lambda F, x: F.avg_pool2d(x, 2),
    "avg_pool2d, padded": lambda F, x: F.avg_pool2d(x, 3, (2, 1), 1, True, False),
    "avg_pool2d, divisor": lambda F, x: F.avg_pool2d(x, 3, 2, 1, False, True, 5),
    "adaptive_avg_pool2d": lambda F, x: F.adaptive_avg_pool2d(x, (4, 3)),
    "adaptive_max_pool2d": lambda F, x: F.adaptive_max_pool2d(x, (4, 3), True),
    "nearest": lambda F, x: F.interpolate(x, scale_factor=2),
    "nearest-exact": lambda F, x: F.interpolate(x, size=(9, 3), mode="nearest-exact"),
    "bilinear": lambda F, x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "bilinear, corners": lambda F, x: F.interpolate(
        x, size=(3, 11), mode="bilinear", align_corners=True
    ),
    "bilinear, antialiased": lambda F, x: F.interpolate(
        x, size=(3, 3), mode="bilinear", antialias=True
    ),
    "area": lambda F, x: F.interpolate(x, size=(3, 3), mode="area"),
    "pad": lambda F, x: F.pad(x, (1, 2, 0, 3), value=0.5),
    "pad, channels": lambda F, x: F.pad(x, (1, -1, 0, 3, 2, 1)),
    "pad, reflect": lambda F, x: F.pad(x, (1, 2, 0, 3), mode="reflect"),
    "pad, replicate": lambda F, x: F.pad(x, (1, 2, 0, 3), mode="replicate"),
    "pad, circular": lambda F, x: F.pad(x, (1, 2, 0, 3), mode="circular"),
    "group_norm": lambda F, x: F.group_norm(x, 2, x[0, :, 0, 0], x[1, :, 0, 0]),
}
VOLUMES: dict[str, Call] = {  # (2, 4, 3, 4, 5)
    "max_pool3d": lambda F, x: F.max_pool3d(x, 2),
    "avg_pool3d": lambda F, x: F.avg_pool3d(x, 2),
    "adaptive_avg_pool3d": lambda F, x: F.adaptive_avg_pool3d(x, (2, 3, 2)),
    "nearest": lambda F, x: F.interpolate(x, scale_factor=2),
    "trilinear": lambda F, x: F.interpolate(x, scale_factor=2, mode="trilinear"),
    "pad": lambda F, x: F.pad(x, (1, 1, 1, 1, 1, 1)),
    "pad, replicate": lambda F, x: F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate"),
    "group_norm": lambda F, x: F.group_norm(x, 2),
}
SAME_GRADIENT_LAYOUT = [n for n in IMAGES if n != "pad, circular"]


def run(framework: Any, call: Call, sizes: tuple[int, ...], dtype: str) -> tuple[list[Any], Any]:
    values = np.random.default_rng(5).normal(size=sizes).astype("float32")
    form = framework.channels_last if len(sizes) == 4 else framework.channels_last_3d
    x = framework.tensor(values).to(getattr(framework, dtype)).contiguous(memory_format=form)
    x.requires_grad_()
    results = call(framework.nn.functional, x)
    results = list(results) if isinstance(results, tuple) else [results]
    weights = np.random.default_rng(6).normal(size=tuple(results[0].shape)).astype("float32")
    gy = framework.tensor(weights).to(results[0].dtype)
    if results[0].stride() != gy.stride():
        gy = gy.contiguous(memory_format=form)
    results[0].backward(gy)
    return results, x.grad


def check(call: Call, sizes: tuple[int, ...], dtype: str, gradient_layout: bool) -> None:
    torch = pytest.importorskip("torch")
    (mine, my_grad), (theirs, their_grad) = (run(f, call, sizes, dtype) for f in (taeda, torch))
    tolerance = 1e-5 if dtype == "float32" else 3e-2
    for a, b in zip(mine, theirs, strict=True):
        assert a.stride() == b.stride()
        a, b = a.detach().float().numpy(), b.detach().float().numpy()
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    a, b = my_grad.float().numpy(), their_grad.float().numpy()
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    if gradient_layout:
        assert my_grad.stride() == their_grad.stride()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, dtype: str) -> None:
    if dtype == "bfloat16" and "antialiased" in name:
        pytest.skip("PyTorch has none")
    check(IMAGES[name], (2, 4, 6, 8), dtype, name in SAME_GRADIENT_LAYOUT)


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name: str) -> None:
    check(VOLUMES[name], (2, 4, 3, 4, 5), "float32", False)


@pytest.mark.parametrize("sizes", [(2, 1, 6, 8), (1, 4, 6, 8), (2, 4, 1, 1), (1, 1, 6, 8)])
def test_ambiguous_layouts(sizes: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    for strides in ([1, 1, sizes[1] * sizes[3], sizes[1]], [sizes[1] * 48, 48, 8, 1]):
        strides[0] = sizes[1] * sizes[2] * sizes[3]
        mine = taeda.zeros(1000).as_strided(sizes, strides)
        theirs = torch.zeros(1000).as_strided(sizes, strides)
        for f in ("max_pool2d", "adaptive_avg_pool2d"):
            a = getattr(taeda.nn.functional, f)(mine, 1)
            b = getattr(torch.nn.functional, f)(theirs, 1)
            assert a.stride() == b.stride(), (f, strides)


def test_second_derivatives_and_meta() -> None:
    F = taeda.nn.functional
    x = taeda.rand(1, 2, 4, 4, dtype=taeda.float64).contiguous(memory_format=taeda.channels_last)
    x.requires_grad_()
    for call in (
        lambda t: F.avg_pool2d(t, 2) ** 2,
        lambda t: F.max_pool2d(t, 2) ** 2,
        lambda t: F.interpolate(t, scale_factor=2, mode="bilinear") ** 2,
        lambda t: F.pad(t, (1, 1)) ** 2,
    ):
        assert taeda.autograd.gradgradcheck(call, [x])
    meta = x.detach().to("meta").contiguous(memory_format=taeda.channels_last)
    assert F.max_pool2d(meta, 2).is_contiguous(memory_format=taeda.channels_last)


def test_errors_name_the_operator() -> None:
    x = taeda.rand(1, 2, 4, 4).contiguous(memory_format=taeda.channels_last)
    with pytest.raises(RuntimeError, match="max_pool2d"):
        taeda.max_pool2d(x, 0)
    with pytest.raises(RuntimeError, match="adaptive_avg_pool2d"):
        taeda.nn.functional.adaptive_avg_pool2d(x, (1, -1))


def joined(framework: Any, x: Any) -> list[Any]:
    """What cat and stack make of parts of images."""
    t, rows = framework, x.contiguous()
    return [
        t.cat([x[:, :2], x[:, 2:]], 1),
        t.cat([x[:, ::2], x[:, ::2]], 1),
        t.cat([x[:, :, :2], x[:, :, 2:]], 2),
        t.cat([x[:, :1], x[:, :1]], 1),
        t.cat([x, rows], 1),
        t.cat([rows, x], 1),
        t.cat([x[:, :2], rows], 1),
        t.cat([t.empty(0), x], 1),
        t.cat([x.transpose(0, 1)] * 2),
        t.cat([x[:, :1, :1, :1]] * 2, 1),
        t.stack([x, x]),
        t.stack([x, x], 1),
        t.stack([x[:, 1:], x[:, 1:]], 3),
        t.stack([x, x], -1),
        t.stack([x, rows]),
    ]


@pytest.mark.parametrize("sizes", [(2, 4, 6, 8), (2, 4, 3, 4, 5)])
def test_what_is_joined_keeps_the_layout_of_its_parts(sizes: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(5).normal(size=sizes).astype("float32")

    def results(framework: Any) -> list[Any]:
        form = framework.channels_last if len(sizes) == 4 else framework.channels_last_3d
        return joined(framework, framework.tensor(values).contiguous(memory_format=form))

    for k, (mine, theirs) in enumerate(zip(results(taeda), results(torch), strict=True)):
        assert mine.stride() == theirs.stride(), k
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
