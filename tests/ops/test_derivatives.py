"""Derivatives that the grid's samples do not reach: beside zeros, with repeated indices and shared
memory, of complex functions, of high order. By finite differences unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda
import taeda.nn.functional as F
from taeda.autograd import grad, gradcheck, gradgradcheck

INF = float("inf")
ROWS = taeda.tensor([[0, 1, 0, 0], [1, 1, 2, 0]])
ZEROS = [[0.0, 2.0, -1.0, 3.0], [1.5, 0.0, 0.0, 0.5], [2.0, 1.0, 4.0, -2.0]]
SOURCE = [[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, -1.0, 0.5]]
LINE = [1.0, 0.0, 3.0, 0.0, 2.0]


def scatter_prod(include_self: bool) -> Callable[..., Any]:
    return lambda x, src: taeda.scatter_reduce(x, 0, ROWS, src, "prod", include_self=include_self)


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "prod of one zero": (lambda x: x.prod(), [[0.0, 2.0, 3.0]]),
    "prod of two zeros": (lambda x: x.prod(), [[0.0, 2.0, 0.0, 3.0]]),
    "prod of three zeros": (lambda x: x.prod(), [[0.0, 0.0, 3.0, 0.0]]),
    "prod over dimensions": (lambda x: x.reshape(3, 2, 2).prod(dim=(0, 2), keepdim=True), [ZEROS]),
    "prod of one dimension": (lambda x: x.prod(0), [ZEROS]),
    "prod of a number": (lambda x: x.prod(), [0.0]),
    "scatter_reduce prod": (scatter_prod(True), [ZEROS, SOURCE]),
    "scatter_reduce prod of the source": (scatter_prod(False), [ZEROS, SOURCE]),
    "scatter_reduce prod of one": (
        lambda x, src: x.scatter_reduce(0, taeda.tensor(0), src, "prod"),
        [2.0, 0.0],
    ),
    "scatter_reduce mean": (
        lambda x, src: x.scatter_reduce(0, ROWS, src, "mean"),
        [ZEROS, SOURCE],
    ),
    "cumprod": (lambda x: x.cumprod(0), [LINE]),
    "cumprod of columns": (lambda x: x.cumprod(0), [ZEROS]),
    "index_fill": (
        lambda x, value: (x * x).index_fill(0, taeda.tensor([0, 0, -3, 2]), value * value),
        [ZEROS, 2.0],
    ),
    "as_strided": (lambda x: (x * x).as_strided((2, 2), (1, 2), 1), [LINE]),
    "as_strided that overlaps": (lambda x: (x * x).as_strided((2, 3), (1, 1), 1), [LINE]),
    "as_strided of a view": (lambda x: (x * x)[2:].as_strided((2,), (2,), 2), [LINE]),
    "as_strided of a transposed view": (
        lambda x: (x * x).t().as_strided((4, 2), (2, 3), 1),
        [ZEROS],
    ),
    "as_strided of an expanded view": (
        lambda x: (x * x).expand(3, 5).as_strided((2, 3), (0, 1), 1),
        [LINE],
    ),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), [LINE]),
    "logcumsumexp of columns": (lambda x: x.logcumsumexp(1), [ZEROS]),
    "logcumsumexp far apart": (lambda x: x.logcumsumexp(0), [[-800.0, 700.0, 699.0, -30.0]]),
}
REAL_ONLY: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "scatter_reduce amax": (
        lambda x, s: x.scatter_reduce(0, ROWS, s, "amax"),
        [ZEROS, [[0.1, 1.0, 0.2, 2.5], [3.0, 0.3, -1.0, 0.7]]],
    ),
    "normalization's mean": (
        lambda x: taeda.ops.aten.native_layer_norm(x, (4,), None, None, 1e-5)[1],
        [ZEROS],
    ),
    "normalization's statistics": (
        lambda x, w: tuple(taeda.ops.aten.native_layer_norm(x, (4,), w, None, 1e-3)),
        [ZEROS, [1.0, 2.0, 0.5, -1.0]],
    ),
    "statistics of groups": (
        lambda x, w: tuple(taeda.native_group_norm(x, w, None, 1, 4, 2, 2, 1e-3)),
        [[1.0, 2.0, 0.5, -1.0, 0.3, 2.5, -2.0, 0.2], [1.0, 2.0, 0.5, -1.0]],
    ),
    "statistics of a batch": (
        lambda x, w: taeda.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-3)[0],
        [[[1.0, 2.0], [0.5, -1.0], [0.3, 2.5]], [1.0, 2.0]],
    ),
}
for reduce in ("prod", "mean", "amax", "amin"):
    for include_self in (True, False):
        REAL_ONLY[f"index_reduce {reduce} {include_self}"] = (
            lambda x, s, r=reduce, i=include_self: x.index_reduce(
                0, taeda.tensor([1, 0, 1]), s, r, include_self=i
            ),
            [ZEROS, [[0.1, 1.0, 0.2, 2.5], [3.0, 0.3, -1.3, 0.7], [0.4, 0.6, 1.7, -2.0]]],
        )
COMPLEX_ONLY: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "angle": (lambda z: z.angle(), [[1.0, -2.0, 3.0]]),
    "sgn": (lambda z: z.sgn(), [[1.0, 2.0]]),
    "abs": (lambda z: z.abs(), [[1.0, 2.0]]),
    "sigmoid": (lambda z: z.sigmoid(), [LINE]),
    "tanh": (lambda z: z.tanh(), [LINE]),
    "pow": (lambda z, p: z**p, [[1.0, 2.0], [1.0, 0.5]]),
    "square": (lambda z: z**2, [LINE]),
    "transposed convolution": (
        lambda x, w: taeda.conv_transpose1d(x.view(1, 2, 4), w.view(2, 1, 2), stride=2),
        [SOURCE, [1.0, 2.0, 0.0, -1.0]],
    ),
    "grouped convolution": (
        lambda x, w: taeda.conv1d(x.view(1, 2, 4), w.view(2, 1, 2), padding=1, groups=2),
        [SOURCE, [1.0, 2.0, 0.0, -1.0]],
    ),
}
ALL = [
    pytest.param(*case, dtype, id=name + ("" if dtype == taeda.float64 else ", complex"))
    for cases, dtypes in (
        (CASES, (taeda.float64, taeda.complex128)),
        (REAL_ONLY, (taeda.float64,)),
        (COMPLEX_ONLY, (taeda.complex128,)),
    )
    for name, case in cases.items()
    for dtype in dtypes
]


def made(values: Any, dtype: taeda.dtype) -> taeda.Tensor:
    """A leaf; where it is complex, what is not 0 gets an imaginary part."""
    x = taeda.tensor(values, dtype=dtype)
    return (x * (1 + 0.5j) if x.is_complex() else x).requires_grad_()


@pytest.mark.parametrize(("function", "values", "dtype"), ALL)
def test_first_and_second(
    function: Callable[..., Any], values: list[Any], dtype: taeda.dtype
) -> None:
    inputs = [made(v, dtype) for v in values]
    gradcheck(function, inputs, check_forward_ad=True)
    gradgradcheck(function, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.prod(),
        lambda x: (x.cumprod(0) ** 2).sum(),
        lambda x: (x[:2].scatter_reduce(0, taeda.tensor([0, 0, 1]), x[2:], "prod") ** 2).sum(),
        lambda x: (x.logcumsumexp(0) ** 2).sum(),
        lambda x: (x * x).as_strided((3,), (2,)).prod(),
    ],
    ids=["prod", "cumprod", "scatter_reduce", "logcumsumexp", "as_strided"],
)
def test_fourth(function: Callable[..., Any]) -> None:
    def second(x: taeda.Tensor) -> taeda.Tensor:
        (g,) = grad(function(x), x, create_graph=True)
        (h,) = grad((g * taeda.arange(1.0, 6.0, dtype=taeda.float64)).sum(), x, create_graph=True)
        return h

    x = taeda.tensor([0.0, 2.0, 0.0, 3.0, 0.5], dtype=taeda.float64, requires_grad=True)
    gradcheck(second, x)
    gradgradcheck(second, x)


def test_hessian_of_prod_beside_a_zero() -> None:
    """By hand: of xyz, at x = 0."""
    x = taeda.tensor([0.0, 2.0, 3.0])
    expected = [[0, 3, 2], [3, 0, 0], [2, 0, 0]]
    assert taeda.autograd.functional.hessian(taeda.prod, x).tolist() == expected


def test_gradient_of_prod_beside_infinity() -> None:
    """A product of the others, not a quotient."""
    x = taeda.tensor([INF, 2.0, 0.5], requires_grad=True)
    (g,) = grad(x.prod(), x)
    assert g.tolist() == [1.0, INF, INF]


def test_gradient_of_logcumsumexp_beside_infinity() -> None:
    """By hand: nothing changes what -inf leaves, everything behind inf depends on it alone."""
    x = taeda.tensor([-INF, 1.0, INF, 2.0], requires_grad=True)
    (g,) = grad(x.logcumsumexp(0)[1:].sum(), x)
    assert g.tolist() == [0.0, 1.0, 2.0, 0.0]


def test_expanded_memory_has_its_gradient_once() -> None:
    """By hand: as_strided reads one number twice, however many elements show it."""
    x = taeda.tensor([2.0], requires_grad=True)
    (g,) = grad(x.expand(3).as_strided((2,), (0,)).sum(), x)
    assert g.tolist() == [2.0]


def test_tangent_of_a_strided_view_lies_as_its_value_does() -> None:
    """The tangent of addmm, which is that of its first argument, lies as that does."""
    x, direction = taeda.arange(6.0).view(3, 2), taeda.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def function(x: taeda.Tensor) -> taeda.Tensor:
        return taeda.addmm(x.t(), taeda.ones(2, 2), taeda.ones(2, 3)).as_strided((4,), (1,), 1)

    _, tangent = taeda.func.jvp(function, (x,), (direction,))
    assert taeda.equal(tangent, function(x + direction) - function(x))


def test_a_view_of_a_result_has_a_tangent_that_can_be_viewed() -> None:
    """The result is row-major, its tangent of itself is not."""
    x, direction = taeda.arange(6.0).view(3, 2), taeda.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def function(x: taeda.Tensor) -> taeda.Tensor:
        return taeda.addmm(x.t(), taeda.ones(2, 2), taeda.ones(2, 3)).view(-1)

    _, tangent = taeda.func.jvp(function, (x,), (direction,))
    assert tangent.tolist() == [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]


def test_normal_numbers_have_gradient_zero() -> None:
    """PyTorch's choice: mean and std are parameters of a draw, not of a function."""
    mean = taeda.zeros(2, 3, requires_grad=True)
    std = taeda.ones(3, requires_grad=True)
    for draw in (taeda.normal(mean, std), taeda.normal(mean, 2.0), taeda.normal(1.0, std)):
        draw.sum().backward()
    assert mean.grad.tolist() == [[0.0] * 3] * 2
    assert std.grad.tolist() == [0.0] * 3


