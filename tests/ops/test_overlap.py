"""Writing into memory that overlaps an input or itself: refused where PyTorch refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda

PARTLY = "some elements of the input tensor and the written-to tensor refer to a single memory"
TWICE = "more than one element of the written-to tensor refers to a single memory location"

Call = Callable[[Any, Any], Any]  # of a framework and of its arange(1., 13.)

PARTIAL: dict[str, Call] = {
    "shifted": lambda torch, a: a[1:].add_(a[:-1]),
    "shifted the other way": lambda torch, a: a[:-1].mul_(a[1:]),
    "a row for all": lambda torch, a: a.view(3, 4).sub_(a[:4]),
    "the transpose": lambda torch, a: a[:9].view(3, 3).add_(a[:9].view(3, 3).t()),
    "one element": lambda torch, a: a.div_(a[0]),
    "another shape": lambda torch, a: a.view(1, 12).add_(a),
    "another dtype": lambda torch, a: a[:2].add_(a.view(torch.int32)[1:3]),
    "unary out": lambda torch, a: torch.exp(a[:-1], out=a[1:]),
    "binary out": lambda torch, a: torch.add(a[:-1], 1, out=a[1:]),
    "second of out": lambda torch, a: torch.maximum(torch.ones(11), a[:-1], out=a[1:]),
    "comparison out": lambda torch, a: torch.lt(a[:-1], 3, out=a[1:]),
    "out to resize": lambda torch, a: torch.add(a, 1, out=a[:2]),
    "out of another shape": lambda torch, a: torch.add(a, a, out=a.view(3, 4)),
    "where": lambda torch, a: torch.where(a[:-1] > 3, a[:-1], torch.zeros(11), out=a[1:]),
    "cumsum out": lambda torch, a: torch.cumsum(a[:-1], 0, out=a[1:]),
    "sort out": lambda torch, a: torch.sort(
        a[:-1], out=(a[1:], torch.empty(11, dtype=torch.int64))
    ),
    "clamp out": lambda torch, a: torch.clamp(a[:-1], 2, 3, out=a[1:]),
    "addmv out": lambda torch, a: torch.addmv(a[:2], torch.ones(2, 2), a[:2], out=a[1:3]),
    "index_add out": lambda torch, a: torch.index_add(
        a[:3], 0, torch.tensor([0]), torch.ones(1), out=a[1:4]
    ),
    "cat out": lambda torch, a: torch.cat([a[:2], a[2:4]], out=a[:4]),
    "stack out": lambda torch, a: torch.stack([a[0], a[1]], out=a[1:3]),
    "gather out": lambda torch, a: torch.gather(a[:2], 0, torch.tensor([1, 0]), out=a[:2]),
    "index_select out": lambda torch, a: torch.index_select(
        a[:2], 0, torch.tensor([1, 0]), out=a[:2]
    ),
    "take out": lambda torch, a: torch.take(a, torch.tensor([1, 0]), out=a[:2]),
    "masked_select out": lambda torch, a: torch.masked_select(a, a > 6, out=a[:6]),
    "out without a kernel": lambda torch, a: torch.bitwise_not(a[:-1], out=a[1:]),
    "copy_": lambda torch, a: a[1:].copy_(a[:-1]),
    "copy_ of the transpose": lambda torch, a: a[:9].view(3, 3).copy_(a[:9].view(3, 3).t()),
    "assignment": lambda torch, a: a.__setitem__(slice(1, 4), a[:3]),
    "index_add_": lambda torch, a: a.index_add_(0, torch.tensor([0, 1]), a[:2]),
    "index_copy_": lambda torch, a: a.index_copy_(0, torch.tensor([0, 1]), a[:2]),
    "scatter_": lambda torch, a: a.scatter_(0, torch.tensor([0, 1]), a[:2]),
    "scatter_ of itself": lambda torch, a: a.scatter_(0, torch.arange(12), a),
    "scatter_add_": lambda torch, a: a.scatter_add_(0, torch.tensor([0, 1]), a[:2]),
    "put_": lambda torch, a: a.put_(torch.tensor([0, 1]), a[:2]),
    "index_put_": lambda torch, a: a.index_put_((torch.tensor([0, 1]),), a[:2]),
}

INTERNAL: dict[str, Call] = {
    "unary": lambda torch, a: a[:1].expand(3).exp_(),
    "binary": lambda torch, a: a[:1].expand(3).add_(torch.ones(3)),
    "rows": lambda torch, a: a[:3].view(3, 1).expand(3, 2).mul_(2),
    "out": lambda torch, a: torch.add(torch.ones(3), 1, out=a[:1].expand(3)),
    "copy_": lambda torch, a: a[:1].expand(3).copy_(torch.ones(3)),
    "scatter_": lambda torch, a: a[:1].expand(3).scatter_(0, torch.tensor([0]), 1.0),
    "random": lambda torch, a: a[:1].expand(3).normal_(),
    "without a kernel": lambda torch, a: a[:1].expand(3).bitwise_not_(),
    "a dtype that does not fit": lambda torch, a: torch.exp(
        a[:3], out=torch.ones(1, dtype=torch.int64).expand(3)
    ),
}

ALLOWED: dict[str, Call] = {
    "fully": lambda torch, a: a.add_(a),
    "fully through a view": lambda torch, a: a.add_(a.view(12)),
    "fully as out": lambda torch, a: torch.add(a, a, out=a.view(12)),
    "apart": lambda torch, a: a[:6].add_(a[6:]),
    "interleaved": lambda torch, a: a[::2].add_(a[1::2]),
    "an element outside": lambda torch, a: a[2:].add_(a[0]),
    "fill_": lambda torch, a: a[:1].expand(3).fill_(5.0),
    "zero_": lambda torch, a: a[:1].expand(3).zero_(),
    "an expanded source": lambda torch, a: a.copy_(torch.ones(1).expand(12)),
    "the same bits": lambda torch, a: a.copy_(a.view(torch.int32)),
    "cumsum into itself": lambda torch, a: torch.cumsum(a, 0, out=a),
    "sort into itself": lambda torch, a: torch.sort(
        a, descending=True, out=(a, torch.empty(12, dtype=torch.int64))
    ),
    "product of matrices": lambda torch, a: torch.mm(
        a[:4].view(2, 2), a[2:6].view(2, 2), out=a[8:].view(2, 2)
    ),
    "scatter_ of a copy": lambda torch, a: a.scatter_(0, torch.tensor([0, 1]), a[:2].clone()),
}


def ones(torch: Any) -> Any:
    return torch.ones(3, dtype=torch.int64)


AT_ITSELF: dict[
    str, Call
] = {  # of a framework and of its arange(3), which says where it is written
    "index_add_": lambda torch, i: i.index_add_(0, i, ones(torch)),
    "index_copy_": lambda torch, i: i.index_copy_(0, i, ones(torch)),
    "index_fill_": lambda torch, i: i.index_fill_(0, i, 1),
    "scatter_": lambda torch, i: i.scatter_(0, i, ones(torch)),
    "scatter_ of a number": lambda torch, i: i.scatter_(0, i, 1),
    "scatter_ with reduce": lambda torch, i: i.scatter_(0, i, 2, reduce="multiply"),
    "scatter_add_": lambda torch, i: i.scatter_add_(0, i, ones(torch)),
    "put_": lambda torch, i: i.put_(i, ones(torch)),
    "index_put_": lambda torch, i: i.index_put_((i,), ones(torch)),
    "assignment": lambda torch, i: i.__setitem__(i, 1),
}


@pytest.mark.parametrize("call", AT_ITSELF.values(), ids=AT_ITSELF)
def test_indices_in_the_written_memory(call: Call) -> None:
    i = taeda.arange(3)
    with pytest.raises(RuntimeError, match=PARTLY):
        call(taeda, i)
    assert i.tolist() == [0, 1, 2]
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=PARTLY):
        call(torch, torch.arange(3))


def test_reductions_that_write_nothing_may_scatter_a_tensor_to_itself() -> None:
    torch = pytest.importorskip("torch")
    for call in (
        lambda x: x.scatter_reduce(0, x, x, "sum"),
        lambda x: x.index_reduce(0, x, x, "prod"),
    ):
        assert call(taeda.arange(3)).tolist() == call(torch.arange(3)).tolist()


def check_refused(call: Call, message: str) -> None:
    a = taeda.arange(1.0, 13.0)
    with pytest.raises(RuntimeError, match=message):
        call(taeda, a)
    assert a.tolist() == list(range(1, 13))
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=message):
        call(torch, torch.arange(1.0, 13.0))


@pytest.mark.parametrize("call", PARTIAL.values(), ids=PARTIAL)
def test_an_input_that_the_result_would_overwrite(call: Call) -> None:
    check_refused(call, PARTLY)


@pytest.mark.parametrize("call", INTERNAL.values(), ids=INTERNAL)
def test_a_result_that_overlaps_itself(call: Call) -> None:
    check_refused(call, TWICE)


@pytest.mark.parametrize("call", ALLOWED.values(), ids=ALLOWED)
def test_overlap_without_harm(call: Call) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = taeda.arange(1.0, 13.0), torch.arange(1.0, 13.0)
    call(taeda, mine)
    call(torch, theirs)
    assert mine.tolist() == theirs.tolist()


def test_overlap_that_is_not_decided_is_read_from_a_copy() -> None:
    # A column of the written matrix: PyTorch reads what it has already overwritten.
    a = taeda.arange(1.0, 13.0).view(3, 4)
    assert a.sub_(a[:, :1]).tolist() == [[0, 1, 2, 3]] * 3


def test_meta_tensors_have_no_memory_to_share() -> None:
    assert taeda.ones(1, device="meta").expand(3).add_(1).shape == (3,)
    assert taeda.ones(4, device="meta")[1:].copy_(taeda.ones(3, device="meta")).shape == (3,)
