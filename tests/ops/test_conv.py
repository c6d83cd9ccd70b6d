"""Convolutions: contracts, memory formats, double gradients; values over dtypes are the grid's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

r = taeda.ones


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 2, 3, 3)),
            "to have 2 channels, but got 3 channels instead",
        ),
        (
            lambda: F.conv2d(r(1, 3, 2, 2), r(4, 3, 3, 3)),
            r"input size per channel: \(2 x 2\). Kernel size: \(3 x 3\)",
        ),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3)), "stride"),
        (
            lambda: F.conv2d(r(5, 5), r(4, 3, 3, 3)),
            r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), r(5)),
            "expected bias to be 1-dimensional with 4 elements",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), stride=0),
            "non-positive stride is not supported",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding=-1),
            "negative padding is not supported",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), dilation=0),
            "dilation should be greater than zero",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), groups=0),
            "non-positive groups is not supported",
        ),
        (lambda: F.conv2d(r(1, 4, 5, 5), r(3, 2, 3, 3), groups=2), "divisible by 2 at dimension 0"),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3).double()),
            "should be the same|expected scalar type",
        ),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding=2**61), ""),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding=2**62), ""),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), dilation=2**62), ""),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding=2**30), ""),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), stride=(1, 1, 1)), "list of 2 values"),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding="same", stride=2),
            "not supported for strided",
        ),
        (
            lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), padding="foo"),
            "Invalid padding string: 'foo'",
        ),
        (lambda: F.conv2d(r(1, 3, 5, 5), r(4, 3, 0, 3)), "kernel size should be greater than zero"),
        (lambda: F.conv_transpose2d(r(1, 3, 5, 5), r(4, 2, 3, 3)), "to have 4 channels, but got 3"),
        (
            lambda: F.conv_transpose2d(r(1, 3, 5, 5), r(3, 2, 3, 3), output_padding=1),
            "output padding must be smaller",
        ),
        (
            lambda: F.conv_transpose2d(r(1, 3, 1, 1), r(3, 2, 3, 3), padding=2),
            "Output size is too small",
        ),
    ],
)
def test_rejects(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message or None):
        call()


def test_large_steps_are_fine() -> None:
    assert F.conv2d(r(1, 3, 5, 5), r(4, 3, 3, 3), stride=2**40).shape == (1, 4, 1, 1)
    assert (
        F.conv2d(r(1, 1, 5, 5), r(1, 1, 3, 3), padding=2**33, dilation=2**33, stride=2**31)
        .flatten()[0]
        .item()
        == 1.0
    )


def test_channels_last_stays() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 8, 9, 10, requires_grad=True)
    w = torch.randn(16, 8, 3, 3, requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, padding=1)
    y.square().sum().backward()
    xt = (
        taeda.from_numpy(x.detach().numpy().copy())
        .contiguous(memory_format=taeda.channels_last)
        .requires_grad_()
    )
    wt = taeda.from_numpy(w.detach().numpy().copy()).requires_grad_()
    yt = F.conv2d(xt, wt, padding=1)
    assert yt.is_contiguous(memory_format=taeda.channels_last)
    yt.square().sum().backward()
    for got, want in ((yt, y), (xt.grad, x.grad), (wt.grad, w.grad)):
        torch.testing.assert_close(
            torch.from_numpy(got.detach().numpy().copy()), want.detach(), rtol=1e-4, atol=1e-3
        )


@pytest.mark.parametrize("last", [(True, False), (False, True), (True, True)])
def test_many_channels_last(last: tuple[bool, bool]) -> None:
    """What Winograd's algorithm takes row-major gives the same from channels-last operands."""
    taeda.manual_seed(0)
    shapes = [(8, 64, 14, 15), (64, 64, 3, 3), (64,)]
    operands = [taeda.randn(shape, dtype=taeda.float64) for shape in shapes]
    gy = taeda.randn(8, 64, 14, 15, dtype=taeda.float64)

    def run(dtype: taeda.dtype, last: tuple[bool, bool]) -> list[taeda.Tensor]:
        x, w, b = (t.to(dtype, copy=True) for t in operands)
        x = x.contiguous(memory_format=taeda.channels_last) if last[0] else x
        w = w.contiguous(memory_format=taeda.channels_last) if last[1] else w
        for t in (x, w, b):
            t.requires_grad_()
        y = F.conv2d(x, w, b, padding=1)
        assert y.is_contiguous(memory_format=taeda.channels_last) or not any(last)
        y.backward(gy.to(dtype))
        return [y.detach(), x.grad, w.grad, b.grad]

    exact, found = run(taeda.float64, (False, False)), run(taeda.float32, last)
    for got, want in zip(found, exact, strict=True):
        scale = want.abs().max().item()
        assert (got.double() - want).abs().max().item() < 2e-5 * scale


