"""finfo against the numbers that the bits of a dtype are."""

import sys

import pytest

import taeda

FLOATS = [
    dtype
    for dtype in vars(taeda._C).values()
    if isinstance(dtype, taeda.dtype)
    and dtype.is_floating_point
    and dtype is not taeda.float4_e2m1fn_x2
]


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize <= 2], ids=str)
def test_limits_are_the_ends_of_all_numbers_of_a_dtype(dtype):
    bits = dtype.itemsize * 8
    codes = taeda.arange(1 << bits).to(taeda.uint8 if bits == 8 else taeda.uint16)
    numbers = codes.view(dtype).to(taeda.float64)
    finite = numbers[numbers.isfinite()]
    info = taeda.finfo(dtype)
    assert (info.bits, info.max, info.min) == (bits, finite.max().item(), finite.min().item())
    assert info.smallest_subnormal == finite[finite > 0].min().item()
    eps = finite[finite > 1].min().item() - 1
    # PyTorch's of this type is half of what lies between 1 and the next number.
    assert info.eps == (eps / 2 if dtype is taeda.float8_e5m2fnuz else eps)
    tiny = finite[finite >= info.tiny][: 1 << bits].unique()  # from tiny on, a mantissa is whole
    assert tiny[1].item() - tiny[0].item() == info.tiny * eps
    assert info.smallest_normal == info.tiny


def test_limits_of_wide_numbers_are_ieee754s():
    wide, single = taeda.finfo(taeda.float64), taeda.finfo(taeda.complex64)
    ours = sys.float_info
    assert (wide.max, wide.min) == (ours.max, -ours.max)
    assert (wide.eps, wide.tiny) == (ours.epsilon, ours.min)
    assert wide.smallest_subnormal == 5e-324
    assert single.max == float.fromhex("0x1.fffffep+127") and single.tiny == 2.0**-126
    assert single.eps == 2.0**-23 and single.smallest_subnormal == 2.0**-149


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_limits_are_there_where_no_tensor_may_be_made(dtype):
    expected = repr(taeda.finfo(dtype))
    with taeda.device("meta"):
        assert repr(taeda.finfo(dtype)) == expected


def test_limits_leave_no_operators_in_a_trace():
    from taeda.fx.experimental.proxy_tensor import make_fx

    def lowest(x):
        return x.clamp(min=taeda.finfo(x.dtype).min)

    graph = make_fx(lowest)(taeda.ones(2)).graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.clamp.default"
    ]
