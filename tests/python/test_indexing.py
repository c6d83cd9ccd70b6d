# ruff: noqa: E501
"""x[...] and x[...] = y against NumPy and PyTorch: values, views, errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taeda as torch

np = pytest.importorskip("numpy")

SHAPE = (2, 3, 4)

READS = [
    "x[1]", "x[-1]", "x[0, 2]", "x[1, -1, -4]", "x[...]", "x[..., 0]", "x[0, ...]", "x[0, ..., 1]",
    "x[...,...]" , "x[()]", "x[None]", "x[:, None]", "x[..., None]", "x[None, ..., None]",
    "x[:]", "x[1:]", "x[:-1]", "x[5:]", "x[-9:9]", "x[:, ::2]", "x[:, 1::2, 2:]", "x[0:2:3]", "x[2:1]",
    "x[True]", "x[False]", "x[..., True]", "x[0, True]", "x[:, False]",
    "x[[0, 1]]", "x[[-1]]", "x[[]]", "x[[0, 1], [0, 1]]", "x[[[0], [1]], [0, 1]]", "x[:, [0, 2]]",
    "x[..., [0, 2]]", "x[[True, False]]", "x[:, [True, False, True]]", "x[0, :, [0, 1]]",
    "x[[0, 1], :, [0, 1]]", "x[:, [0, 1], [0, 1]]", "x[[0, 1], None, [0, 1]]", "x[0:1, [0], True]",
    "x[t([0, 1])]", "x[t(1)]", "x[t([[0, 1], [1, 0]])]", "x[t([0, 1]), t([[0], [1]])]",
    "x[t([True, False])]", "x[:, t([True, False, True])]", "x[t([[True] * 3, [False] * 3])]",
    "x[x > 3]", "x[x < 0]", "x[:, x[0] > 5]", "x[t(True)]", "x[t([], i)]", "x[t([0, 1]), ...]",
    "x[t([0, 1]), 1:, t([1, 1])]", "x[..., t([0, 1]), :]", "x[t([-1, -2])]",
    "x[np.array([0, 1])]", "x[np.int64(1)]", "x[np.array(1)]", "x[np.array([True, False])]", "x[range(2)]",
    "x[slice(t(0), t(1))]", "x[1:2**70]", "x[(0, 1)]",
]  # fmt: skip

WRITES = [
    ("x[0]", "1.5"), ("x[0]", "True"), ("x[0, 1]", "-1"), ("x[..., 0]", "2"), ("x[()]", "3"), ("x[...]", "4"),
    ("x[:, ::2]", "5"), ("x[None]", "6"), ("x[True]", "7"), ("x[False]", "8"), ("x[5:]", "9"),
    ("x[0]", "t([1., 2., 3., 4.])"), ("x[0]", "t([[1.], [2.], [3.]])"), ("x[0]", "t([[[1., 2., 3., 4.]]])"),
    ("x[:, 0]", "t([[1.], [2.]])"), ("x[0, 0, 0]", "t([9.])"), ("x[0]", "t(3)"),
    ("x[[0, 1]]", "1"), ("x[[0, 1], [0, 1]]", "t([[1., 2., 3., 4.], [5., 6., 7., 8.]])"),
    ("x[[1, 0]]", "x.clone() if hasattr(x, 'clone') else x.copy()"), ("x[:, [0, 2]]", "t([1., 2., 3., 4.])"),
    ("x[x > 3]", "0"), ("x[x > 3]", "-x[x > 3]"), ("x[:, x[0] > 5]", "1"), ("x[x > 100]", "1"),
    ("x[t([True, False])]", "t(2.)"), ("x[0, :, [0, 1]]", "t([1., 2.])"), ("x[..., [0, 1], :]", "3"),
    ("x[t([0, 0])]", "t([[[1.]], [[1.]]])"),
]  # fmt: skip

BAD_READS = [
    "x[2]", "x[-3]", "x[0, 3]", "x[0, 0, 0, 0]", "x[..., 0, 0, 0, 0]", "x[::-1]", "x[::0]", "x['a']", "x[1.5]",
    "x[{}]", "x[object()]", "x[2**70]", "x[[0, 2]]", "x[[-3]]", "x[t([0, 5])]", "x[t([0.5])]",
    "x[t([True, False, True])]", "x[t([[True, True]])]", "x[[0, 1], [0, 1, 2]]", "x[slice('a')]",
    "x[0][0][0][0]", "x[0, 0, 0][:]", "x[np.bool_(True)]", "x[t([0], h)]",
]  # fmt: skip

BAD_WRITES = [
    ("x[0]", "'a'"), ("x[0]", "[1, 2]"), ("x[0]", "None"), ("x[0]", "t([1., 2., 3., 4., 5.])"),
    ("x[0, 0]", "t([[1.], [2.]])"), ("x[x > 3]", "t([1., 2., 3.])"), ("x[[0, 1]]", "t([[1.] * 5] * 2)"),
    ("x[[0, 5]]", "1"), ("x[5]", "1"), ("x[0]", "2**70"), ("x[0, 0, 0]", "t([1., 2.])"), ("x[0, 0, 0, 0]", "1"),
]  # fmt: skip


def names(module, dtype="float32"):
    x = module.arange(24, dtype=getattr(module, dtype)).reshape(SHAPE)
    return {
        "x": x, "np": np, "i": module.int64, "h": module.int16,
        "t": lambda v, d=None: module.tensor(v, dtype=d),
    }  # fmt: skip


def outcome(module, code, result="x", dtype="float32"):
    scope = names(module, dtype)
    try:
        exec(code, scope)
    except Exception as error:
        return type(error).__name__
    value = scope[result]
    return tuple(value.shape), value.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", READS)
def test_reads_like_pytorch(text):
    oracle = pytest.importorskip("torch")
    mine = outcome(torch, f"y = {text}", "y")
    assert mine == outcome(oracle, f"y = {text}", "y")
    assert isinstance(mine, tuple), f"{text} raised {mine}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("place", "value"), WRITES)
def test_writes_like_pytorch(place, value):
    oracle = pytest.importorskip("torch")
    mine = outcome(torch, f"{place} = {value}")
    assert mine == outcome(oracle, f"{place} = {value}")
    assert isinstance(mine, tuple), f"{place} = {value} raised {mine}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", BAD_READS)
def test_bad_reads_like_pytorch(text):
    oracle = pytest.importorskip("torch")
    mine = outcome(torch, f"y = {text}", "y")
    assert isinstance(mine, str)
    assert mine == outcome(oracle, f"y = {text}", "y")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("place", "value"), BAD_WRITES)
def test_bad_writes_like_pytorch(place, value):
    oracle = pytest.importorskip("torch")
    mine = outcome(torch, f"{place} = {value}")
    assert isinstance(mine, str)
    assert mine == outcome(oracle, f"{place} = {value}")


MESSAGES = {
    "x[2]": "index 2 is out of bounds for dimension 0 with size 2",
    "x[0, 3]": "index 3 is out of bounds for dimension 1 with size 3",
    "x[0, 0, 0, 0]": "too many indices for tensor of dimension 3",
    "x[::-1]": "step must be greater than zero",
    "x[1.5]": "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
    "(got float)",
    "x[0][0][0][0]": "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
    "convert a 0-dim tensor to a number",
    "x[t([True, False, True])]": "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor "
    "[2, 3, 4] at index 0",
    "x[t([0.5])]": "tensors used as indices must be long, int, byte or bool tensors",
    "x.__setitem__(0, 'a')": "can't assign a str to a torch.FloatTensor",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MESSAGES.items())
def test_messages(text, message):
    with pytest.raises(Exception) as caught:
        eval(text, names(torch))
    assert str(caught.value) == message


def test_basic_indexing_makes_views_and_advanced_copies():
    x = torch.arange(6.0).reshape(2, 3).clone()
    for view in (x[0], x[:, 1], x[..., None], x[()], x[...], x[1:], x[None]):
        assert view._base is x
        assert view.untyped_storage() is x.untyped_storage()
        assert view is not x
    for copied in (x[[0]], x[x > 1], x[torch.tensor([0])], x[True]):
        assert copied.untyped_storage() is not x.untyped_storage()


def test_a_failed_write_changes_nothing():
    x = torch.arange(6.0).reshape(2, 3)
    before = x.tolist()
    for index, value in (([0, 5], 1), (0, torch.ones(7)), (x > 2, torch.ones(2))):
        with pytest.raises((IndexError, RuntimeError)):
            x[index] = value
    assert x.tolist() == before


def test_deleting_items():
    x = torch.arange(3.0)
    with pytest.raises(TypeError, match="deleting"):
        del x[0]


def test_iteration_and_length():
    x = torch.arange(6).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    a, b = torch.tensor([1, 2])
    assert (a.item(), b.item()) == (1, 2)
    for call in (len, list):
        with pytest.raises(TypeError):
            call(torch.tensor(1))
    assert 3 in x
    assert 7 not in x
    with pytest.raises(RuntimeError):
        "a" in x  # noqa: B015


@st.composite
def index_items(draw):
    """One index for SHAPE that NumPy and we understand alike (positive steps)."""
    items, dim, taken = [], 0, set()
    while dim < 3 and draw(st.integers(0, 4)):
        size = SHAPE[dim]
        # NumPy takes ints beside lists for index arrays, PyTorch does not.
        kinds = {"int", "slice", "none", "list", "mask"} - taken
        kind = draw(st.sampled_from(sorted(kinds)))
        taken |= {"int": {"list", "mask"}, "list": {"int"}, "mask": {"int"}}.get(kind, set())
        if kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-6, 6)
            items.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "none":
            items.append(None)
            continue
        elif kind == "list":
            items.append(draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=2)))
        else:
            mask = draw(st.permutations([True, True] + [False] * (size - 2)))
            items.append(list(mask))
        dim += 1
    if draw(st.booleans()):
        # Between index arrays an Ellipsis of no dimensions keeps NumPy's apart, not PyTorch's.
        items.insert(draw(st.sampled_from([0, len(items)])), Ellipsis)
    return tuple(items)


def fits(index):
    """Whether an Ellipsis moved a later index to a dimension of another size."""
    try:
        np.empty(SHAPE)[index]
    except IndexError:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(index_items().filter(fits))
def test_reads_like_numpy(index):
    expected = np.arange(24).reshape(SHAPE)[index]
    x = torch.arange(24).reshape(SHAPE)[index]
    assert tuple(x.shape) == expected.shape
    assert x.tolist() == expected.tolist()


@settings(max_examples=400, deadline=None)
@given(index_items().filter(fits))
def test_writes_like_numpy(index):
    expected = np.arange(24).reshape(SHAPE).copy()
    x = torch.arange(24).reshape(SHAPE)
    expected[index] = -1
    x[index] = -1
    assert x.tolist() == expected.tolist()
    values = np.arange(expected[index].size).reshape(expected[index].shape)
    try:
        x[index] = torch.from_numpy(values.copy())
    except RuntimeError:
        raise AssertionError(f"{index} took no values of its own shape") from None
    if len({tuple(p) for p in np.argwhere(expected == -1)}) == values.size:  # no position twice
        expected[index] = values
        assert x.tolist() == expected.tolist()
