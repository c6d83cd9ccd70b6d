"""embedding_bag and grid_sample against PyTorch: values, gradients, second gradients, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import taeda

RANDOM = np.random.default_rng(3)
WEIGHT = RANDOM.normal(size=(9, 5))
INDICES = RANDOM.integers(0, 9, 14)
SCALES = RANDOM.normal(size=14)
OFFSETS = [0, 3, 3, 8]  # one bag is empty
ENDING = [0, 3, 3, 8, 14]


def bag(framework: Any, dtype: str, **options: Any) -> tuple[Any, ...]:
    kind = getattr(framework, dtype)
    weight = framework.tensor(WEIGHT, dtype=kind, requires_grad=True)
    scales = None
    if options.pop("scaled", False):
        scales = framework.tensor(SCALES, dtype=kind, requires_grad=True)
    result = framework.nn.functional.embedding_bag(
        framework.tensor(INDICES),
        weight,
        framework.tensor(ENDING if options.get("include_last_offset") else OFFSETS),
        per_sample_weights=scales,
        **options,
    )
    gy = framework.tensor(RANDOM_GY[: result.shape[0]], dtype=kind)
    result.backward(gy)
    return result, weight.grad, None if scales is None else scales.grad


RANDOM_GY = RANDOM.normal(size=(4, 5))
OPTIONS: list[dict[str, Any]] = [
    {"mode": "sum"},
    {"mode": "mean"},
    {"mode": "max"},
    {"mode": "sum", "scaled": True},
    {"mode": "sum", "padding_idx": int(INDICES[1])},
    {"mode": "mean", "padding_idx": -2},
    {"mode": "sum", "scaled": True, "padding_idx": int(INDICES[1])},
    {"mode": "sum", "include_last_offset": True},
    {"mode": "mean", "include_last_offset": True},
    {"mode": "mean", "max_norm": 0.5},
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_embedding_bag(options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 5e-2}[dtype]
    for mine, theirs in zip(
        bag(taeda, dtype, **options), bag(torch, dtype, **options), strict=True
    ):
        if theirs is None:
            assert mine is None
            continue
        assert str(mine.dtype) == str(theirs.dtype)
        a, b = mine.detach().double().numpy(), theirs.detach().double().numpy()
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_embedding_bag_of_a_batch() -> None:
    torch = pytest.importorskip("torch")
    for sizes in ((3, 4), (0, 3)):
        index = RANDOM.integers(0, 9, sizes)
        mine = taeda.nn.functional.embedding_bag(taeda.tensor(index), taeda.tensor(WEIGHT))
        theirs = torch.nn.functional.embedding_bag(torch.tensor(index), torch.tensor(WEIGHT))
        np.testing.assert_allclose(mine.numpy(), theirs.numpy())
    empty = taeda.zeros(2, 0, dtype=taeda.int64)  # PyTorch: "step must be nonzero"
    assert taeda.nn.functional.embedding_bag(empty, taeda.ones(3, 2)).tolist() == [[0, 0]] * 2


def test_embedding_bag_scales_gradients_by_frequency() -> None:
    # As embedding does; PyTorch's embedding_bag takes the frequency of other rows.
    w = taeda.ones(4, 1, requires_grad=True)
    index, offsets = taeda.tensor([0, 0, 1, 2, 2, 2]), taeda.tensor([0, 3])
    y = taeda.nn.functional.embedding_bag(index, w, offsets, mode="sum", scale_grad_by_freq=True)
    y.sum().backward()
    assert w.grad is not None and w.grad.flatten().tolist() == [1, 1, 1, 0]


def test_embedding_bag_gradients_of_second_order() -> None:
    F = taeda.nn.functional
    index, offsets = taeda.tensor(INDICES), taeda.tensor(OFFSETS)
    weight = taeda.tensor(WEIGHT, requires_grad=True)
    scales = taeda.tensor(SCALES, requires_grad=True)

    def call(w: Any, s: Any) -> Any:
        return F.embedding_bag(index, w, offsets, mode="sum", per_sample_weights=s)

    assert taeda.autograd.gradcheck(call, [weight, scales])
    assert taeda.autograd.gradgradcheck(call, [weight, scales])


def test_the_first_of_equal_maxima_has_the_gradient() -> None:
    weight = taeda.tensor([[0.0, 7.0], [1.0, 2.0], [1.0, 1.0], [1.0, 2.0]], requires_grad=True)
    index, offsets = taeda.tensor([3, 1, 3, 2, 0]), taeda.tensor([0, 4, 4])
    y = taeda.nn.functional.embedding_bag(index, weight, offsets, mode="max")
    assert y.tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 7.0]]
    y.sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def test_embedding_bag_errors() -> None:
    F = taeda.nn.functional
    weight = taeda.tensor(WEIGHT)
    with pytest.raises(RuntimeError, match="found idx to be 9"):
        F.embedding_bag(taeda.tensor([0, 9]), weight, taeda.tensor([0]))
    with pytest.raises(RuntimeError, match="ascend"):
        F.embedding_bag(taeda.tensor([0, 1, 2]), weight, taeda.tensor([0, 2, 1]))
    with pytest.raises(RuntimeError, match="has to be 0"):
        F.embedding_bag(taeda.tensor([0, 1]), weight, taeda.tensor([1]))
    with pytest.raises(ValueError, match="does not support sparse"):
        F.embedding_bag(taeda.tensor([0, 1]), weight, taeda.tensor([0]), sparse=True, mode="max")


GRIDS = [
    case
    for case in itertools.product(
        ("bilinear", "nearest", "bicubic"),
        ("zeros", "border", "reflection"),
        (False, True),
        ((2, 3, 4, 5), (1, 2, 3, 1, 4), (1, 20, 9, 11)),
    )
    if not (case[0] == "bicubic" and len(case[3]) == 5)
]


@pytest.mark.parametrize("mode, padding, align, sizes", GRIDS)
def test_grid_sample(mode: str, padding: str, align: bool, sizes: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(11)
    n = len(sizes) - 2
    image = random.normal(size=sizes)
    grid = random.uniform(-2.2, 2.2, (sizes[0], *((13,) * n), n))
    gy = random.normal(size=(*sizes[:2], *((13,) * n)))
    results = []
    for framework in (taeda, torch):
        x = framework.tensor(image, requires_grad=True)
        g = framework.tensor(grid, requires_grad=True)
        y = framework.nn.functional.grid_sample(x, g, mode, padding, align)
        y.backward(framework.tensor(gy))
        results.append([t.detach().numpy() for t in (y, x.grad, g.grad)])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_second_derivatives_of_the_nearest_in_forward_mode() -> None:
    image = taeda.tensor(RANDOM.standard_normal((1, 1, 3, 3)), requires_grad=True)
    grid = taeda.tensor(RANDOM.uniform(-0.8, 0.8, (1, 2, 2, 2)), requires_grad=True)

    def call(x: Any, g: Any) -> Any:
        return taeda.nn.functional.grid_sample(x, g, "nearest", align_corners=False)

    assert taeda.autograd.gradgradcheck(call, (image, grid), check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("mode, lost", [("bilinear", "nan"), ("bicubic", "nan"), ("nearest", "0")])
def test_grid_sample_far_outside_and_at_nan(mode: str, lost: str, dtype: taeda.dtype) -> None:
    x = taeda.ones(1, 1, 5, 5, dtype=dtype)
    places = [[1e30, 0.0], [float("nan"), 0.0], [float("-inf"), 0.0], [0.0, 0.0]]
    far = taeda.tensor([[places]], dtype=dtype)
    y = taeda.nn.functional.grid_sample(x, far, mode, align_corners=True)
    np.testing.assert_array_equal(y.flatten().numpy(), [0.0, float(lost), float(lost), 1.0])


def test_grid_sample_errors() -> None:
    F = taeda.nn.functional
    x = taeda.ones(1, 1, 3, 3)
    with pytest.raises(RuntimeError, match="same batch size"):
        F.grid_sample(x, taeda.zeros(2, 1, 1, 2), align_corners=False)
    with pytest.raises(RuntimeError, match="last dimension"):
        F.grid_sample(x, taeda.zeros(1, 1, 1, 3), align_corners=False)
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(x, taeda.zeros(1, 1, 1, 2, dtype=taeda.float64), align_corners=False)


def test_cumprod_differentiates_twice_beside_zeros() -> None:
    x = taeda.tensor([[2.0, 0.0, 3.0], [1.5, -0.5, 0.0], [0.0, 0.0, 4.0]], dtype=taeda.float64)
    for dim in (0, 1):
        assert taeda.autograd.gradgradcheck(
            lambda t, dim=dim: taeda.cumprod(t, dim), [x.clone().requires_grad_()]
        )
    z = taeda.tensor([1 + 2j, 0.5 - 1j, 2j], dtype=taeda.complex128, requires_grad=True)
    assert taeda.autograd.gradgradcheck(lambda t: taeda.cumprod(t, 0), [z])
    torch = pytest.importorskip("torch")
    third = []
    for framework in (taeda, torch):
        t = framework.tensor([2.0, -1.0, 3.0], dtype=framework.float64, requires_grad=True)
        g = framework.cumprod(t, 0).sum()
        for _ in range(3):
            (g,) = framework.autograd.grad(g.sum(), t, create_graph=True)
        third.append(g.detach().numpy())
    np.testing.assert_allclose(*third)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index", [-1, 11])
def test_indices_outside_of_the_weight_are_named(mode: str, index: int) -> None:
    with pytest.raises(RuntimeError, match=f"Expected idx >= 0 .* found idx to be {index}"):
        taeda.nn.functional.embedding_bag(taeda.tensor([[index, 1]]), taeda.ones(10, 2), mode=mode)


def test_maxima_of_no_rows_have_a_history() -> None:
    weight = taeda.ones(3, 2, requires_grad=True)
    empty = taeda.tensor([], dtype=taeda.int64)
    bags = taeda.nn.functional.embedding_bag(empty, weight, taeda.tensor([0, 0]), mode="max")
    bags.sum().backward()
    assert bags.tolist() == [[0, 0], [0, 0]] and weight.grad.tolist() == [[0, 0]] * 3