@pytest.mark.parametrize("width", [1, 2])
def test_bf16_images_narrower_than_a_step(width: int) -> None:
    """Taps that see padding alone have gradient 0, not what lay in memory before."""
    for _ in range(3):  # leaves freed memory full of another value
        [taeda.full((64,), 3e4, dtype=taeda.bfloat16) for _ in range(50)]
    x = taeda.ones(1, 8, width)
    w = taeda.zeros(8, 8, 3)
    grads = []
    for dtype in (taeda.float32, taeda.bfloat16):
        v = w.to(dtype, copy=True).requires_grad_()
        F.conv1d(x.to(dtype), v, stride=3, padding=2).sum().backward()
        grads.append(v.grad.float())
    assert taeda.equal(*grads)


VOLUMES = [  # kernel, stride, padding, dilation, size of x
    ((7, 7, 7), (2, 2, 2), (3, 3, 3), (1, 1, 1), (6, 7, 7)),
    ((7, 3, 3), (2, 1, 1), (3, 1, 1), (1, 1, 1), (6, 5, 4)),
    ((6, 2, 3), (2, 2, 1), (3, 0, 1), (1, 1, 1), (4, 5, 6)),
    ((3, 3, 3), (2, 2, 2), (1, 1, 1), (2, 1, 1), (5, 6, 5)),
    ((3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), (8, 9, 8)),
    ((2, 5, 1), (1, 3, 2), (0, 2, 0), (1, 1, 1), (3, 4, 5)),
]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16])
@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize("case", VOLUMES)
def test_volumes_as_in_double(case: tuple[Any, ...], channels: int, dtype: taeda.dtype) -> None:
    """Small integers: every sum is exact. Freed memory is left full of another value."""
    kernel, stride, padding, dilation, size = case
    taeda.manual_seed(0)
    x = taeda.randint(-2, 3, (2, channels, *size))
    w = taeda.randint(-1, 2, (16, channels, *kernel))
    [taeda.full((w.numel(),), 3e38) for _ in range(4)]
    results = []
    for t in (taeda.float64, dtype):
        a, b = (v.to(t).requires_grad_() for v in (x, w))
        y = F.conv3d(a, b, None, stride, padding, dilation)
        y.backward(taeda.ones_like(y))
        results.append([v.to(dtype) for v in (y, a.grad, b.grad)])
    for mine, exact in zip(*results, strict=True):
        assert taeda.equal(mine, exact)


def test_expanded_gradient() -> None:
    """sum().backward() sends one number, expanded."""
    x = r(2, 1, 4, 4).requires_grad_()
    w = r(2, 1, 3, 3).requires_grad_()
    F.conv2d(x, w).sum().backward()
    assert w.grad.flatten().tolist() == [8.0] * 18
    assert x.grad[0, 0, 1].tolist() == [4.0, 8.0, 8.0, 4.0]


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_gradients(transposed: bool) -> None:
    taeda.manual_seed(0)
    x = taeda.randn(1, 2, 3, 4, dtype=taeda.float64).requires_grad_()
    w = taeda.randn(2, 1, 2, 2, dtype=taeda.float64).requires_grad_()
    b = taeda.randn(2, dtype=taeda.float64).requires_grad_()
    conv = F.conv_transpose2d if transposed else F.conv2d

    def f(x: Any, w: Any, b: Any) -> Any:
        return conv(x, w, b, stride=(1, 2), padding=(1, 0), groups=2)

    assert taeda.autograd.gradcheck(f, (x, w, b))
    assert taeda.autograd.gradgradcheck(f, (x, w, b))


