# ruff: noqa: E501
"""uint16, uint32, uint64, the eight-bit floats and complex32: what holds of every dtype (making,
converting, looking at, moving, saving, exchanging) and the operators that PyTorch has for them."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import taeda

UNSIGNED = ["uint16", "uint32", "uint64"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
STORAGE = [*UNSIGNED, *FLOAT8, "complex32"]
ARITHMETIC = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
ALL = [*ARITHMETIC, *STORAGE]
VALUES = [1.0, 2.0, 3.0, 4.0, 1.0, 16.0]


@pytest.fixture(autouse=True)
def _no_warnings() -> Any:
    """PyTorch's, that complex32 is experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def made(framework: Any, name: str, values: list = VALUES) -> Any:
    return framework.tensor(values, dtype=framework.float32).to(getattr(framework, name))


def codes(t: Any) -> np.ndarray:
    """The bytes of a tensor, row-major."""
    framework = taeda if isinstance(t, taeda.Tensor) else __import__("torch")
    return t.reshape(-1).contiguous().view(framework.uint8).numpy()


def outcome(call: Any, framework: Any) -> Any:
    """What a call gives, in terms that both frameworks share: an error by its type."""
    try:
        result = call(framework)
    except Exception as error:
        return type(error)
    return described(result)


def described(value: Any) -> Any:
    if type(value).__name__ == "Tensor":
        return str(value.dtype), tuple(value.shape), codes(value).tolist()
    if type(value).__name__ == "dtype":
        return str(value)
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    return value


def assert_same(text: str, torch: Any, dtype: str = "") -> None:
    call = eval(f"lambda torch, dtype, made: ({text})")

    def run(framework: Any) -> Any:
        return call(framework, getattr(framework, dtype, None), lambda *a: made(framework, *a))

    assert outcome(run, taeda) == outcome(run, torch), f"{text} with {dtype}"


# --- conversions ---


@pytest.mark.parametrize("name", FLOAT8)
def test_all_codes_of_an_eight_bit_float_are_read_as_pytorch_reads_them(torch, name) -> None:
    mine, theirs = (
        t.arange(256).to(t.uint8).view(getattr(t, name)).float().numpy() for t in (taeda, torch)
    )
    np.testing.assert_array_equal(mine, theirs)
    signs = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(mine[signs]), np.signbit(theirs[signs]))


@pytest.mark.parametrize("name", FLOAT8)
def test_all_halves_round_to_eight_bits_as_in_pytorch(torch, name) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    mine, theirs = (codes(t.from_numpy(halves.copy()).to(getattr(t, name))) for t in (taeda, torch))
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", FLOAT8)
def test_floats_beside_every_tie_round_to_eight_bits_as_in_pytorch(torch, name) -> None:
    numbers = torch.arange(256).to(torch.uint8).view(getattr(torch, name)).double().numpy()
    finite = np.sort(numbers[np.isfinite(numbers)])
    ties = (finite[1:] + finite[:-1]) / 2
    ties = np.concatenate([finite, ties, 1.0625 * finite, [np.inf, -np.inf, np.nan, 3e38]])
    ties = ties.astype(np.float32)
    around = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    mine, theirs = (codes(t.from_numpy(around.copy()).to(getattr(t, name))) for t in (taeda, torch))
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("source", ALL)
def test_every_dtype_converts_to_every_other_as_in_pytorch(torch, source) -> None:
    for target in ALL:
        for values in (VALUES, VALUES * 300, [1.0]):
            assert_same(f"made('{source}', {values}).to(dtype)", torch, target)
            assert_same(
                f"torch.zeros({len(values)}, dtype=dtype).copy_(made('{source}', {values}))",
                torch,
                target,
            )
        assert_same(f"made('{source}')[::2].to(dtype)", torch, target)
        assert_same(f"made('{source}').reshape(2, 3).t().to(dtype)", torch, target)


