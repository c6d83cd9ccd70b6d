"""taeda.testing: tolerances and messages as PyTorch's."""

import math

import pytest

import taeda
from taeda.testing import assert_close, make_tensor
from taeda.testing._comparison import (
    BooleanPair,
    NonePair,
    NumberPair,
    ObjectPair,
    TensorLikePair,
    not_close_error_metas,
)
from taeda.utils import _pytree as pytree


def _message(torch, a, b, **kwargs):
    def tensors(value):
        if isinstance(value, (list, tuple)) and value and value[0] == "t":
            return torch.tensor(value[1], dtype=getattr(torch, value[2]))
        if isinstance(value, list):
            return [tensors(item) for item in value]
        if isinstance(value, dict):
            return {key: tensors(item) for key, item in value.items()}
        return value

    try:
        torch.testing.assert_close(tensors(a), tensors(b), **kwargs)
    except (AssertionError, TypeError, ValueError) as error:
        return type(error), str(error)
    return None


CASES = [
    (("t", [1.0, 2.0], "float32"), ("t", [1.0, 2.0], "float32"), {}),
    (("t", [1.0, 2.0], "float32"), ("t", [1.0, 2.000001], "float32"), {}),
    (("t", [1.0, 2.0, 3.0], "float32"), ("t", [1.0, 2.5, 3.5], "float32"), {}),
    (("t", [[1.0, 2.0]], "float64"), ("t", [[1.0, 2.5]], "float64"), {"rtol": 0.1, "atol": 0.0}),
    (("t", [1.0], "float32"), ("t", [1.0, 2.0], "float32"), {}),
    (("t", [1.0], "float32"), ("t", [1.0], "float64"), {}),
    (("t", [1.0], "float32"), ("t", [1.0], "float64"), {"check_dtype": False}),
    (("t", [1, 2], "int64"), ("t", [1, 4], "int64"), {}),
    (("t", [True, False], "bool"), ("t", [True, True], "bool"), {}),
    (("t", [math.nan], "float32"), ("t", [math.nan], "float32"), {}),
    (("t", [math.nan], "float32"), ("t", [math.nan], "float32"), {"equal_nan": True}),
    (("t", 1.0, "float32"), ("t", 2.0, "float32"), {}),
    ([("t", [1.0], "float32")], [("t", [2.0], "float32")], {}),
    ([("t", [1.0], "float32")], [], {}),
    ({"a": ("t", [1.0], "float32")}, {"a": ("t", [2.0], "float32")}, {}),
    ({"a": 1}, {"b": 1}, {}),
    (1.0, 1.0 + 1e-9, {}),
    (1.0, 2.0, {}),
    (1, 2, {}),
    (1, 1.0, {}),
    (True, False, {}),
    (None, None, {}),
    (("t", [1.0], "float32"), ("t", [1.0], "float32"), {"rtol": 1.0}),
    (("t", [1.0], "float32"), ("t", [2.0], "float32"), {"msg": "mine"}),
    (("t", [1 + 1j], "complex64"), ("t", [1 + 2j], "complex64"), {}),
]


@pytest.mark.parametrize("a, b, kwargs", CASES, ids=str)
def test_messages_equal_pytorchs(a, b, kwargs):
    torch = pytest.importorskip("torch")
    assert _message(taeda, a, b, **kwargs) == _message(torch, a, b, **kwargs)


def test_assert_close_golden():
    assert_close(taeda.tensor([1.0]), taeda.tensor([1.0 + 1e-6]))
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 2 \(50.0%\)"):
        assert_close(taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 3.0]))
    with pytest.raises(AssertionError, match="attribute 'shape' do not match"):
        assert_close(taeda.ones(1), taeda.ones(2))


@pytest.mark.parametrize("name", "bool uint8 int8 int64 float16 float32 float64 complex64".split())
def test_make_tensor_equals_pytorchs(name):
    torch = pytest.importorskip("torch")

    def make(torch):
        torch.manual_seed(0)
        x = torch.testing.make_tensor((3, 4), dtype=getattr(torch, name), device="cpu")
        return x.tolist()

    assert make(taeda) == make(torch)


def test_make_tensor_options():
    x = make_tensor(3, 4, dtype=taeda.float32, low=2, high=3, requires_grad=True)
    assert x.requires_grad and bool((x >= 2).all()) and bool((x < 3).all())
    assert not make_tensor((3, 4), dtype=taeda.float32, noncontiguous=True).is_contiguous()
    x = make_tensor((1000,), dtype=taeda.uint8, low=0, high=2, exclude_zero=True)
    assert bool((x == 1).all())
    with pytest.raises(ValueError, match="only supported for floating"):
        make_tensor((1,), dtype=taeda.int64, requires_grad=True)


def test_pytree():
    tree = {"a": [1, (2, 3)], "b": {"c": 4}}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4] and spec.num_leaves == 4
    assert pytree.tree_unflatten([5, 6, 7, 8], spec) == {"a": [5, (6, 7)], "b": {"c": 8}}
    assert pytree.tree_map(lambda x, y: x + y, tree, tree)["a"][1] == (4, 6)
    assert pytree.tree_map_only(int, str, [1, 2.5]) == ["1", 2.5]
    assert pytree.tree_all(lambda x: x > 0, tree) and not pytree.tree_any(lambda x: x > 9, tree)
    with pytest.raises(ValueError, match="leaves"):
        pytree.tree_unflatten([1], spec)


class _Lengths(TensorLikePair):
    """A pair of strings, compared by their lengths."""

    def __init__(self, actual, expected, **options):
        self._check_inputs_isinstance(actual, expected, cls=str)
        super().__init__(taeda.tensor(len(actual)), taeda.tensor(len(expected)), **options)


@pytest.mark.parametrize(
    "actual, expected, found",
    [
        (["ab", 1], ["cd", 1], []),
        (["ab", 1], ["c", 1], [(0,)]),
        (["ab", 1], ["c", 2], [(0,), (1,)]),
        ({"a": [True, None]}, {"a": [False, 1]}, [("a", 0), ("a", 1)]),
        ([object], [int], [(0,)]),
    ],
)
def test_pairs_of_ones_own(actual, expected, found):
    kinds = (NonePair, BooleanPair, NumberPair, _Lengths, ObjectPair)
    errors = not_close_error_metas(actual, expected, pair_types=kinds, rtol=0, atol=0)
    assert [error.id for error in errors] == found
    assert all(isinstance(error.to_error(), AssertionError) for error in errors)


def test_pairs_that_no_class_supports():
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        not_close_error_metas("a", "a", pair_types=(NumberPair,))
    with pytest.raises(AssertionError, match=r"length of the sequences mismatch: 1 != 2"):
        not_close_error_metas([1], [1, 2])
    error = not_close_error_metas([1], [2], pair_types=(NumberPair,))[0]
    assert "item [0]" in str(error.to_error())
    assert str(error.to_error(lambda text: "mine: " + text.splitlines()[0])).startswith("mine: ")


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.complex64])
def test_make_tensor_of_one_value(dtype):
    with pytest.warns(FutureWarning, match="Passing `low==high`"):
        x = make_tensor(3, dtype=dtype, low=1.5, high=1.5)
    assert x.tolist() == [1.5 + 1.5j if dtype.is_complex else 1.5] * 3
    with pytest.raises(ValueError, match="`low` must be less than `high`, but got 2 >= 2"):
        make_tensor(3, dtype=taeda.int64, low=2, high=2)