def test_the_power_0_has_gradient_zero() -> None:
    x = taeda.ones(2, 2, requires_grad=True)
    taeda.matrix_power(x, 0).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_results_of_lstsq_have_a_history() -> None:
    a = taeda.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    results = taeda.linalg.lstsq(a, taeda.ones(2, 1), driver="gelsd")
    assert [r.requires_grad for r in results] == [True, True, False, False]
    assert results.residuals.shape == (0,)
    results.residuals.sum().backward()
    assert a.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_nextafter_follows_its_first_argument() -> None:
    """Against PyTorch: 1 and 0, and 0 where the arguments are equal."""
    oracle = pytest.importorskip("torch")

    def gradients(t: Any) -> list[list[float]]:
        x = t.tensor([1.0, 2.0, 3.0, INF], requires_grad=True)
        y = t.tensor([2.0, 2.0, 1.0, INF], requires_grad=True)
        return [g.tolist() for g in t.autograd.grad(t.nextafter(x, y).sum(), (x, y))]

    assert gradients(taeda) == gradients(oracle)


def test_second_derivatives_of_pow_at_a_base_of_zero() -> None:
    """x ** 3 and its derivatives fall to 0 with x, also those by the exponent."""
    x = taeda.tensor([0.0, 2.0], dtype=taeda.float64, requires_grad=True)
    y = taeda.tensor([3.0, 3.0], dtype=taeda.float64, requires_grad=True)
    by_x, by_y = grad(taeda.pow(x, y).sum(), (x, y), create_graph=True)
    mixed = 4.0 * (3.0 * 0.6931471805599453 + 1.0)  # x^(y-1) (y log x + 1)
    expected = {"xx": 12.0, "xy": mixed, "yx": mixed, "yy": 8.0 * 0.6931471805599453**2}
    found = zip(expected, (*_both(by_x, x, y), *_both(by_y, x, y)), strict=True)
    for name, second in found:
        assert second.tolist() == pytest.approx([0.0, expected[name]])


