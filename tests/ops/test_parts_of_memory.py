"""as_strided_scatter, and parts that share memory without being views."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import taeda


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: (lib.arange(6.0)[2:], (2,), (1,), 0),
        lambda lib: (lib.arange(6.0)[2:], (2,), (1,)),
        lambda lib: (lib.arange(12.0).view(3, 4).T, (2, 2), (1, 2)),
        lambda lib: (lib.arange(12.0).view(3, 4).T[1:], (2, 2), (1, 2), 0),
        lambda lib: (lib.arange(6.0)[1::2], (2,), (2,)),
        lambda lib: (lib.arange(6.0)[:3], (2,), (4,)),
        lambda lib: (lib.zeros(1).expand(3), (2,), (1,)),
        lambda lib: (lib.zeros(2, 1).expand(2, 3), (2,), (1,)),
    ],
)
def test_strided_scatter_counts_in_the_storage_of_any_layout(make: Callable) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (torch, taeda):
        x, *view = make(lib)
        y = lib.as_strided_scatter(x, lib.full(view[0], -1.0), *view)
        results.append((y.tolist(), y.stride(), y.storage_offset()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "view", [lambda b: b[2:8], lambda b: b.view(3, 4).T, lambda b: b[1::2], lambda b: b[:4]]
)
def test_strided_scatter_has_gradients_in_any_layout(view: Callable) -> None:
    """PyTorch refuses those of layouts but one, and counts offsets twice."""
    base = taeda.randn(12, dtype=taeda.float64, requires_grad=True)
    src = taeda.randn(2, dtype=taeda.float64, requires_grad=True)
    call = lambda b, s: taeda.as_strided_scatter(view(b), s, (2,), (2,), 3)  # noqa: E731
    assert taeda.autograd.gradcheck(call, (base, src), check_forward_ad=True)
    assert taeda.autograd.gradgradcheck(call, (base, src))


@pytest.mark.parametrize("name", ["unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"])
def test_parts_that_may_be_written_require_grad_where_they_have_a_history(name: str) -> None:
    sizes = [2, 2] if name.endswith("sizes") else 2
    for dtype in (taeda.float32, taeda.int64):
        part = getattr(taeda, name)(taeda.ones(4, dtype=dtype), sizes)[0]
        assert not part.requires_grad and part.is_leaf
        assert part.add_(1).numpy().tolist() == [2, 2]
    x = taeda.ones(4, requires_grad=True)
    with taeda.no_grad():
        assert not getattr(taeda, name)(x, sizes)[0].requires_grad
    first, second = getattr(taeda, name)(x * 1, sizes)
    first.mul_(3)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3, 3, 1, 1]
