"""torch.ops.quantized_decomposed against PyTorch's operators of the same names."""

import pytest

import taeda

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")

RANGE = (-128, 127)


def of(lib, values, dtype=None):
    return lib.tensor(values.tolist(), dtype=getattr(lib, dtype or "float32"))


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(3, 5) * 4


def same(compute):
    ours, theirs = (compute(lib, lib.ops.quantized_decomposed) for lib in (taeda, torch))
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == str(b.dtype)
        assert torch.allclose(torch.tensor(a.tolist()), torch.tensor(b.tolist()))


def test_numbers_are_stored_and_read_with_one_scale(x):
    def compute(lib, ops):
        q = ops.quantize_per_tensor.default(of(lib, x), 0.05, 3, *RANGE, lib.int8)
        yield q
        yield ops.dequantize_per_tensor.default(q, 0.05, 3, *RANGE, lib.int8)
        scale, zero = lib.tensor([0.05]), lib.tensor([3])
        yield ops.quantize_per_tensor.tensor(of(lib, x), scale, zero, *RANGE, lib.int8)
        yield ops.dequantize_per_tensor.tensor(q, scale, zero, *RANGE, lib.int8)

    same(compute)


@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_are_stored_and_read_with_a_scale_for_each_channel(x, axis):
    scales = torch.rand(x.shape[axis]) + 0.01
    zeros = torch.arange(x.shape[axis])

    def compute(lib, ops):
        parts = of(lib, scales), of(lib, zeros, "int64"), axis, *RANGE, lib.int8
        q = ops.quantize_per_channel.default(of(lib, x), *parts)
        yield q
        yield ops.dequantize_per_channel.default(q, *parts)
        yield ops.dequantize_per_channel.default(q, parts[0], None, *parts[2:])

    same(compute)


@pytest.mark.parametrize("shift", [-20.0, 0.0, 20.0])
@pytest.mark.parametrize(("low", "high", "dtype"), [(-128, 127, "int8"), (0, 255, "uint8")])
@pytest.mark.parametrize("name", ["choose_qparams", "choose_qparams_symmetric"])
def test_scales_and_zero_points_are_chosen_as_in_pytorch(x, shift, low, high, dtype, name):
    same(
        lambda lib, ops: getattr(ops, name).tensor(
            of(lib, x + shift), low, high, 1e-6, getattr(lib, dtype)
        )
    )