def test_uint64_keeps_its_upper_half(torch) -> None:
    large = "torch.tensor([2**64 - 1, 2**63, 2**63 + 2**39 + 1, 5], dtype=torch.uint64)"
    for name in ["float32", "float64", "int64", "int8", "bool", "complex128", "float16"]:
        assert_same(f"{large}.to(dtype)", torch, name)
    assert_same(f"{large}.tolist()", torch)
    assert_same(f"[x.item() for x in {large}]", torch)
    assert_same(f"repr({large})", torch)
    largest = taeda.tensor(2**64 - 1, dtype=taeda.uint64)  # of which PyTorch raises
    assert int(largest) == 2**64 - 1 and float(largest) == 2.0**64 and bool(largest)
    assert_same(f"{large} == 2**64 - 1", torch)
    assert_same(f"{large} + 1.5", torch)
    assert_same("torch.tensor([1.5e19, 3.0, -1.0], dtype=torch.float64).to(torch.uint64)", torch)
    assert_same("torch.full((2,), 2**64 - 1, dtype=torch.uint64)", torch)
    assert_same("torch.zeros(2, dtype=torch.uint64).fill_(2**63)", torch)
    for text in ("torch.full((2,), 2**63)", "torch.tensor([2**63])"):
        assert_same(text, torch)
    for text in ("[2**64]", "[-1]", "2**64"):
        assert_same(f"torch.tensor({text}, dtype=torch.uint64)", torch)


FLOAT4 = """
torch.empty(2, 3, dtype=x.dtype).shape
torch.zeros(3, dtype=x.dtype).view(torch.uint8)
torch.zeros_like(x).view(torch.uint8)
repr(x)
repr(x.reshape(2, 3))
repr(torch.zeros(2000, dtype=x.dtype))
x.view(torch.uint8)
x.clone()
x[1:3].contiguous()
x.reshape(2, 3).t().contiguous()
x.view(torch.float16).dtype
torch.cat([x, x])
torch.stack([x, x])
x.element_size()
x.copy_(x.clone())
x.to("meta").shape
x.type()
loaded(torch, x)
copy.deepcopy(x)
x.float()
torch.ones(2).to(x.dtype)
x.copy_(torch.ones(6))
x.fill_(1)
x[0].item()
x.tolist()
x + x
x * 2
x.sum()
torch.full((2,), 1.0, dtype=x.dtype)
torch.tensor([1.0], dtype=x.dtype)
torch.promote_types(x.dtype, torch.float32)
torch.promote_types(x.dtype, torch.float8_e5m2)
x.numpy()
torch.set_default_dtype(x.dtype)
torch.from_dlpack(x).dtype
"""


def loaded(framework: Any, x: Any) -> Any:
    file = io.BytesIO()
    framework.save(x, file)
    file.seek(0)
    return framework.load(file)


@pytest.mark.parametrize("text", FLOAT4.strip().split("\n"))
def test_pairs_of_four_bit_floats_are_moved_and_not_converted_as_in_pytorch(torch, text) -> None:
    call = eval(f"lambda torch, x: ({text})", {"loaded": loaded, "copy": copy})

    def run(framework: Any) -> Any:
        x = framework.arange(6, dtype=framework.uint8).view(framework.float4_e2m1fn_x2)
        return call(framework, x)

    mine, theirs = outcome(run, taeda), outcome(run, torch)
    if isinstance(theirs, type):  # where nothing may happen, any refusal is one
        assert isinstance(mine, type) and issubclass(mine, (RuntimeError, TypeError))
    else:
        assert mine == theirs


# --- making, looking at ---