def test_half_precision() -> None:
    x, w = taeda.randn(2, 3, 6, 6), taeda.randn(4, 3, 3, 3)
    want = F.conv2d(x, w)
    for dtype, tolerance in ((taeda.bfloat16, 0.1), (taeda.float16, 0.02)):
        got = F.conv2d(x.to(dtype), w.to(dtype))
        assert got.dtype == dtype
        assert (got.float() - want).abs().max().item() < tolerance * want.abs().max().item()


def test_backward_operators_check_their_arguments() -> None:
    ops = taeda._C._by_owner
    assert "convolution_backward_input" not in ops["torch"], "backward operators are not public"
    meta = F.conv2d(r(2, 3, 5, 5, device="meta"), r(4, 3, 3, 3, device="meta"))
    assert meta.shape == (2, 4, 3, 3)


@pytest.mark.parametrize("width", [1, 5, 14, 16, 17, 40])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": 1},
        {"padding": (1, 2), "dilation": (1, 2)},
        {"padding": 1, "stride": 2},
        {"padding": (2, 1), "stride": (1, 2)},
    ],
)
def test_depthwise_rows_of_any_width(width: int, options: dict) -> None:
    """3x3 filters read images where they are: lanes beyond a row must not count."""
    torch = pytest.importorskip("torch")
    if width < 5 and options.get("padding") != 1:
        pytest.skip("the filter is wider than the image")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, 70, width + 2, generator=generator)[..., :width]
    x[0, 0, 3, 0], x[1, 2, 69, width - 1] = float("inf"), float("inf")
    w, b = torch.randn(4, 1, 3, 3, generator=generator), torch.randn(4, generator=generator)
    # In float64: PyTorch's float32 sums over 5,600 elements are off by up to 3e-4, ours by 5e-5.
    leaves = [t.double().contiguous().requires_grad_() for t in (x, w, b)]
    mine = [taeda.from_numpy(t.contiguous().numpy().copy()).requires_grad_() for t in (x, w, b)]
    want = torch.nn.functional.conv2d(*leaves, groups=4, **options)
    got = F.conv2d(*mine, groups=4, **options)
    gy = torch.randn(want.shape, generator=generator)
    want.backward(gy.double())
    got.backward(taeda.from_numpy(gy.numpy()))
    close = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": True}
    torch.testing.assert_close(torch.from_numpy(got.detach().numpy()).double(), want, **close)
    for ours, theirs in zip(mine, leaves, strict=True):
        gradient = torch.from_numpy(ours.grad.numpy()).double()
        torch.testing.assert_close(gradient, theirs.grad, **close)


