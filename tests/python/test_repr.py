"""repr compared with PyTorch's, character for character."""

import math
import random

import pytest

import taeda as torch
import taeda._tensor_str

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


def values(rng, kind, count):
    """Numbers of very different sizes and signs, or of one kind."""
    styles = {
        "unit": lambda: rng.uniform(-1, 1),
        "wide": lambda: rng.uniform(-1, 1) * 10 ** rng.randint(-9, 9),
        "whole": lambda: float(rng.randint(-2000, 2000)),
        "large": lambda: float(rng.randint(0, 10) * 10**9),
        "tiny": lambda: rng.uniform(0, 1) * 1e-6,
        "special": lambda: rng.choice([0.0, -0.0, 1.0, 0.5, math.nan, math.inf, -math.inf]),
        "zero": lambda: 0.0,
    }  # fmt: skip
    if kind in styles:
        return [styles[kind]() for _ in range(count)]
    return [styles[rng.choice(list(styles))]() for _ in range(count)]


SHAPES = [
    (),
    (1,),
    (3,),
    (7,),
    (25,),
    (2, 3),
    (1, 1, 4),
    (3, 1, 2),
    (0,),
    (2, 0),
    (0, 3, 2),
    (12, 11),
]
BIG = [(1001,), (2000,), (40, 40), (5, 300), (12, 12, 12), (1, 1, 1001), (7, 7, 7, 7)]


def both(data, shape, dtype):
    oracle = pytest.importorskip("torch")
    mine = torch.tensor(data, dtype=getattr(torch, dtype)).reshape(shape)
    theirs = oracle.tensor(data, dtype=getattr(oracle, dtype)).reshape(shape)
    return repr(mine), repr(theirs)


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


@pytest.mark.parametrize(
    "kind", ["unit", "wide", "whole", "large", "tiny", "special", "zero", "mixed"]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floating(dtype, kind):
    rng = random.Random(f"{dtype} {kind}")
    for shape in SHAPES:
        mine, theirs = both(values(rng, kind, count(shape)), shape, dtype)
        assert mine == theirs


@pytest.mark.parametrize("kind", ["unit", "wide", "special"])
@pytest.mark.parametrize("shape", BIG)
def test_summaries(shape, kind):
    rng = random.Random(f"{shape} {kind}")
    mine, theirs = both(values(rng, kind, count(shape)), shape, "float32")
    assert mine == theirs


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    rng = random.Random(dtype)
    top = 100 if dtype in ("uint8", "int8") else 30000 if dtype == "int16" else 10**9
    low = 0 if dtype == "uint8" else -top
    for shape in SHAPES + BIG[:4]:
        data = [rng.randint(low, top) for _ in range(count(shape))]
        mine, theirs = both(data, shape, dtype)
        assert mine == theirs


def test_bool():
    rng = random.Random(0)
    for shape in SHAPES + BIG[:3]:
        mine, theirs = both([rng.random() < 0.5 for _ in range(count(shape))], shape, "bool")
        assert mine == theirs


@pytest.mark.parametrize("kind", ["unit", "wide", "whole", "special"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype, kind):
    rng = random.Random(f"{dtype} {kind}")
    for shape in [*SHAPES, (1001,)]:
        parts = values(rng, kind, 2 * count(shape))
        data = [complex(a, b) for a, b in zip(parts[::2], parts[1::2])]
        mine, theirs = both(data, shape, dtype)
        assert mine == theirs


OPTIONS = [
    {"precision": 2},
    {"precision": 8},
    {"edgeitems": 1},
    {"edgeitems": 5, "threshold": 10},
    {"linewidth": 40},
    {"linewidth": 200},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "short"},
    {"profile": "full"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options):
    oracle = pytest.importorskip("torch")
    rng = random.Random(str(options))
    torch.set_printoptions(**options)
    oracle.set_printoptions(**options)
    try:
        for shape in [(), (5,), (30,), (4, 30), (1200,)]:
            for kind in ("unit", "wide", "whole"):
                mine, theirs = both(values(rng, kind, count(shape)), shape, "float32")
                assert mine == theirs
    finally:
        torch.set_printoptions(profile="default")
        oracle.set_printoptions(profile="default")
    assert torch._tensor_str.get_printoptions()["precision"] == 4


@pytest.mark.parametrize("name", ["precision", "threshold", "edgeitems", "linewidth"])
def test_printoptions_are_numbers(name):
    """By a tensor, tensors would be printed without an end."""
    with pytest.raises(TypeError, match=name):
        taeda.set_printoptions(**{name: taeda.ones(2)})
    assert repr(taeda.ones(1)) == "tensor([1.])"


def test_printoptions_context():
    before = repr(torch.tensor(1 / 3))
    with torch._tensor_str.printoptions(precision=2):
        assert repr(torch.tensor(1 / 3)) == "tensor(0.33)"
    assert repr(torch.tensor(1 / 3)) == before


def test_suffixes():
    assert repr(torch.tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(torch.tensor([1], dtype=torch.int32)) == "tensor([1], dtype=torch.int32)"
    meta = torch.tensor([1.0, 2.0], device="meta")
    assert repr(meta) == "tensor(..., device='meta', size=(2,))"


def test_suffix_on_a_line_of_its_own():
    mine, theirs = both([0.123456] * 8, (8,), "float64")
    assert mine == theirs


def test_subclass_name():
    class Points(torch.Tensor):
        pass

    assert repr(Points([1.0])) == "Points([1.])"


def test_str_and_format():
    x = torch.tensor([1.5, 2.0])
    assert str(x) == repr(x)
    assert f"{x}" == repr(x)
    assert f"{torch.tensor(1.25):.1f}" == "1.2"
    with pytest.raises(TypeError):
        f"{x:.2f}"


def test_named_results():
    text = "torch.return_types.max(\nvalues=tensor([2.]),\nindices=tensor([1]))"
    assert repr(torch.max(torch.tensor([[1.0, 2.0]]), 1)) == text


def test_dual_tensors_show_their_tangent():
    oracle = pytest.importorskip("torch")

    def texts(t):
        fw = t.autograd.forward_ad
        with fw.dual_level():
            pair = fw.make_dual(t.ones(2), t.tensor([1.5, -2.0]))
            one = fw.make_dual(t.tensor(1.0), t.tensor(2.0))
            wide = fw.make_dual(t.zeros(3, 4), t.rand(3, 4).round())
            return [repr(v).split("tangent")[0] for v in (pair * 2, one, wide)], repr(one)

    assert texts(torch) == texts(oracle)
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.tensor([1.5, -2.0]))
        assert repr(x) == "tensor([1., 1.], tangent=tensor([ 1.5000, -2.0000]))"
        assert repr(torch.ones(2)) == "tensor([1., 1.])"