MAKING = """
torch.empty(3, dtype=dtype).shape
torch.zeros(3, dtype=dtype)
torch.ones(2, 2, dtype=dtype)
torch.full((3,), 2, dtype=dtype)
torch.full((3,), 2.5, dtype=dtype)
torch.tensor([1, 2, 3], dtype=dtype)
torch.tensor([[1], [3]], dtype=dtype)
torch.tensor(7, dtype=dtype)
torch.tensor([-1], dtype=dtype)
torch.tensor([70000], dtype=dtype)
torch.tensor([2**33], dtype=dtype)
torch.full((1,), -1, dtype=dtype)
torch.scalar_tensor(3, dtype=dtype)
torch.ones_like(torch.zeros(2, dtype=dtype))
torch.full_like(torch.zeros(2, dtype=dtype), 3)
torch.zeros(2, dtype=dtype).new_ones(2)
torch.zeros(2, dtype=dtype).new_tensor([1])
torch.arange(4, dtype=dtype)
torch.linspace(0, 4, 5, dtype=dtype)
torch.tensor([1, 2], dtype=dtype).tolist()
torch.tensor(2, dtype=dtype).item()
repr(torch.tensor([[1000., 2], [3, 4]]).to(dtype))
repr(torch.tensor([0.1, 2.5]).to(dtype))
repr(torch.zeros(0, dtype=dtype))
str(torch.zeros(2, dtype=dtype).type())
torch.zeros(2, dtype=dtype).type(torch.float32)
torch.ones(2).type(dtype)
torch.ones(2).type(torch.zeros(1, dtype=dtype).type())
torch.zeros(2, dtype=dtype).is_signed()
torch.zeros(2, dtype=dtype).is_floating_point()
torch.zeros(2, dtype=dtype).is_complex()
torch.zeros(2, dtype=dtype).element_size()
torch.zeros(2, dtype=dtype, requires_grad=True).requires_grad
(dtype.itemsize, dtype.is_signed, dtype.is_floating_point, dtype.is_complex, dtype.to_real())
torch.frombuffer(bytes(range(16)), dtype=dtype)
torch.zeros(3, dtype=dtype, device='meta').shape
f"{torch.tensor(2, dtype=dtype):.2f}"
torch.set_default_dtype(dtype)
"""


@pytest.mark.parametrize("text", MAKING.strip().split("\n"))
def test_tensors_are_made_and_shown_as_in_pytorch(torch, text) -> None:
    for name in STORAGE:
        assert_same(text, torch, name)


@pytest.mark.parametrize("name", ALL)
def test_limits_are_those_of_pytorch(torch, name) -> None:
    for kind, fields in (
        ("finfo", "bits eps max min tiny smallest_normal resolution dtype"),
        ("iinfo", "bits max min dtype"),
    ):
        for field in fields.split():
            # 1 / 8 is what PyTorch says of e5m2fnuz, whose two bits make 1 / 4.
            if name != "bool" and (name, field) != ("float8_e5m2fnuz", "eps"):
                assert_same(f"torch.{kind}(dtype).{field}", torch, name)


def test_numbers_overflow_where_they_do_in_pytorch(torch) -> None:
    for name in UNSIGNED:
        for number in ("70000", "-70000", "2**32", "1e30"):
            assert_same(f"torch.full((1,), {number}, dtype=dtype)", torch, name)
    for name in FLOAT8[:4]:
        assert_same("torch.full((1,), 1e9, dtype=dtype)", torch, name)


def test_elements_are_written_by_index(torch) -> None:
    for name in (*FLOAT8, "complex32"):  # PyTorch has no masked_fill for the first
        x = made(taeda, name)
        x[taeda.tensor([0, 1])] = x[2:4].clone()
        assert x.float().tolist()[:4] == made(taeda, name).float().tolist()[2:4] * 2
        x[x == 16] = 1
        assert x[5].item() == 1


def test_types_are_promoted_as_in_pytorch(torch) -> None:
    for a in ALL:
        for b in ALL:
            for function in ("promote_types", "can_cast"):
                assert_same(f"torch.{function}(torch.{a}, torch.{b})", torch)
    with pytest.raises(
        RuntimeError,
        match="uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and UInt32",
    ):
        taeda.promote_types(taeda.uint16, taeda.uint32)
    with pytest.raises(
        RuntimeError,
        match="Float8 Types is not supported, attempted to promote Float8_e5m2 and Float",
    ):
        taeda.promote_types(taeda.float8_e5m2, taeda.float32)


# --- operators ---

WORKING = """
x.clone()
x[1:3]
x[torch.tensor([0, 2])]
x[torch.tensor([True, False, True, True, False, True])]
x.__setitem__(0, 3)
x.__setitem__(slice(0, 2), x[2:4].clone())
torch.cat([x, x])
torch.stack([x, x], 1)
x == x
x != x
x == 2
x == 2.0
x * x
torch.where(torch.tensor([True, False, True, False, True, True]), x, x)
torch.where(x == 2, x, x)
x.any()
x.all()
x.isnan()
x.roll(1)
x.fill_(2)
x.zero_()
x.reshape(2, 3).t().contiguous()
x.reshape(6, 1).expand(6, 3).contiguous()
x.repeat(2)
torch.nn.functional.pad(x, (1, 1), value=1.0)
x.repeat_interleave(2)
x.diag()
x.reshape(2, 3).diagonal().clone()
x.unfold(0, 2, 1).clone()
x.sum(dtype=torch.float32)
x.mean(dtype=torch.float32)
x.softmax(0, dtype=torch.float32)
torch.embedding(x.reshape(6, 1), torch.tensor([0, 2]))
x.split(2)
x.chunk(3)
x.narrow(0, 1, 2)
x.view(torch.uint8)
torch.arange(16).to(torch.uint8).view(dtype) if dtype else x
x.reshape(2, 3).permute(1, 0).flatten()
x.squeeze().unsqueeze(0)
x.tolist()
torch.equal(x, x) if x.dtype in (torch.uint16, torch.uint32, torch.uint64) else 0
bool(x[0]), float(x[0])
"""


