"""Pooling, padding and resizing: NaN, ties, contracts, gradients; the grid has the dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

nan, inf = float("nan"), float("inf")


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def pair(torch: Any, shape: tuple, seed: int = 0, values: list | None = None) -> tuple[Any, Any]:
    """The same leaf in both frameworks; with `values` drawn from them: ties and NaN."""
    g = torch.Generator().manual_seed(seed)
    if values is None:
        x = torch.randn(shape, generator=g)
    else:
        x = torch.tensor(values)[torch.randint(len(values), shape, generator=g)]
    return taeda.from_numpy(x.numpy().copy()).requires_grad_(), x.requires_grad_()


CASES = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1},
    {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (2, 1)},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (3, 5), "stride": (2, 3), "padding": (1, 2), "ceil_mode": True},
    {"kernel_size": (5, 2), "stride": (1, 4), "padding": (2, 1), "dilation": (1, 2)},
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("shape", [(2, 3, 9, 40), (1, 2, 6, 70), (2, 8, 8), (3, 1, 5, 3)])
@pytest.mark.parametrize(
    "values", [None, [0.0, 1.0, 2.0, nan], [0.0, -0.0, 1.0], [-inf, -inf, -inf, 1.0]]
)
def test_max_pool2d_values_and_gradient(
    torch: Any, options: dict, shape: tuple, values: list | None
) -> None:
    mine, theirs = pair(torch, shape, values=values)
    got, want = F.max_pool2d(mine, **options), torch.nn.functional.max_pool2d(theirs, **options)
    weight = torch.arange(want.numel(), dtype=torch.float32).reshape(want.shape)
    got.backward(taeda.from_numpy(weight.numpy().copy()))
    want.backward(weight)
    same = {"rtol": 0, "atol": 0, "equal_nan": True}
    torch.testing.assert_close(torch.from_numpy(got.detach().numpy().copy()), want.detach(), **same)
    torch.testing.assert_close(torch.from_numpy(mine.grad.numpy().copy()), theirs.grad, **same)
    _, index = F.max_pool2d(mine, **options, return_indices=True)
    _, expected = torch.nn.functional.max_pool2d(theirs, **options, return_indices=True)
    assert index.tolist() == expected.tolist()


@pytest.mark.parametrize("kernel", [(3, 3, 3), (2, 1, 4), (7, 7, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_max_pool3d_gradient(torch: Any, kernel: tuple, dtype: str) -> None:
    """The last kernel has more elements than a byte can name."""
    theirs = torch.randn(2, 2, 9, 12, 37, generator=torch.Generator().manual_seed(0))
    theirs = theirs.to(getattr(torch, dtype))
    mine = taeda.from_numpy(theirs.float().numpy()).to(getattr(taeda, dtype)).requires_grad_()
    theirs.requires_grad_()
    options = {"kernel_size": kernel, "stride": 2, "padding": [k // 2 for k in kernel]}
    got, want = F.max_pool3d(mine, **options), torch.nn.functional.max_pool3d(theirs, **options)
    got.backward(got.detach())
    want.backward(want.detach())
    assert got.tolist() == want.tolist()
    got_grad = torch.tensor(mine.grad.tolist(), dtype=torch.float32)
    if dtype == "bfloat16":  # PyTorch rounds after each addition: its sums in float are compared
        exact = theirs.detach().float().requires_grad_()
        torch.nn.functional.max_pool3d(exact, **options).backward(want.detach().float())
        torch.testing.assert_close(got_grad, exact.grad, rtol=0.01, atol=0)
    else:
        torch.testing.assert_close(got_grad, theirs.grad.float(), rtol=0, atol=0)


@pytest.mark.parametrize("channels_last", [False, True])
def test_max_pool2d_keeps_a_byte_a_window(channels_last: bool) -> None:
    """The graph holds where the maxima were, not the input, and no gradient no graph."""
    x = taeda.randn(2, 8, 32, 32)
    if channels_last:
        x = x.to(memory_format=taeda.channels_last)
    kept: list[Any] = []
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        plain = F.max_pool2d(x, 3, 2, 1)
        assert not kept
        recorded = F.max_pool2d(x.clone().requires_grad_(), 3, 2, 1)
    assert [(t.dtype, t.numel()) for t in kept] == [(taeda.uint8, recorded.numel())]
    assert recorded.tolist() == plain.tolist()
    assert recorded.is_contiguous(memory_format=taeda.channels_last) == channels_last


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.max_pool2d(x, 0), "kernel size should be greater than zero"),
        (lambda x: F.max_pool2d(x, 2, 0), "stride"),
        (lambda x: F.max_pool2d(x, 2, 1, 2), "pad should be .* half of effective kernel size"),
        (lambda x: F.max_pool2d(x, 2, 1, -1), "pad must be non-negative"),
        (lambda x: F.max_pool2d(x, 9), "Output size is too small"),
        (lambda x: F.max_pool2d(x, 2**62), ""),
        (lambda x: F.max_pool2d(x, 3, dilation=2**62), ""),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
        (lambda x: F.avg_pool3d(x, (1, 5, 1), ceil_mode=True), "smaller than the kernel"),
        (lambda x: F.avg_pool3d(x[None], 3, padding=1), "smaller than the kernel"),
        (lambda x: F.adaptive_avg_pool2d(x, -1), "must be greater than or equal to 0"),
        (lambda x: F.max_pool2d(x[0, 0], 2), "Expected 3D or 4D"),
        (lambda x: F.pad(x, (5, 0, 0, 0), "reflect"), "Padding size should be less than"),
        (lambda x: F.pad(x, (-5, 0)), "length must be non-negative"),
        (lambda x: F.pad(x, (2**62, 2**62)), ""),
        (lambda x: F.interpolate(x, size=(0, 3)), "greater than 0"),
    ],
)
def test_rejects(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message or None):
        call(taeda.ones(1, 1, 4, 4))


def test_windows_that_step_over_the_input(torch: Any) -> None:
    mine, theirs = pair(torch, (1, 1, 4, 3))
    options = {"kernel_size": (2, 1), "stride": 1, "padding": (1, 0), "dilation": (5, 1)}
    got, want = F.max_pool2d(mine, **options), torch.nn.functional.max_pool2d(theirs, **options)
    assert got.tolist() == want.tolist()
    got.nan_to_num().sum().backward()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(3, 4), (11, 13), (14, 2)])
def test_interpolate_matches(torch: Any, mode: str, size: tuple) -> None:
    mine, theirs = pair(torch, (2, 3, 7, 6))
    got = F.interpolate(mine, size=size, mode=mode)
    want = torch.nn.functional.interpolate(theirs, size=size, mode=mode)
    got.square().sum().backward()
    want.square().sum().backward()
    torch.testing.assert_close(
        torch.from_numpy(got.detach().numpy().copy()), want.detach(), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(
        torch.from_numpy(mine.grad.numpy().copy()), theirs.grad, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(18, 80), (23, 61), (9, 137), (4, 13), (40, 33)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_interpolate_wide_images(
    torch: Any, mode: str, size: tuple, antialias: bool, channels_last: bool
) -> None:
    """Rows of several vectors, whose sources lie close together or far apart."""
    mine, theirs = pair(torch, (1, 20, 9, 40))
    options = {"size": size, "mode": mode, "antialias": antialias}
    x, y = mine, theirs
    if channels_last:
        x, y = x.to(memory_format=taeda.channels_last), y.to(memory_format=torch.channels_last)
    got, want = F.interpolate(x, **options), torch.nn.functional.interpolate(y, **options)
    got.square().sum().backward()
    want.square().sum().backward()
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(torch.from_numpy(got.detach().numpy()), want.detach(), **close)
    torch.testing.assert_close(torch.from_numpy(mine.grad.numpy()), theirs.grad, **close)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(6, 5, 80), (3, 9, 61), (2, 2, 11)])
def test_nearest_volumes(torch: Any, dtype: str, mode: str, size: tuple) -> None:
    theirs = torch.arange(2 * 3 * 4 * 40).remainder(251).reshape(2, 1, 3, 4, 40)
    mine = taeda.from_numpy(theirs.numpy()).to(getattr(taeda, dtype))
    theirs = theirs.to(getattr(torch, dtype))
    got = F.interpolate(mine, size=size, mode=mode)
    assert got.tolist() == torch.nn.functional.interpolate(theirs, size=size, mode=mode).tolist()


def test_interpolate_gives_an_infinite_gradient_to_its_own_inputs(torch: Any) -> None:
    mine, theirs = pair(torch, (1, 1, 3, 40))
    got = F.interpolate(mine, scale_factor=2, mode="bilinear")
    want = torch.nn.functional.interpolate(theirs, scale_factor=2, mode="bilinear")
    gy = torch.zeros(want.shape)
    gy[0, 0, 3, 41] = inf
    want.backward(gy)
    got.backward(taeda.from_numpy(gy.numpy()))
    mine_inf, theirs_inf = mine.grad.isinf().tolist(), theirs.grad.isinf().tolist()
    assert mine_inf == theirs_inf
    assert mine.grad.isnan().tolist() == theirs.grad.isnan().tolist()


@pytest.mark.parametrize("scale", [0.3, 1.7, 2, 2.5])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_interpolate_by_scale(torch: Any, mode: str, scale: float) -> None:
    mine, theirs = pair(torch, (1, 2, 9, 10))
    got = F.interpolate(mine, scale_factor=scale, mode=mode)
    want = torch.nn.functional.interpolate(theirs, scale_factor=scale, mode=mode)
    torch.testing.assert_close(
        torch.from_numpy(got.detach().numpy().copy()), want.detach(), rtol=1e-5, atol=1e-5
    )


def test_pool_gradients_to_second_order() -> None:
    taeda.manual_seed(0)
    x = taeda.randn(1, 2, 4, 5, dtype=taeda.float64).requires_grad_()
    for f in (
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 3, 1, 1),
        lambda x: F.max_pool1d(x[0], 3, 2, 1),
        lambda x: F.max_pool3d(x, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.adaptive_max_pool2d(x, 2),
        lambda x: F.pad(x, (1, 2, 0, 1), "reflect"),
        lambda x: F.pad(x, (1, -1), value=2.0),
        lambda x: F.interpolate(x, size=(3, 7), mode="bicubic"),
        lambda x: F.unfold(x, 2),
    ):
        assert taeda.autograd.gradcheck(f, x)
        assert taeda.autograd.gradgradcheck(f, x)


def test_values_and_indices_are_a_plain_tuple() -> None:
    torch = pytest.importorskip("torch")
    for framework in (taeda, torch):
        functional: Any = framework.nn.functional
        x = framework.ones(1, 2, 4, 4)
        assert type(functional.max_pool2d(x, 2, return_indices=True)) is tuple
        assert type(functional.max_pool1d(x[0], 2, return_indices=True)) is tuple
        assert type(functional.adaptive_max_pool2d(x, 2, return_indices=True)) is tuple
        assert type(framework.nn.MaxPool2d(2, return_indices=True)(x)) is tuple
        assert type(framework.var_mean(x)) is tuple
        assert type(framework.sort(x)) is not tuple


@pytest.mark.parametrize("pool", [F.max_pool1d, F.avg_pool1d])
@pytest.mark.parametrize(("length", "kernel", "stride"), [(2, 3, 2), (1, 3, 3), (2, 5, 4)])
def test_one_window_larger_than_the_input_in_ceil_mode(
    pool: Callable[..., taeda.Tensor], length: int, kernel: int, stride: int
) -> None:
    x = taeda.arange(5.0 * length).reshape(1, 5, length)
    y = pool(x, kernel, stride, ceil_mode=True)
    want = x.amax(2, True) if pool is F.max_pool1d else x.mean(2, keepdim=True)
    assert taeda.equal(y, want)
    with pytest.raises(RuntimeError, match=r"too small|Invalid computed output size: 0"):
        pool(x, kernel, stride)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_interpolating_to_the_same_size_spreads_no_infinity(mode: str) -> None:
    y = F.interpolate(taeda.tensor([[[1.0, float("inf"), 3.0]]]), size=3, mode=mode)
    assert (y[0, 0, 0].item(), y[0, 0, 2].item()) == (1.0, 3.0)


def test_resizing_keeps_an_infinity_at_the_border() -> None:
    y = F.interpolate(taeda.tensor([[[1.0, float("inf")]]]), scale_factor=2, mode="linear")
    assert y[0, 0, 1:].tolist() == [float("inf")] * 3


@pytest.mark.parametrize(("scale", "length"), [(1.2, 4), (2.2, 4)])
def test_nearest_of_a_whole_ratio_does_not_follow_the_scale(scale: float, length: int) -> None:
    image = taeda.arange(4.0).expand(1, 1, 4, length)
    y = F.interpolate(image, scale_factor=scale, mode="nearest")
    each = y.shape[3] // length
    assert y[0, 0, 0].tolist() == [float(i // each) for i in range(each * length)]


def test_none_stands_for_an_empty_list() -> None:
    x = taeda.arange(16.0).reshape(1, 1, 4, 4)
    assert taeda.equal(F.avg_pool2d(x, 2, None), F.avg_pool2d(x, 2))
    assert taeda.equal(F.avg_pool1d(x[0], 2, stride=None), F.avg_pool1d(x[0], 2))
    assert taeda.equal(F.max_pool2d(x, 2, None), F.max_pool2d(x, 2))
    assert taeda.equal(taeda.roll(x, 1, None), taeda.roll(x, 1))
    assert x.amax(None).item() == 15


@pytest.mark.parametrize("norm", [inf, -inf])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 1}, {"stride": 3, "ceil_mode": True}])
def test_lp_pool_of_infinite_order(torch: Any, n: int, norm: float, options: dict) -> None:
    """The largest or smallest size in each window."""
    name = f"lp_pool{n}d"
    x, y = pair(torch, (2, 3, *[7] * n))
    ours = getattr(F, name)(x, norm, 2, **options)
    theirs = getattr(torch.nn.functional, name)(y, norm, 2, **options)
    assert ours.tolist() == theirs.tolist()
    ours.sum().backward()
    theirs.sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 1, "padding": 1}, {"count_include_pad": False}])
def test_averages_of_int64_as_pytorch(torch: Any, dims: int, options: dict[str, Any]) -> None:
    values = np.random.default_rng(0).integers(-50, 50, (2, 3, *[6] * dims))
    name = f"avg_pool{dims}d"
    want = getattr(torch.nn.functional, name)(torch.from_numpy(values), 3, **options)
    got = getattr(F, name)(taeda.from_numpy(values), 3, **options)
    assert got.dtype == taeda.int64 and got.tolist() == want.tolist()
    for dtype in (taeda.int32, taeda.bool):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            getattr(F, name)(taeda.from_numpy(values).to(dtype), 3, **options)


FRACTIONAL = [
    ((2, 3, 9, 8), (2, 3), (4, 5)),
    ((3, 7, 11), (3, 1), (5, 11)),
    ((2, 2, 6, 6), (2, 2), (1, 5)),
    ((2, 3, 5, 9, 8), (2, 3, 2), (3, 4, 5)),
    ((2, 6, 5, 7), (1, 2, 3), (5, 1, 2)),
]


@pytest.mark.parametrize("shape, kernel, size", FRACTIONAL)
@pytest.mark.parametrize("values", [None, [0.0, 1.0, nan], [-inf, -inf, 1.0]])
def test_fractional_max_pool_equals_pytorchs(
    torch: Any, shape: tuple, kernel: tuple, size: tuple, values: list | None
) -> None:
    n = len(kernel)
    mine, theirs = pair(torch, shape, values=values)
    samples = torch.rand(3, shape[-n - 1], n, generator=torch.Generator().manual_seed(1))
    got = getattr(F, f"fractional_max_pool{n}d")(
        mine, kernel, size, return_indices=True, _random_samples=taeda.from_numpy(samples.numpy())
    )
    want = getattr(torch.nn.functional, f"fractional_max_pool{n}d")(
        theirs, kernel, size, return_indices=True, _random_samples=samples
    )
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    weight = torch.arange(want[0].numel(), dtype=torch.float32).reshape(want[0].shape)
    got[0].backward(taeda.from_numpy(weight.numpy().copy()))
    want[0].backward(weight)
    np.testing.assert_array_equal(mine.grad.numpy(), theirs.grad.numpy())
    assert type(got[0].grad_fn).__name__ == type(want[0].grad_fn).__name__


def test_fractional_windows_start_in_the_inputs_precision(torch: Any) -> None:
    x = torch.arange(600.0).reshape(1, 1, 1, 600) % 251
    samples = torch.rand(1, 1, 2, generator=torch.Generator().manual_seed(2))
    found = []
    for framework in (torch, taeda):
        a, u = (framework.tensor(t.tolist(), dtype=framework.float16) for t in (x, samples))
        pool = framework.nn.functional.fractional_max_pool2d
        found.append(pool(a, (1, 2), (1, 437), return_indices=True, _random_samples=u)[1].numpy())
    np.testing.assert_array_equal(*found)


def test_fractional_max_pool_module_draws_its_windows() -> None:
    x = taeda.arange(0.0, 400.0).reshape(1, 1, 20, 20)
    pool = taeda.nn.FractionalMaxPool2d(2, output_ratio=0.6)
    taeda.manual_seed(0)
    several = [pool(x) for _ in range(8)]
    assert all(y.shape == (1, 1, 12, 12) and y.max() == 399 for y in several)
    assert any(not taeda.equal(several[0], y) for y in several)


@pytest.mark.parametrize(
    "sizes, kernel, output, samples, message",
    [
        ((2, 3, 8, 8), (9, 2), (3, 3), (2, 3, 2), "pool height 9 too large relative to input"),
        ((2, 3, 8, 8), (2, 2), (3, 8), (2, 3, 2), "pool width 2 too large relative to input"),
        ((2, 3, 8, 8), (2, 2), (3, 3), (1, 3, 2), "no less then input batch size"),
        ((2, 3, 8, 8), (2, 2), (3, 3), (2, 1, 2), "equals to input channel size"),
        ((2, 3, 8, 8), (2, 2), (3, 3), (2, 3, 4), "equals to 2; got 4"),
        ((2, 3, 8, 8), (2, 2), (3, 3), (2, 3), "to have 3 dimensions, got 2"),
        ((8, 8), (2, 2), (3, 3), (2, 3, 2), "Expected 3D or 4D tensor"),
        ((2, 0, 8, 8), (2, 2), (3, 3), (2, 0, 2), "non-zero size for non-batch dimensions"),
        ((2, 3, 8, 8), (2,), (3, 3), (2, 3, 2), "must either be a single Int or tuple of Ints"),
    ],
)
def test_fractional_max_pool_refuses_what_pytorch_refuses(
    torch: Any, sizes: tuple, kernel: tuple, output: tuple, samples: tuple, message: str
) -> None:
    for framework in (torch, taeda):
        pool = framework.nn.functional.fractional_max_pool2d
        with pytest.raises(RuntimeError, match=message):
            pool(framework.zeros(sizes), kernel, output, _random_samples=framework.zeros(samples))


@pytest.mark.parametrize("kernel", [(1, 2, 2), (2, 2, 2), (1, 3, 3)])
@pytest.mark.parametrize("with_indices", [False, True])
def test_maxima_of_volumes_cover_every_depth(torch: Any, kernel: tuple, with_indices: bool) -> None:
    x = torch.randn(2, 3, 4, 6, 6, generator=torch.Generator().manual_seed(0))
    mine = taeda.from_numpy(x.numpy().copy()).requires_grad_()
    x.requires_grad_()
    want = torch.nn.functional.max_pool3d(x, kernel)
    got = F.max_pool3d(mine, kernel, return_indices=with_indices)
    got = got[0] if with_indices else got
    np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
    want.square().sum().backward()
    got.square().sum().backward()
    np.testing.assert_array_equal(mine.grad.numpy(), x.grad.numpy())


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("n", [2, 3])
def test_the_gradient_of_maxima_as_an_operator(n: int, last: bool) -> None:
    theirs = pytest.importorskip("torch")
    shape = (2, 3, *[6] * n)
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    results = []
    for lib in (taeda, theirs):
        x = lib.from_numpy(values)
        if last:
            x = x.contiguous(memory_format=lib.channels_last if n == 2 else lib.channels_last_3d)
        x = x.requires_grad_()
        pool = getattr(lib.nn.functional, f"max_pool{n}d")
        y, indices = pool(x, 2, return_indices=True)
        g = lib.ones_like(y).detach().requires_grad_()
        backward = getattr(lib.ops.aten, f"max_pool{n}d_with_indices_backward").default
        gx = backward(g, x, [2] * n, [2] * n, [0] * n, [1] * n, False, indices)
        weights = lib.arange(gx.numel()).reshape(gx.shape).to(gx.dtype)
        found = [gx, *lib.autograd.grad((gx * weights).sum(), (g, x))]
        name = type(gx.grad_fn).__name__
        results.append([name, gx.stride(), *(t.detach().numpy().tolist() for t in found)])
    assert results[0] == results[1]
