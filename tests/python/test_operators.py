"""Python's operators on tensors: kinds of operands, reflected and in-place forms, conversions."""

import operator

import pytest

import taeda as torch

np = pytest.importorskip("numpy")

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["lt", "le", "eq", "ne", "gt", "ge"]
OPERANDS = {
    "float tensor": lambda m: m.tensor([1.5, -2.0, 4.0]),
    "int tensor": lambda m: m.tensor([3, 5, 2]),
    "bool tensor": lambda m: m.tensor([True, True, True]),
    "double tensor": lambda m: m.tensor([2.5, 1.0, 3.0], dtype=m.float64),
    "0-d tensor": lambda m: m.tensor(2.0),
    "0-d int tensor": lambda m: m.tensor(3),
    "int": lambda m: 3,
    "float": lambda m: 2.5,
    "bool": lambda m: True,
}


def outcome(call):
    try:
        y = call()
    except Exception as error:
        return type(error).__name__
    return str(y.dtype), tuple(y.shape), np.asarray(y.tolist(), dtype="float64").tolist()


def close(mine, theirs):
    if isinstance(mine, str) or isinstance(theirs, str):
        return mine == theirs
    return mine[:2] == theirs[:2] and np.allclose(mine[2], theirs[2], equal_nan=True, rtol=1e-6)


def run(module, name, left, right):
    return outcome(lambda: getattr(operator, name)(OPERANDS[left](module), OPERANDS[right](module)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("right", OPERANDS)
@pytest.mark.parametrize("left", OPERANDS)
@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
def test_like_pytorch(name, left, right):
    oracle = pytest.importorskip("torch")
    if "tensor" not in left and "tensor" not in right:
        pytest.skip("no tensor")
    if name == "pow" and {left, right} <= {"bool tensor", "bool"}:
        pytest.skip("no power of truth values")
    mine, theirs = run(torch, name, left, right), run(oracle, name, left, right)
    assert close(mine, theirs), (mine, theirs)


@pytest.mark.parametrize("right", ["int tensor", "bool tensor", "int", "bool"])
@pytest.mark.parametrize("left", ["int tensor", "bool tensor", "int"])
@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_like_pytorch(name, left, right):
    oracle = pytest.importorskip("torch")
    if "tensor" not in left and "tensor" not in right:
        pytest.skip("no tensor")
    mine, theirs = run(torch, name, left, right), run(oracle, name, left, right)
    assert close(mine, theirs), (mine, theirs)


INPLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("right", OPERANDS)
@pytest.mark.parametrize("left", ["float tensor", "int tensor", "double tensor"])
@pytest.mark.parametrize("name", INPLACE)
def test_inplace_like_pytorch(name, left, right):
    oracle = pytest.importorskip("torch")
    mine, theirs = run(torch, name, left, right), run(oracle, name, left, right)
    assert close(mine, theirs), (mine, theirs)


def test_inplace_keeps_the_object():
    x = torch.tensor([1.0, 2.0])
    y = x
    x += 1
    x *= torch.tensor(2.0)
    assert x is y
    assert x.tolist() == [4.0, 6.0]


def test_matmul_and_unary():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert (x @ x).tolist() == [[-5.0, -10.0], [15.0, 10.0]]
    assert (-x).tolist() == [[-1.0, 2.0], [-3.0, -4.0]]
    assert abs(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (+x) is x
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    assert (~torch.tensor([0, -1])).tolist() == [-1, 0]
    assert divmod(7, 2) == (3, 1)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32", "bool_", "float16"])
def test_numpy_scalars(kind):
    number = getattr(np, kind)(1)
    x = torch.tensor([1.0, 2.0])
    for y in (x + number, number + x, x * number, number * x):
        assert type(y) is torch.Tensor
        assert y.dtype is torch.float32
    assert (x + number).tolist() == [2.0, 3.0]
    assert (number - x).tolist() == [0.0, -1.0] if kind != "bool_" else True


@pytest.mark.parametrize(
    "name", [*ARITHMETIC, *BITWISE, *COMPARISONS, "matmul", "iadd", "itruediv"]
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_numpy_arrays(name, dtype):
    """NumPy computes `tensor + array`; `array + tensor` raises, but for / and ==: as in PyTorch."""
    oracle = pytest.importorskip("torch")
    array = np.array([10.0, 20.0]).astype(
        "int64" if "shift" in name or dtype == "int64" else "float64"
    )

    def outcome(framework, first):
        x = framework.tensor([1, 2], dtype=getattr(framework, dtype))
        try:
            y = getattr(operator, name)(*((array, x) if first else (x, array)))
        except (TypeError, RuntimeError) as error:
            return type(error)
        return (type(y).__name__, str(getattr(y, "dtype", "")), getattr(y, "tolist", lambda: y)())

    for first in (True, False):
        ours, theirs = outcome(torch, first), outcome(oracle, first)
        assert ours == theirs, f"{name}, array first: {first}"


@pytest.mark.parametrize("foreign", ["a", None, [1], object()])
def test_foreign_operands(foreign):
    x = torch.tensor([1.0])
    for name in ARITHMETIC:
        with pytest.raises(TypeError):
            getattr(operator, name)(x, foreign)
        if (name, foreign) != ("mod", "a"):  # formats a string
            with pytest.raises(TypeError):
                getattr(operator, name)(foreign, x)
    assert (x == foreign) is False
    assert (x != foreign) is True
    with pytest.raises(TypeError):
        x < foreign  # noqa: B015


def test_foreign_classes_get_their_turn():
    class Foreign:
        def __radd__(self, other):
            return "reflected"

        def __lt__(self, other):
            return "less"

    x = torch.tensor([1.0])
    assert x + Foreign() == "reflected"
    assert (x > Foreign()) == "less"


def test_large_python_ints():
    x = torch.tensor([1.0])
    assert (x * 2**63).item() == 2.0**63
    with pytest.raises(OverflowError):
        x * 2**70
    with pytest.raises(OverflowError):
        x + -(2**63) - 2**70


def test_conversions():
    assert bool(torch.tensor([0.5]))
    assert not bool(torch.tensor(False))
    assert int(torch.tensor([3.7])) == 3
    assert float(torch.tensor(2)) == 2.0
    assert complex(torch.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20][torch.tensor(1)] == 20
    assert hex(torch.tensor(255)) == "0xff"
    for empty_or_two in (torch.tensor([]), torch.tensor([1, 2])):
        with pytest.raises(RuntimeError, match="ambiguous"):
            bool(empty_or_two)
        with pytest.raises(ValueError):
            int(empty_or_two)
        with pytest.raises(RuntimeError):
            empty_or_two.item()
    with pytest.raises(TypeError):
        [1][torch.tensor(1.0)]
    with pytest.raises(ValueError):
        int(torch.tensor(float("nan")))
    with pytest.raises(OverflowError):
        int(torch.tensor(float("inf")))


def test_item_gives_python_numbers():
    for value in (True, 3, 2.5, 1 + 2j):
        got = torch.tensor(value).item()
        assert type(got) is type(value)
        assert got == value


def test_rdiv_is_rtruediv():
    x = torch.tensor([2.0, 4.0])
    assert x.__rdiv__(1).tolist() == [0.5, 0.25]