NOTHING_OVER = [  # spatial dimensions, kernel, stride, padding, output padding, groups, dilation
    (1, 1, 1, 0, 1, 1, 2),
    (2, 1, 1, 0, 1, 1, 2),
    (3, 1, 1, 0, 1, 1, 2),
    (2, 1, 2, 0, 2, 1, 3),
    (2, 3, 1, 0, 1, 4, 2),
    (2, 1, 1, 0, 2, 2, 3),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("case", NOTHING_OVER, ids=str)
def test_output_padding_beyond_the_stride(case: tuple[int, ...], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    n, k, stride, padding, output_padding, groups, dilation = case
    results = []
    x = torch.randn(2, 4, *(6,) * n)
    w, b = torch.randn(4, 8 // groups, *(k,) * n), torch.randn(8)
    for fw in (taeda, torch):
        leaves = [fw.from_numpy(t.numpy()).to(getattr(fw, dtype)) for t in (x, w, b)]
        leaves = [t.detach().requires_grad_() for t in leaves]
        call = getattr(fw.nn.functional, f"conv_transpose{n}d")
        y = call(*leaves, stride, padding, output_padding, groups, dilation)
        y.square().mean().backward()
        results.append([t.detach().float().numpy() for t in (y, *(t.grad for t in leaves))])
    tolerance = 3e-2 if dtype == "bfloat16" else 1e-4
    for got, want in zip(*results, strict=True):
        assert got.shape == want.shape
        assert abs(got - want).max() <= tolerance * max(1.0, abs(want).max())


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16, taeda.float16])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_an_empty_batch_has_gradients(
    dtype: taeda.dtype, spatial: int, transposed: bool, groups: int
) -> None:
    x = taeda.zeros(0, 4, *(9,) * spatial, dtype=dtype, requires_grad=True)
    w = taeda.ones(4, 4 // groups, *(3,) * spatial, dtype=dtype, requires_grad=True)
    b = taeda.ones(4, dtype=dtype, requires_grad=True)
    name = f"conv_transpose{spatial}d" if transposed else f"conv{spatial}d"
    y = getattr(F, name)(x, w, b, groups=groups)
    assert y.shape == (0, 4, *((11 if transposed else 7),) * spatial)
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
    for t in (w, b):
        assert t.grad is not None and t.grad.shape == t.shape and not t.grad.any()


# Single images large enough to be cut into bands: (sizes of x, of w, options).
LARGE_IMAGES = [
    ((1, 16, 330, 310), (16, 16, 5, 5), {"padding": 2}),
    ((1, 16, 650, 400), (40, 16, 5, 3), {"stride": (2, 1), "padding": (1, 0)}),
    ((2, 32, 300, 320), (32, 16, 4, 5), {"groups": 2, "dilation": (3, 1), "padding": (9, 2)}),
    ((1, 24, 260_000), (24, 24, 9), {"padding": 4}),
    ((1, 8, 61, 60, 62), (12, 8, 4, 4, 3), {"padding": (1, 0, 1), "stride": (1, 1, 1)}),
]
# Cut for the memory of their windows; float32's gradients are sums over millions of elements.
WIDE_IMAGES = [
    ((1, 1, 8_000_000), (1, 1, 9), {"padding": 4}),
    ((1, 8, 40, 20_000), (2, 8, 1, 9), {"padding": (30, 0)}),  # the outer bands see no row
]


@pytest.mark.parametrize(
    "sizes, filters, options, dtype",
    [(*case, dtype) for case in LARGE_IMAGES for dtype in ("float32", "bfloat16", "float64")]
    + [(*case, dtype) for case in WIDE_IMAGES for dtype in ("bfloat16", "float64")],
)
def test_large_images(
    sizes: tuple[int, ...], filters: tuple[int, ...], options: dict[str, Any], dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    dim, bias = len(sizes) - 2, torch.rand(filters[0])
    x, w = torch.rand(sizes) - 0.5, torch.rand(filters) - 0.5
    x, w, bias = (t.to(getattr(torch, dtype)) for t in (x, w, bias))

    def run(t: Any, wide: bool) -> list[Any]:
        def leaf(a: Any) -> Any:
            a = a.double() if wide else a
            b = a if t is torch else t.tensor(a.float().numpy()).to(getattr(t, str(a.dtype)[6:]))
            return b.detach().requires_grad_()

        inputs = [leaf(a) for a in (x, w, bias)]
        y = getattr(t.nn.functional, f"conv{dim}d")(*inputs, **options)
        y.backward(y.detach())
        return [y, *(i.grad for i in inputs)]

    tolerance = {"float32": 1e-5, "bfloat16": 2e-2, "float64": 1e-12}[dtype]
    for got, want in zip(run(taeda, False), run(torch, True)):
        want = want.detach()
        error = (torch.from_numpy(got.detach().double().numpy()) - want).abs().max()
        assert error <= tolerance * want.abs().max()


@pytest.mark.parametrize(
    "dtype, tolerance", [("float32", 2e-6), ("bfloat16", 4e-3), ("half", 5e-4)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_bias_gradients_of_many_equal_elements_keep_their_digits(
    dtype: str, tolerance: float, transposed: bool
) -> None:
    """Sums of long rows of one value lose digits where they are added up one by one."""
    generator = np.random.default_rng(0)
    weight = taeda.ones(*((1, 100) if transposed else (100, 1)), 1, 3, dtype=getattr(taeda, dtype))
    bias = taeda.zeros(100, dtype=getattr(taeda, dtype), requires_grad=True)
    x = taeda.ones(2, 1, 20, 1000, dtype=getattr(taeda, dtype))
    convolve = F.conv_transpose2d if transposed else F.conv2d
    y = convolve(x, weight, bias, padding=(6, 1))
    gy = generator.uniform(0.1, 1, (2, 100, *y.shape[2:]))
    gy[:, :, 1:] = gy[:, :, 1:2, :1]
    y.backward(gy := taeda.tensor(gy).to(y.dtype))
    want = gy.double().numpy().sum((0, 2, 3))
    np.testing.assert_allclose(bias.grad.double().numpy(), want, rtol=tolerance)
