"""torch.empty_permuted and Tensor.new_empty_strided: sizes, strides, errors, beside PyTorch's."""

import pytest

import taeda

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "size, layout",
    [((2, 3, 5), (0, 2, 1)), ((2, 3), (1, 0)), ((4,), (0,)), ((), ()), ((2, 0, 3), (2, 0, 1))],
)
def test_empty_permuted(size, layout):
    ours = taeda.empty_permuted(size, layout, dtype=taeda.float64)
    assert ours.dtype == taeda.float64 and ours.shape == size
    assert ours.stride() == torch.empty_permuted(size, layout).stride()


@pytest.mark.parametrize("layout", [(0, 0), (0,), (0, 3), (0, -1)])
def test_empty_permuted_refuses(layout):
    messages = []
    for framework in (taeda, torch):
        with pytest.raises(RuntimeError) as error:
            framework.empty_permuted((2, 3), layout)
        messages.append(str(error.value).split(".")[0])
    assert messages[0] == messages[1]


def test_new_empty_strided():
    like = taeda.empty(2, dtype=taeda.int32)
    x = like.new_empty_strided((2, 3), (1, 2))
    assert (x.dtype, x.shape, x.stride()) == (taeda.int32, (2, 3), (1, 2))
    assert like.new_empty_strided((2,), (1,), dtype=taeda.float16).dtype == taeda.float16
    with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(1\) must match"):
        like.new_empty_strided((2,), (1, 2))


def test_unsafe_parts_may_be_written():
    for parts in (
        lambda x: x.unsafe_chunk(2),
        lambda x: taeda.unsafe_split(x, 3),
        lambda x: taeda.unsafe_split_with_sizes(x, (3, 3)),
    ):
        x = taeda.ones(6, requires_grad=True)
        first, second = parts(x * 1)
        first.mul_(3)
        (first.sum() + second.sum()).backward()
        assert x.grad.tolist() == [3, 3, 3, 1, 1, 1]
