"""Views and sizes beyond the grid: strides, memory formats, copies of views, written elsewhere."""

from __future__ import annotations

import pytest

import taeda as torch


def test_expand_gives_leading_ones_the_strides_of_unsqueeze() -> None:
    x = torch.rand(5)
    assert x.expand(1, 1, 5).stride() == x[None, None].stride() == (5, 5, 1)
    assert x.expand(1, 4, 5).stride() == (0, 0, 1)
    assert x.expand(4, 1, 5).stride() == (0, 5, 1)


def test_expand_like_pytorch() -> None:
    oracle = pytest.importorskip("torch")
    for shape, size in (((5,), (1, 1, 5)), ((2, 1), (1, 2, 3)), ((), (1, 1)), ((0,), (1, 0))):
        mine = torch.zeros(shape).expand(size)
        theirs = oracle.zeros(shape).expand(size)
        assert mine.stride() == theirs.stride(), (shape, size)


def test_resize_to_the_same_size_changes_nothing() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    assert x.resize_((3, 2)) is x
    assert x.stride() == (1, 3)
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    x.resize_((3, 2), memory_format=torch.contiguous_format)
    assert x.stride() == (2, 1)
    with pytest.raises(RuntimeError, match="memory format"):
        x.resize_((3, 2), memory_format=torch.preserve_format)


@pytest.mark.parametrize(
    ("shape", "memory_format"),
    [
        ((2, 3, 4, 5), torch.channels_last),
        ((2, 3, 4, 5, 6), torch.channels_last_3d),
        ((2, 3), torch.contiguous_format),
    ],
)
def test_resize_as_preserves_the_memory_format(
    shape: tuple[int, ...], memory_format: torch.memory_format
) -> None:
    template = torch.empty(shape).contiguous(memory_format=memory_format)
    x = torch.empty(template.numel())
    assert x.resize_as_(template).is_contiguous()
    x.resize_as_(template, memory_format=torch.preserve_format)
    assert x.stride() == template.stride()


def test_copies_of_views_into_out() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for name, arguments, view in (
        ("diagonal", (), x.diagonal()),
        ("transpose", (0, 1), x.t()),
        ("select", (1, 2), x[:, 2]),
        ("slice", (1, 0, 2), x[:, :2]),
        ("unsqueeze", (0,), x[None]),
    ):
        out = torch.empty(0)
        assert getattr(torch, name + "_copy")(x, *arguments, out=out) is out
        assert out.tolist() == view.tolist()
        assert out.shape == view.shape


def test_adjoint_of_a_vector_names_the_reason() -> None:
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        torch.ones(2).adjoint()


def test_view_as_complex_of_a_number_names_the_reason() -> None:
    with pytest.raises(RuntimeError, match="Input tensor must have one or more dimensions"):
        torch.view_as_complex(torch.tensor(1.0))


def test_movedim_says_which_list_repeats_a_dimension() -> None:
    oracle = pytest.importorskip("torch")

    def outcome(of, shape, source, destination):
        try:
            return tuple(of.zeros(shape).movedim(source, destination).stride())
        except (RuntimeError, IndexError) as error:
            return type(error).__name__, str(error)

    shape = (2, 3, 4)
    for source, destination in (
        ((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, -3), (0, 1)), ((0, 1), (0,)), ((0, 5), (0, 1)),
        ((0, 1), (-1, 0)), (0, 2), ((), ()), ((2, 0, 1), (0, 1, 2)),
    ):  # fmt: skip
        mine, theirs = (outcome(of, shape, source, destination) for of in (torch, oracle))
        assert mine == theirs, (source, destination)
    for source, destination in ((0, 0), (-1, 0), ((), ()), (1, 0), ((0, -1), (0, 0))):
        mine, theirs = (outcome(of, (), source, destination) for of in (torch, oracle))
        assert mine == theirs, (source, destination)