@pytest.mark.parametrize("text", WORKING.strip().split("\n"))
@pytest.mark.parametrize("name", STORAGE)
def test_operators_that_move_and_compare_elements_give_pytorchs_results(torch, text, name) -> None:
    assert_same(f"(lambda x: ({text}, x))(made('{name}'))", torch)


# Taken of some of these types alone, or of none.
CHOOSY = """
torch.nonzero(x)
torch.nonzero(x, as_tuple=True)
torch.argwhere(x)
torch.nonzero_static(x, size=2)
torch.count_nonzero(x)
torch.count_nonzero(x, 0)
x.masked_fill(MASK, 1)
x.masked_fill_(MASK, torch.tensor(1.0))
x.masked_select(MASK)
x.masked_scatter(MASK, x)
x.index_fill(0, torch.tensor([1]), 2)
x.index_fill_(0, torch.tensor([1]), torch.tensor(2.0))
x.index_select(0, torch.tensor([1, 0]))
x.reshape(2, 3).index_select(1, torch.tensor([1, 0]))
x.index_copy(0, torch.tensor([1]), x[:1].clone())
x.index_put((torch.tensor([1]),), x[:1].clone())
x.__setitem__(torch.tensor([1]), 3)
x.repeat_interleave(torch.tensor([1, 2, 1, 0, 1, 1]))
x.reshape(2, 3).tril()
x.reshape(2, 3).triu(1)
x.flip(0)
x.reshape(2, 3).flip(0)
x.reshape(2, 3).t().flip(0)
x.reshape(2, 3).t().flip(1)
x.reshape(2, 3).rot90()
x.reshape(2, 3).trace()
x.bincount()
x.histc(4)
torch.searchsorted(x, x)
torch.searchsorted(x, 2)
torch.bucketize(x, x)
torch.hash_tensor(x)
torch.unique(x, return_inverse=True)
torch.nn.functional.pad(x.reshape(1, 2, 3), (1, 1), "reflect")
torch.nn.functional.pad(x.reshape(1, 2, 3), (1, 1), "replicate")
torch.nn.functional.pad(x.reshape(1, 2, 3), (1, 1), "circular")
torch.nn.functional.hinge_embedding_loss(x, torch.tensor([1, -1, 1, -1, 1, 1]))
"""
SUMS = "sum prod cumsum cumprod softmax log_softmax".split()


@pytest.mark.parametrize("text", CHOOSY.strip().split("\n"))
@pytest.mark.parametrize("name", STORAGE)
def test_operators_take_the_types_that_pytorchs_take(torch, text, name) -> None:
    if name == "float8_e8m0fnu" and ("index_put" in text or "setitem" in text):
        return  # of the eight-bit floats the one that PyTorch has none of
    text = text.replace("MASK", "torch.tensor([True, False, True, False, True, True])")
    assert_same(f"(lambda x: ({text}, x))(made('{name}'))", torch)