def _both(first: Any, x: Any, y: Any) -> tuple[Any, ...]:
    return grad(first.sum(), (x, y), retain_graph=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_of_classes_have_gradients(smoothing: float, reduction: str) -> None:
    """PyTorch refuses them; here nothing that requires grad is left without a gradient silently."""
    taeda.manual_seed(0)
    x = taeda.randn(5, 3, dtype=taeda.float64, requires_grad=True)
    w = (taeda.rand(3, dtype=taeda.float64) + 0.5).requires_grad_()
    t = taeda.tensor([0, 2, 1, 2, 0])

    def loss(x: taeda.Tensor, w: taeda.Tensor) -> taeda.Tensor:
        return F.cross_entropy(
            x, t, w, ignore_index=1, reduction=reduction, label_smoothing=smoothing
        )

    assert gradcheck(loss, (x, w))
    assert gradgradcheck(loss, (x, w))
    want = F.cross_entropy(
        x, t, w.detach(), ignore_index=1, reduction=reduction, label_smoothing=smoothing
    )
    taeda.testing.assert_close(loss(x, w), want)


@pytest.mark.parametrize("training", [False, True])
def test_running_statistics_that_require_grad_are_refused(training: bool) -> None:
    x, one = taeda.rand(4, 3), taeda.ones(3)
    wanted = taeda.ones(3, requires_grad=True)
    for mean, var, name in ((wanted, one, "running_mean"), (one, wanted, "running_var")):
        words = f"'native_batch_norm' is not differentiable with respect to argument '{name}'"
        with pytest.raises(RuntimeError, match=words):
            F.batch_norm(x, mean, var, training=training)
        with taeda.no_grad():
            assert F.batch_norm(x, mean, var, training=training).shape == (4, 3)
