# ruff: noqa: E501
"""torch.tensor and its kin: dtype inference, nesting, ranges, errors, compared with PyTorch."""

import math

import pytest

import taeda as torch

DATA = [
    "3",
    "3.5",
    "True",
    "1 + 2j",
    "[]",
    "[[], []]",
    "[1, 2, 3]",
    "[1, 2.5]",
    "[True, False]",
    "[True, 2]",
    "[True, 2.5]",
    "[1, 2j]",
    "(1, (2,))[:1]",
    "[[1, 2], [3, 4]]",
    "[[[1.0]], [[2.0]]]",
    "range(5)",
    "[range(2), range(2)]",
    "[float('nan'), float('inf')]",
    "[1e40]",
    "[2**62]",
    "[[1], [2, 3]]",
    "[1, [2]]",
    "[[1], 2]",
    "'a'",
    "['a']",
    "[1, 'a']",
    "None",
    "[None]",
    "{1}",
    "{1: 2}",
    "[2**70]",
    "b'a'",
    "bytearray(b'ab')",
    "object()",
    "[np.float64(1.5)]",
    "[np.float32(1.5), 2]",
    "[np.int16(3)]",
    "np.float32(2.5)",
    "np.array([1, 2])",
    "np.array([1.5, 2], dtype='f')",
    "[np.array([1, 2]), np.array([3, 4])]",
    "np.array(5)",
    "np.array([True])",
    "np.array(['a'])",
    "np.array([object()])",
    "np.datetime64('2020')",
    "[1.0, np.datetime64('2020')]",
    "np.timedelta64(1)",
    "[[np.timedelta64(1, 's')]]",
    "np.array([np.datetime64('2020')])",
    "np.void(b'abc')",
    "[np.void(b'abc')]",
    "np.array((1, 2), dtype='i4,i4')[()]",
    "np.str_('a')",
    "[np.str_('a')]",
    "np.bytes_(b'a')",
    "[np.bytes_(b'a')]",
    "np.longdouble(1)",
    "[np.longdouble(1)]",
    "np.clongdouble(1)",
    "[np.object_(None)]",
    "[np.longlong(3)]",
    "[T.tensor(1), 2.0]",
    "[T.tensor(1.5), T.tensor(2)]",
    "[T.ones(2)]",
]


def outcome(module, text, **options):
    np = pytest.importorskip("numpy")
    try:
        x = eval(f"T.tensor({text}, **options)", {"T": module, "np": np, "options": options})
    except Exception as error:
        return type(error).__name__
    return str(x.dtype), tuple(x.shape), repr(x.tolist())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", DATA)
def test_like_pytorch(text):
    oracle = pytest.importorskip("torch")
    assert outcome(torch, text) == outcome(oracle, text)


@pytest.mark.parametrize("make", ["tensor", "as_tensor", "asarray"])
def test_numpy_scalars_that_are_no_numbers(make):
    np = pytest.importorskip("numpy")
    for kind, value in {
        "datetime64": np.datetime64("2020", "D"),
        "timedelta64": np.timedelta64(1),
        "void": np.void(b"abc"),
        "longdouble": np.longdouble(1),
    }.items():
        for data in (value, [value]):
            with pytest.raises(
                TypeError, match=f"can't convert np.ndarray of type numpy.{kind}[.]"
            ):
                getattr(torch, make)(data)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
     "complex64", "complex128"],
)  # fmt: skip
@pytest.mark.parametrize(
    "text",
    ["[0, 1, -1]", "[255]", "[256]", "[-129]", "[2**31]", "[2**40]", "[1.9, -1.9]", "[True]",
     "[1e10]", "[float('inf')]", "[float('nan')]", "[1 + 2j]", "['1']", "[1e300]"],
)  # fmt: skip
def test_given_dtype_like_pytorch(text, dtype):
    oracle = pytest.importorskip("torch")
    mine = outcome(torch, text, dtype=getattr(torch, dtype))
    theirs = outcome(oracle, text, dtype=getattr(oracle, dtype))
    assert mine == theirs


def test_default_dtype_is_used_and_restored():
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype is torch.float64
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int64)


def test_a_list_that_changes_while_it_is_read():
    class Shrinks:
        def __float__(self):
            items.clear()
            return 1.0

    items = [[Shrinks()], [2.0], [3.0]]
    with pytest.raises((ValueError, RuntimeError)):
        torch.tensor(items, dtype=torch.float32)


def test_deep_nesting_raises():
    data = []
    for _ in range(1000):
        data = [data]
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(data)
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(loop)


