"""Reductions, scans and normalisations beyond the grid: NaN, empty, layouts, dtypes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda as torch

NAN = float("nan")

RANDOM = np.random.default_rng(7)


def layouts(shape: tuple[int, ...]) -> list[torch.Tensor]:
    """The same float64 values as row-major, transposed, sliced and channels-last tensors."""
    values = torch.from_numpy(RANDOM.standard_normal(shape))
    order = list(reversed(range(values.dim())))
    transposed = values.permute(order).contiguous().permute(order)
    sliced = torch.stack([values, values], -1)[..., 0]
    return [values, transposed, sliced, values.movedim(1, -1).contiguous().movedim(-1, 1)]


@pytest.mark.parametrize("dim", [None, 0, 1, 2, 3, (0, 2), (1, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_every_layout_gives_numpys_values(dim: int | tuple[int, ...] | None) -> None:
    for x in layouts((4, 5, 6, 7)):
        a = x.numpy()
        for name, theirs in (
            ("sum", a.sum(dim)),
            ("mean", a.mean(dim)),
            ("amax", a.max(dim)),
            ("amin", a.min(dim)),
        ):
            got = getattr(x, name)() if dim is None else getattr(x, name)(dim)
            np.testing.assert_allclose(got.numpy(), theirs, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(torch.var(x, dim).numpy(), a.var(dim, ddof=1), rtol=1e-12)
        np.testing.assert_allclose(torch.std(x, dim, correction=0).numpy(), a.std(dim), rtol=1e-12)
        np.testing.assert_allclose(
            torch.norm(x, dim=dim).numpy(), np.sqrt((a * a).sum(dim)), rtol=1e-12
        )
        np.testing.assert_allclose(
            torch.linalg.vector_norm(x, 1, dim).numpy(), np.abs(a).sum(dim), rtol=1e-12
        )


def test_long_sums_are_exact() -> None:
    """Ten million equal floats: plain accumulation in float32 would be off in the third digit."""
    x = torch.full((10_000_000,), 0.1)
    exact = np.float64(np.float32(0.1)) * 10_000_000
    assert abs(x.sum().item() - exact) / exact < 1e-7
    rows = torch.full((1_000_000, 10), 0.1)
    np.testing.assert_allclose(rows.sum(0).numpy(), exact / 10, rtol=1e-6)
    assert abs(x.var().item()) < 1e-12
    shifted = torch.from_numpy((RANDOM.standard_normal(100_000) + 1e4).astype(np.float32))
    np.testing.assert_allclose(
        shifted.var().item(), shifted.numpy().astype(np.float64).var(ddof=1), rtol=1e-4
    )


def test_integers_and_bools_add_in_int64() -> None:
    x = torch.full((1000,), 200, dtype=torch.uint8)
    assert x.sum().item() == 200_000
    assert x.sum().dtype == torch.int64
    assert x.sum(dtype=torch.int32).dtype == torch.int32
    assert torch.ones(5, dtype=torch.bool).sum().item() == 5
    assert torch.tensor([3, 4], dtype=torch.int8).prod().dtype == torch.int64
    assert torch.tensor([2**62, 2**62, 2**62]).sum().item() == 3 * 2**62 - 2**64  # wraps
    assert torch.tensor([1.9, 2.9]).sum(dtype=torch.int64).item() == 3  # converted before


def test_nan_wins() -> None:
    nan = float("nan")
    for n in (1, 3, 17, 5000):
        for at in {0, n // 2, n - 1}:
            x = torch.ones(n)
            x[at] = nan
            for result in (
                x.max(),
                x.min(),
                x.amax(0),
                x.sum(),
                x.mean(),
                x.median(),
                x.norm(p=float("inf")),
            ):
                assert result.isnan().item()
            assert x.argmax().item() == at
            assert x.argmin().item() == at
            assert x.max(0).indices.item() == at
    assert torch.tensor([nan, 0.0]).any().item()
    assert torch.tensor([nan, 1.0]).all().item()
    assert torch.nansum(torch.tensor([nan, 2.0])).item() == 2
    assert torch.tensor([1.0, nan, 3.0, 0.0]).cummax(0).values.isnan().tolist() == [
        False,
        True,
        True,
        True,
    ]


def test_empty() -> None:
    x = torch.zeros(0, 3)
    assert x.sum().item() == 0
    assert x.prod(0).tolist() == [1, 1, 1]
    assert x.mean().isnan().item()
    assert x.mean(0).isnan().all().item()
    assert x.any().item() is False
    assert x.all().item() is True
    assert x.amax(1).shape == (0,)
    assert x.argmax(1).shape == (0,)
    assert x.cumsum(0).shape == (0, 3)
    assert x.softmax(1).shape == (0, 3)
    assert x.norm().item() == 0
    assert x.logsumexp(0).tolist() == [-float("inf")] * 3


ERRORS = [
    (
        lambda: torch.zeros(0, 3).max(),
        RuntimeError,
        "Expected reduction dim to be specified for input.numel",
    ),
    (
        lambda: torch.zeros(0, 3).max(0),
        IndexError,
        "Expected reduction dim 0 to have non-zero size",
    ),
    (lambda: torch.zeros(0, 3).amax(), RuntimeError, "Expected reduction dim to be specified"),
    (lambda: torch.zeros(0, 3).argmax(), IndexError, "Expected reduction dim to be specified"),
    (lambda: torch.zeros(0, 3).argmax(0), IndexError, "non-zero size"),
    (
        lambda: torch.zeros(3).sum(1),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)",
    ),
    (
        lambda: torch.zeros(3, 3).sum((0, 0)),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    (lambda: torch.zeros(3).long().mean(), RuntimeError, "could not infer output dtype.*Got: Long"),
    (lambda: torch.zeros(3).long().softmax(0), NotImplementedError, "not implemented for 'Long'"),
    (
        lambda: torch.zeros(0).norm(float("inf")),
        RuntimeError,
        "cannot compute the inf norm on an empty tensor",
    ),
    (
        lambda: torch.nn.functional.layer_norm(torch.zeros(2, 3), (4,)),
        RuntimeError,
        r"expected input with shape \[\*, 4\]",
    ),
    (lambda: torch.ones(3).bool().argmax(), RuntimeError, "does not support bool input"),
    (lambda: torch.ones(3).bool().topk(2), RuntimeError, "does not support bool"),
    (lambda: torch.ones(3).bool().kthvalue(2), NotImplementedError, "for 'Bool'"),
    (lambda: torch.zeros(3).topk(5), RuntimeError, "selected index k out of range"),
    (lambda: torch.zeros(3, 0).kthvalue(1), IndexError, "non-zero size"),
    (
        lambda: torch.zeros(3).kthvalue(4),
        RuntimeError,
        "selected number k out of range for dimension 0",
    ),
    (lambda: torch.zeros(3).tril(), RuntimeError, "input tensor must have at least 2 dimensions"),
    (
        lambda: torch.nn.functional.batch_norm(torch.zeros(1, 3), None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training",
    ),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors(call: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()  # type: ignore[operator]


def test_the_number_of_threads_does_not_matter() -> None:
    x = torch.from_numpy(RANDOM.standard_normal((3000, 700)).astype(np.float32))
    before = torch.get_num_threads()

    def results() -> list[torch.Tensor]:
        norm = torch.nn.functional.layer_norm(x, (700,))
        return [
            x.sum(),
            x.sum(0),
            x.sum(1),
            x.t().sum(0),
            x.var(0),
            x.norm(),
            x.softmax(1),
            x.softmax(0),
            norm,
        ]

    try:
        torch.set_num_threads(1)
        one = results()
        torch.set_num_threads(4)
        for a, b in zip(one, results(), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()
    finally:
        torch.set_num_threads(before)


def test_batch_norm_moves_running_statistics() -> None:
    x = torch.from_numpy(RANDOM.standard_normal((6, 4, 3, 5)))
    for layout in (x, x.contiguous(memory_format=torch.channels_last)):
        mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
        y = torch.nn.functional.batch_norm(layout, mean, var, training=True, momentum=0.25)
        a = x.numpy()
        np.testing.assert_allclose(mean.numpy(), 0.25 * a.mean((0, 2, 3)), rtol=1e-12)
        np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * a.var((0, 2, 3), ddof=1), rtol=1e-12)
        expected = (a - a.mean((0, 2, 3), keepdims=True)) / np.sqrt(
            a.var((0, 2, 3), keepdims=True) + 1e-5
        )
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-10, atol=1e-12)
        assert y.stride() == layout.stride()
        again = torch.nn.functional.batch_norm(layout, mean, var)
        frozen = (a - mean.numpy()[:, None, None]) / np.sqrt(var.numpy()[:, None, None] + 1e-5)
        np.testing.assert_allclose(again.numpy(), frozen, rtol=1e-10, atol=1e-12)


def test_batch_norm_gradients_by_layout() -> None:
    for training in (True, False):
        for last in (False, True):
            x = torch.from_numpy(RANDOM.standard_normal((3, 2, 2, 2)))
            if last:
                x = x.contiguous(memory_format=torch.channels_last)
            x.requires_grad_()
            w = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
            b = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
            mean, var = (
                torch.tensor([0.1, -0.2], dtype=torch.float64),
                torch.tensor([1.5, 0.7], dtype=torch.float64),
            )

            def f(*inputs: Any, fixed: tuple = (mean, var, training)) -> torch.Tensor:
                x, w, b = inputs
                mean, var, training = fixed
                return torch.nn.functional.batch_norm(x, mean.clone(), var.clone(), w, b, training)

            torch.autograd.gradcheck(f, (x, w, b))


@pytest.mark.parametrize("scale", [1e-44, 1e-25, 1e-19, 1.0, 1e15, 1e19, 1e37])
@pytest.mark.parametrize("shape", [(40,), (3000,), (2, 30), (30, 20)])
def test_spread_of_large_and_tiny_numbers(shape: tuple[int, ...], scale: float) -> None:
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32) * np.float32(scale)
    with np.errstate(over="ignore"):
        std = x.astype(np.float64).std(0, ddof=1).astype(np.float32)
    np.testing.assert_allclose(torch.tensor(x).std(0).numpy(), std, rtol=1e-5)
    equal = torch.full(shape, 2e38 * min(scale, 1))
    assert equal.var(0).eq(0).all().item()


def test_infinities_go_down_columns() -> None:
    inf = float("inf")
    x = torch.tensor([[1.0, inf, 3e38], [0.0, 1.0, 3e38], [2.0, 0.0, -3e38]])
    assert x.cumsum(0).tolist() == [x[0].tolist(), [1.0, inf, inf], [3.0, inf, x[0, 2].item()]]
    y = torch.tensor([[0.0, inf], [1.0, 0.0]])
    assert y.softmax(0).isnan().tolist() == [[False, True], [False, True]]
    assert y.log_softmax(0).isnan().tolist() == [[False, True], [False, True]]


def test_softmax_of_infinities() -> None:
    inf = float("inf")
    assert torch.tensor([0.0, -inf]).softmax(0).tolist() == [1, 0]
    assert torch.tensor([-inf, -inf]).softmax(0).isnan().all().item()
    assert torch.tensor([inf, 0.0]).log_softmax(0).isnan().all().item()
    assert torch.tensor([1000.0, 1000.0]).softmax(0).tolist() == [0.5, 0.5]


def test_half_accumulates_in_float() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.ones(5000, dtype=dtype)
        assert (
            x.sum().item() == np.float32(5000)
            if dtype == torch.float16
            else 4992 <= x.sum().item() <= 5024
        )
        assert x.mean().item() == 1
        y = torch.full((3, 4096), 0.1, dtype=dtype)
        np.testing.assert_allclose(y.mean(1).float().numpy(), y[0, 0].item(), rtol=1e-2)
        np.testing.assert_allclose(y.softmax(1).float().sum(1).numpy(), 1, rtol=1e-2)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize(
    "values", [[1.0, 2, 2, 2, 3], [2.0, 1, 2, 3], [1.0, NAN, NAN, 2], [NAN, NAN], [5.0]]
)
def test_equal_elements_share_the_gradient_of_a_median(name: str, values: list[float]) -> None:
    oracle = pytest.importorskip("torch")
    grads = []
    for framework in (torch, oracle):
        x: Any = framework.tensor(values, requires_grad=True)
        getattr(framework, name)(x).backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean", "nanmean"])
def test_statistics_of_integers_are_refused(name: str) -> None:
    oracle = pytest.importorskip("torch")
    for framework in (torch, oracle):
        with pytest.raises(RuntimeError, match="floating point") as raised:
            getattr(framework, name)(framework.tensor([1, 2]))
        assert raised.type is RuntimeError


@pytest.mark.parametrize("sizes, dims", [
    ((3000, 384), (0,)), ((700, 65), (0,)), ((9, 9001), (0,)), ((5, 130, 70), (1, 0)),
    ((2, 20000), (0,)), ((100000, 64), (0,)),
])  # fmt: skip
def test_sums_over_leading_dimensions(sizes, dims):
    """Long ones are read as they lie in memory."""
    torch.manual_seed(0)
    x = torch.randn(sizes) + 3
    x[(0,) * len(sizes)] = 1e4
    wide = x.numpy().astype(np.float64)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append((x.sum(dims), x.mean(dims, keepdim=True)))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(found[0][0].numpy(), wide.sum(dims), rtol=1e-6)
    np.testing.assert_allclose(found[0][1].numpy(), wide.mean(dims, keepdims=True), rtol=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    x[..., -1, 7] = float("nan")
    assert torch.isnan(x.sum(dims)).nonzero().flatten().tolist() == [7]


def test_variance_of_squares_that_overflow_is_infinite() -> None:
    for values in ([1e160, 2e160, 4e160], [-1e200, 1e200], [0.0] * 100 + [1e300]):
        x = torch.tensor(values, dtype=torch.float64)
        with np.errstate(over="ignore"):
            assert np.var(values, ddof=1) == np.inf
        assert x.var() == np.inf and x.std() == np.inf
        assert (x.reshape(-1, 1).expand(-1, 3).contiguous().var(0) == np.inf).all()
    assert torch.full((5,), 1e300, dtype=torch.float64).var() == 0
    assert torch.tensor([1.0, np.inf], dtype=torch.float64).var().isnan()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_logcumsumexp_of_complex_numbers(dtype: str) -> None:
    theirs = pytest.importorskip("torch")
    a = RANDOM.standard_normal((5, 4)) * 3 + 1j * RANDOM.standard_normal((5, 4)) * 5
    a[2, 1] = a[1, 1] + np.pi * 1j  # e^a + e^b is 0 but for rounding
    x = torch.from_numpy(a.astype(dtype))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == "complex64" else {}
    for dim in (0, 1):
        got = x.logcumsumexp(dim).numpy()
        np.testing.assert_allclose(
            np.exp(got), np.exp(a).cumsum(dim), **(tolerance or {"atol": 1e-12})
        )
    for values in (
        [3 + 10j, 2 - 4j],
        [-np.inf, 1 + 2j, -np.inf, np.inf, 1j],
        [complex(-np.inf, 3), complex(-np.inf, 1), 2j],
        [1 + 2j, complex(np.nan, 0), 1],
        [800 + 1j, -800 + 2j, 801j],
        *([1, 1 + (np.pi - e) * 1j] for e in (1e-2, 1e-6, 1e-8) if dtype == "complex128"),
    ):
        ours = torch.tensor(values, dtype=getattr(torch, dtype)).logcumsumexp(0).numpy()
        expected = theirs.tensor(values, dtype=getattr(theirs, dtype)).logcumsumexp(0).numpy()
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex128"])
@pytest.mark.parametrize("p", [0.5, 1, 2, 3, np.inf])
def test_renorm(p: float, dtype: str) -> None:
    """Slices whose norm is larger than maxnorm are scaled down to it, by hand in float64."""
    a = RANDOM.standard_normal((3, 4, 5)) * np.array([0.01, 1, 30, 300])[:, None]
    x = torch.from_numpy(a).to(getattr(torch, dtype))
    a = x.to(torch.complex128 if x.is_complex() else torch.float64).numpy()
    for dim in (0, 1, -1):
        lines = np.abs(np.moveaxis(a, dim, 0).reshape(a.shape[dim], -1))
        norms = lines.max(1) if p == np.inf else (lines**p).sum(1) ** (1 / p)
        factors = np.where(norms > 2, 2 / (norms + 1e-7), 1)
        expected = np.moveaxis(np.moveaxis(a, dim, -1) * factors, -1, dim)
        rtol = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-10)
        got = torch.renorm(x, p, dim, 2)
        wide = got.to(torch.complex128 if x.is_complex() else torch.float64).numpy()
        np.testing.assert_allclose(wide, expected, rtol=rtol, atol=1e-7)
        assert x.clone().renorm_(p, dim, 2).equal(got)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        x[0, 0].renorm(p, 0, 1)
    with pytest.raises(RuntimeError, match="non-positive-norm"):
        x.renorm(0, 0, 1)
    with pytest.raises(RuntimeError, match="maxnorm to be >= 0"):
        x.renorm(p, 0, -1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 7, 31, 32, 33, 255, 2049, 70001])
def test_nansum_and_complex_sums_of_any_length(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal((3, n)).astype(dtype)
    x[1, ::3] = np.nan
    if n > 1:
        x[2, 1] = np.inf
    wide = x.astype("float64")
    tolerance = 3e-6 if dtype == "float32" else 1e-13
    got = torch.from_numpy(x)
    np.testing.assert_allclose(torch.nansum(got, 1), np.nansum(wide, 1), tolerance, tolerance)
    np.testing.assert_allclose(torch.nansum(got[:2]), np.nansum(wide[:2]), tolerance, 1e-4)
    z = rng.standard_normal((3, n)).astype(dtype) + 1j * rng.standard_normal((3, n)).astype(dtype)
    exact = z.astype("complex128")
    scale = np.sqrt(max(1, n)) * tolerance
    ours = torch.from_numpy(z)
    np.testing.assert_allclose(ours.sum(1).numpy(), exact.sum(1), rtol=0, atol=scale)
    np.testing.assert_allclose(ours.sum(0).numpy(), exact.sum(0), rtol=0, atol=scale)
    np.testing.assert_allclose(ours.mT.sum(0).numpy(), exact.sum(1), rtol=0, atol=scale)
    np.testing.assert_allclose(ours[:, ::2].sum(1).numpy(), exact[:, ::2].sum(1), 0, scale)
    if n > 40:
        z[0, 40], z[1, n - 1] = complex(np.inf, 1), complex(0, np.nan)
        total = torch.from_numpy(z).sum(1).numpy()
        assert total[0].real == np.inf and np.isfinite(total[0].imag)
        assert np.isfinite(total[1].real) and np.isnan(total[1].imag) and np.isfinite(total[2])


def test_a_sum_to_no_dimensions_is_no_leaf() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x.sum_to_size([])
    y.backward()
    assert not y.is_leaf and y.item() == 2 and x.grad.item() == 1
