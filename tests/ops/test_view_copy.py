"""Parts of a tensor copied into memory of the caller's: split_copy, unbind_copy with out=."""

from __future__ import annotations

import numpy as np
import pytest

import taeda as torch

VALUES = np.arange(6, dtype="f4").reshape(2, 3)
COPIES = {
    "split_copy": ((2, 1), np.split(VALUES, [2], 1)),
    "split_with_sizes_copy": (((1, 2), 1), np.split(VALUES, [1], 1)),
    "unbind_copy": ((0,), list(VALUES)),
}
RESIZES = ("split_with_sizes_copy", "unbind_copy")


@pytest.fixture(params=COPIES)
def name(request) -> str:
    return request.param


def call(name: str, out, dtype=torch.float32, **kwargs):
    x = torch.tensor(VALUES, dtype=dtype, **kwargs)
    return getattr(torch, name)(x, *COPIES[name][0], out=out)


def empty(name: str, dtype=torch.float32) -> list:
    return [torch.empty(part.shape, dtype=dtype) for part in COPIES[name][1]]


def check(name: str, out) -> None:
    for tensor, part in zip(out, COPIES[name][1], strict=True):
        np.testing.assert_array_equal(tensor.detach().numpy(), part)


def test_parts_are_written_to_out_and_nothing_returned(name: str) -> None:
    for kind in list, tuple:
        out = kind(empty(name))
        assert call(name, out) is None
        check(name, out)


def test_without_out_the_parts_are_returned_and_have_gradients(name: str) -> None:
    x = torch.tensor(VALUES, requires_grad=True)
    parts = getattr(torch, name)(x, *COPIES[name][0])
    check(name, parts)
    (parts[1] * 3).sum().backward()
    expected = np.isin(VALUES, COPIES[name][1][1]) * 3
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    assert all(part.data_ptr() != x.data_ptr() for part in parts)


def test_strided_memory_is_written(name: str) -> None:
    whole = [torch.zeros(*t.shape, 2) for t in empty(name)]
    call(name, [t[..., 1] for t in whole])
    check(name, [t[..., 1] for t in whole])
    assert not any(t[..., 0].any() for t in whole)


@pytest.mark.parametrize("name", RESIZES, indirect=True)
def test_empty_out_is_resized_and_larger_out_with_a_warning(name: str) -> None:
    out = [torch.empty(0), torch.empty(0)]
    call(name, out)
    check(name, out)
    out = [torch.empty(5, 4), torch.empty(5, 4)]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        call(name, out)
    check(name, out)


def test_split_copy_converts_and_broadcasts_but_does_not_resize() -> None:
    out = [torch.empty(2, 2, 2, dtype=torch.int32), torch.empty(2, 2, 1, dtype=torch.int32)]
    call("split_copy", out)
    for row in 0, 1:
        check("split_copy", [t[row] for t in out])
    with pytest.raises(RuntimeError, match="size"):
        call("split_copy", [torch.empty(0), torch.empty(0)])


@pytest.mark.parametrize("name", RESIZES, indirect=True)
def test_out_of_another_dtype_is_refused_and_not_written(name: str) -> None:
    out = empty(name)[:1] + empty(name, torch.float64)[1:]
    out[0].zero_()
    with pytest.raises(RuntimeError, match=r"have dtype torch\.float32, but got torch\.float64"):
        call(name, out)
    assert not out[0].any()


def test_out_of_another_length_or_type_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name}.. expected an out= argument of size 2, got"):
        call(name, empty(name)[:1])
    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not Tensor"):
        call(name, torch.empty(2, 3))
    with pytest.raises(TypeError, match="element 0 in argument 'out', but got int"):
        call(name, [1, 2])


def test_what_is_written_to_out_has_no_graph(name: str) -> None:
    out = empty(name)
    call(name, out, requires_grad=True)
    check(name, out)
    assert not any(t.requires_grad for t in out)


def test_unbind_copy_refuses_out_that_requires_grad() -> None:
    out = [t.requires_grad_() for t in empty("unbind_copy")]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call("unbind_copy", out)
    with torch.no_grad():
        call("unbind_copy", out)
    check("unbind_copy", out)