def test_requires_grad_and_device():
    x = torch.tensor([1.0], requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    meta = torch.tensor([1.0, 2.0], device="meta")
    assert meta.is_meta
    assert meta.shape == (2,)
    with pytest.raises(AssertionError, match="no CUDA device"):
        torch.tensor([1.0], device="cuda")


def test_as_tensor_shares_and_tensor_copies():
    x = torch.tensor([1.0, 2.0])
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, dtype=torch.float64).dtype is torch.float64
    with pytest.warns(UserWarning, match="copy construct"):
        y = torch.tensor(x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_asarray_copy_argument():
    x = torch.tensor([1.0, 2.0])
    assert torch.asarray(x) is x
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.asarray(x, copy=False) is x
    with pytest.raises(ValueError):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(ValueError):
        torch.asarray(x, copy=False, dtype=torch.float64)


def test_legacy_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor().shape == (0,)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor(torch.Size([4])).shape == (4,)
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.FloatTensor(2, 2).shape == (2, 2)
    assert isinstance(torch.tensor([1]), torch.LongTensor)
    assert not isinstance(torch.tensor([1]), torch.FloatTensor)
    for bad in ("a", 2.5, None):
        with pytest.raises(TypeError):
            torch.Tensor(bad)


def test_limits():
    info = torch.finfo(torch.float32)
    assert info.eps == 2.0**-23
    assert math.isclose(info.max, 3.4028234663852886e38)
    assert info.bits == 32
    assert torch.iinfo(torch.int8).min == -128
    assert torch.iinfo(torch.uint8).max == 255
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32", "float64"])
@pytest.mark.parametrize(
    "call",
    [
        "linspace(0, 10, 4",
        "logspace(0, 2.5, 4",
        "arange(0, 7",
        "arange(0, 7, 2",
        "full((3,), 2",
        "eye(3",
        "ones(3",
    ],
)
def test_factories_compute_in_the_dtype_of_out(call: str, dtype: str) -> None:
    theirs = pytest.importorskip("torch")
    results = [
        eval(f"t.{call}, out=t.empty(0, dtype=t.{dtype}))", {"t": t}) for t in (torch, theirs)
    ]
    assert results[0].dtype == getattr(torch, dtype)
    assert results[0].tolist() == results[1].tolist()


@pytest.mark.parametrize(
    "call",
    [
        "zeros(3", "ones(3", "full((3,), 2.", "arange(3", "arange(0, 3", "range(0, 3",
        "linspace(0, 1, 3", "logspace(0, 1, 3", "eye(3", "eye(3, 2", "rand(3", "randn(3",
        "randint(3, (3,)", "randperm(3", "normal(0., 1., (3,)",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_factories_refuse_another_dtype_or_device_than_that_of_out(call: str) -> None:
    for dtype, text in [("float64", "Double"), ("int64", "Long")]:
        with pytest.raises(
            RuntimeError, match=rf"dtype {text} does not match dtype of out parameter \(Float\)"
        ):
            eval(f"torch.{call}, dtype=torch.{dtype}, out=torch.empty(0))")
    with pytest.raises(
        RuntimeError, match=r"device type meta does not match device type of out parameter \(cpu\)"
    ):
        eval(f"torch.{call}, device='meta', out=torch.empty(0))")
    out = torch.empty(0)
    assert eval(f"torch.{call}, dtype=torch.float32, device='cpu', out=out)") is out


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64, torch.complex128])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_sequences_are_of_ordered_numbers(dtype: torch.dtype) -> None:
    for name in ("arange", "range"):
        for options in ({"dtype": dtype}, {"out": torch.empty(0, dtype=dtype)}):
            with pytest.raises(NotImplementedError, match=f'"{name}_cpu" not implemented for'):
                getattr(torch, name)(0, 3, **options)


def test_the_cpu_of_a_tensor_has_no_index():
    x = torch.ones(2, device="cpu:0")
    assert x.device == torch.device("cpu")
    assert (x > torch.zeros(2)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.arange(4, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.range(0, 3, out=out),
        lambda out: torch.logspace(0, 3, 4, base=2, out=out).log2_(),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sequences_keep_the_shape_of_an_out_of_their_length(call) -> None:
    out = torch.zeros(2, 3)
    call(out.narrow(1, 1, 2))
    assert out.tolist() == [[0, 0, 1], [0, 2, 3]]
    assert call(torch.empty(2, 1)).shape == (4,)


def test_legacy_types_take_a_device() -> None:
    assert torch.FloatTensor(2, 3, device="cpu").shape == (2, 3)
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu"):
        torch.FloatTensor(2, device="cuda")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linspace_rounds_as_pytorch(dtype):
    oracle = pytest.importorskip("torch")
    np = pytest.importorskip("numpy")
    scales = np.tile([[1e-2], [1.0], [30.0], [1e4]], (10, 1))
    for start, end in np.random.default_rng(0).normal(size=(40, 2)) * scales:
        for steps in (1, 2, 3, 8, 17, 128, 1001):
            ours = torch.linspace(start, end, steps, dtype=getattr(torch, dtype))
            theirs = oracle.linspace(start, end, steps, dtype=getattr(oracle, dtype))
            assert ours.tolist() == theirs.tolist(), (start, end, steps)


def test_linspace_keeps_the_spacing_of_a_grid():
    grid = torch.linspace(-1.2190476, 1.2190476, 128)
    assert grid.diff().sub(grid[1] - grid[0]).abs().max() < 1.3e-7