@pytest.mark.parametrize("operator", SUMS)
@pytest.mark.parametrize("name", [*UNSIGNED, *FLOAT8])
def test_no_sum_has_a_storage_type(torch, operator, name) -> None:
    assert_same(f"torch.ones(3).{operator}(0, dtype=dtype)", torch, name)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_have_a_nansum(torch, name) -> None:
    assert_same(f"made('{name}').nansum()", torch)


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("transform", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn"])
def test_eight_bit_floats_have_no_transforms(torch, name, transform) -> None:
    assert_same(f"torch.fft.{transform}(made('{name}'))", torch)


UNSIGNED_ALONE = """
x + 1.5
x / x
x.sum()
x.prod()
x.cumsum(0)
x.sqrt()
x * 2
x * 70000
x * torch.tensor(2)
x * torch.ones(6)
torch.cat([x, torch.ones(2)])
x == torch.ones(6)
x == torch.ones(6, dtype=torch.int64)
x * torch.ones(6, dtype=torch.int64)
x * torch.tensor(2, dtype=torch.uint32)
torch.cat([x, torch.ones(1, dtype=torch.int64)])
torch.result_type(x, 1)
torch.result_type(x, 1.5)
torch.result_type(x, torch.tensor(1))
torch.result_type(x, torch.tensor([1]))
[0, 1, 2, 3, 4][x[0]]
x.isinf(), x.isfinite()
torch.empty_like(x).random_(3).shape
torch.testing.assert_close(x, x)
x.floor(), x.ceil(), x.round(), x.trunc(), x.fix(), x.nan_to_num()
x.clone().floor_(), x.clone().nan_to_num_()
x.isposinf(), x.isneginf(), x.signbit()
x.gather(0, torch.tensor([1, 0]))
x.take(torch.tensor([1, 0]))
x.put(torch.tensor([1]), x[:1])
x.take_along_dim(torch.tensor([1, 0]), 0)
"""


@pytest.mark.parametrize("text", UNSIGNED_ALONE.strip().split("\n"))
@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_take_part_in_floating_arithmetic_as_in_pytorch(
    torch, text, name
) -> None:
    assert_same(f"(lambda x: {text})(made('{name}'))", torch)


OUTSIDE = [2.0**63, 2.0**64, -(2.0**63), 1.5e19, 2e19, 1e30, -1e30, -1.5]
OUTSIDE += [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_floats_beyond_uint64_convert_as_in_pytorch(torch, source) -> None:
    values = f"torch.tensor({OUTSIDE}, dtype=torch.float64).to(torch.{source})"
    values = values.replace("inf", "float('inf')").replace("nan", "float('nan')")
    assert_same(f"{values}.to(torch.uint64)", torch)
    assert_same(f"[x.to(torch.uint64).item() for x in {values}]", torch)


FLOAT8_ALONE = """
x.sum()
x.sum(0)
x.prod()
x.mean()
x.cumsum(0)
x.cumprod(0)
x.softmax(0)
x.log_softmax(0)
x.floor()
x.nan_to_num()
x.signbit()
x.gather(0, torch.tensor([1, 0]))
x.take(torch.tensor([1, 0]))
x.sum(dtype=torch.float32)
x.cumsum(0, dtype=torch.float64)
torch.special.zeta(x, x)
"""


@pytest.mark.parametrize("text", FLOAT8_ALONE.strip().split("\n"))
@pytest.mark.parametrize("name", FLOAT8)
def test_eight_bit_floats_do_not_add_up_as_in_pytorch(torch, text, name) -> None:
    assert_same(f"(lambda x: {text})(made('{name}'))", torch)


COMPLEX = """
x + x
x - 1
x * (2 - 1j)
x + 1.5
-x
x.abs()
x.real
x.imag
x.conj().resolve_conj()
torch.view_as_real(x)
x * torch.ones(6)
x + torch.ones(6).half()
x + torch.ones(6).double()
x[0].item()
torch.ones(6).half() * 1j
torch.ones(6).bfloat16() * 1j
torch.view_as_complex(torch.ones(3, 2).half())
torch.complex(torch.ones(2).half(), torch.ones(2).half())
torch.tensor([1 + 2j, 3]).chalf()
torch.chalf
torch.float16.to_complex()
x.masked_fill(torch.tensor([True, False, True, True, True, False]), 1)
"""


@pytest.mark.parametrize("text", COMPLEX.strip().split("\n"))
def test_complex32_calculates_in_complex64(torch, text) -> None:
    values = "[1 + 2j, 0.5 - 1j, 3 + 0j, -2j, 100 + 7j, 0.1 + 0.2j]"
    assert_same(f"(lambda x: {text})(torch.tensor({values}, dtype=torch.complex32))", torch)


@pytest.mark.parametrize("name", STORAGE)
@pytest.mark.parametrize("text", ["x + x", "x < x", "x.topk(1)", "x.max()", "x.dot(x)", "x // x", "x << 1", "x.cummax(0)", "x.minimum(x)"])  # fmt: skip
def test_operators_without_a_kernel_name_operator_and_type(name, text) -> None:
    if name == "complex32" and text == "x + x":
        return
    with pytest.raises((NotImplementedError, RuntimeError)) as error:
        eval(text, {"x": made(taeda, name)})
    kind = made(taeda, name).type().removeprefix("torch.").removesuffix("Tensor")
    assert "not implemented for" in str(error.value) or kind in str(error.value)


# --- saving and exchanging ---


@pytest.mark.parametrize("name", STORAGE)
def test_files_go_both_ways_between_the_frameworks(torch, name) -> None:
    for source, target in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        x = made(source, name)
        saved = {"a": x, "view": x[2:4], "strided": x.reshape(2, 3).t()}
        file = io.BytesIO()
        source.save(saved, file)
        file.seek(0)
        loaded = target.load(file, weights_only=True)
        for key, value in saved.items():
            assert str(loaded[key].dtype) == f"torch.{name}"
            np.testing.assert_array_equal(codes(loaded[key]), codes(value))
            assert loaded[key].stride() == value.stride()


@pytest.mark.parametrize("name", STORAGE)
def test_pickles_keep_dtype_and_bits(name) -> None:
    import copy

    x = made(taeda, name)
    for copied in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert copied.dtype is x.dtype
        np.testing.assert_array_equal(codes(copied), codes(x))
    assert pickle.loads(pickle.dumps(x.dtype)) is x.dtype


@pytest.mark.parametrize("name", STORAGE)
def test_safetensors_files_hold_what_the_format_has_names_for(tmp_path, name) -> None:
    from taeda.safetensors import load_file, save_file

    x = {"x": made(taeda, name)}
    if name in ("complex32", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        with pytest.raises(RuntimeError, match=f"no type for torch.{name}"):
            save_file(x, tmp_path / "a.safetensors")
        return
    save_file(x, tmp_path / "a.safetensors")
    loaded = load_file(tmp_path / "a.safetensors")["x"]
    assert loaded.dtype is x["x"].dtype
    np.testing.assert_array_equal(codes(loaded), codes(x["x"]))


@pytest.mark.parametrize("name", STORAGE)
def test_dlpack_shares_memory_with_pytorch_in_both_directions(torch, name) -> None:
    for source, target in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        x = made(source, name)
        y = target.from_dlpack(x)
        assert str(y.dtype) == f"torch.{name}"
        assert y.data_ptr() == x.data_ptr()
        np.testing.assert_array_equal(codes(y), codes(x))


@pytest.mark.parametrize("name", UNSIGNED)
def test_numpy_shares_memory_with_unsigned_tensors(name) -> None:
    x = taeda.tensor([1, 2, 3], dtype=getattr(taeda, name))
    array = x.numpy()
    assert array.dtype == name and array.ctypes.data == x.data_ptr()
    assert np.asarray(memoryview(x)).dtype == name
    back = taeda.from_numpy(array)
    assert back.dtype is x.dtype and back.data_ptr() == x.data_ptr()
    assert taeda.tensor(array).dtype is x.dtype
    assert taeda.tensor(np.array([2, 3], dtype=name)[0]).dtype is x.dtype


@pytest.mark.parametrize("name", [*FLOAT8, "complex32"])
def test_numpy_has_no_such_type(torch, name) -> None:
    assert_same("torch.zeros(2, dtype=dtype).numpy()", torch, name)
    with pytest.raises(BufferError):
        memoryview(made(taeda, name))


@pytest.mark.parametrize("name", STORAGE)
def test_storages_and_made_tensors_have_the_dtype(name) -> None:
    x = made(taeda, name)
    assert x.storage().dtype is x.dtype and len(x.storage()) == len(VALUES)
    assert x.untyped_storage().nbytes() == x.nbytes
    taeda.testing.assert_close(x, x.clone()) if name in UNSIGNED else None
    assert taeda.testing.make_tensor(3, dtype=x.dtype, device="cpu").dtype is x.dtype


def test_every_dtype_is_in_the_module_under_its_names(torch) -> None:
    for name, value in vars(torch).items():
        if isinstance(value, torch.dtype) and str(value).removeprefix("torch.") in ALL:
            assert str(getattr(taeda, name)) == str(value), name
