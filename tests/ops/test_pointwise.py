"""What pointwise operators take and refuse, where the grid's samples do not look."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.autograd import forward_ad

# name: may a number stand for the second, the first, both arguments?
NUMBERS = {
    "add sub mul div floor_divide": (True, True, True),
    "pow float_power remainder xlogy": (True, True, False),
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift": (True, True, False),
    "fmod copysign eq ne lt le gt ge rsub clamp_min clamp_max": (True, False, False),
    "maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2": (False, False, False),
    "heaviside ldexp nextafter gcd lcm logical_and logical_or polar isclose": (False, False, False),
}
CASES = [(name, allowed) for names, allowed in NUMBERS.items() for name in names.split()]


@pytest.mark.parametrize(("name", "allowed"), CASES, ids=[name for name, _ in CASES])
def test_numbers_for_tensors(name: str, allowed: tuple[bool, bool, bool]) -> None:
    integers = "bit" in name or name in ("gcd", "lcm")
    x = taeda.tensor([1, 2]) if integers else taeda.tensor([1.0, 2.0])
    function = getattr(taeda, name)
    for args, ok in zip([(x, 1), (1, x), (1, 1)], allowed):
        if ok:
            assert isinstance(function(*args), taeda.Tensor)
        else:
            with pytest.raises(TypeError):
                function(*args)


def test_numbers_of_three_argument_operators() -> None:
    x = taeda.tensor([1.0, 2.0])
    assert taeda.lerp(x, x, 0.5).tolist() == [1.0, 2.0]
    assert taeda.where(x > 1, 1, 2.0).tolist() == [2.0, 1.0]
    for function, args in (
        (taeda.lerp, (x, 1, x)),
        (taeda.addcmul, (x, x, 1)),
        (taeda.addcdiv, (x, 1, x)),
        (taeda.where, (1, x, x)),
    ):
        with pytest.raises(TypeError):
            function(*args)


def test_either_argument_of_xlog1py_may_be_a_number() -> None:
    x = taeda.tensor([1.0, 2.0])
    taeda.testing.assert_close(taeda.special.xlog1py(2, x), 2 * taeda.log1p(x))
    taeda.testing.assert_close(taeda.special.xlog1py(x, 2.0), x * np.log(3))
    with pytest.raises(TypeError):
        taeda.special.xlog1py(1, 2)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32", "int64"])
@pytest.mark.parametrize("exponent", [2, 0.5, 2j, [2.0, 3.0], [2, 3]])
def test_float_power_over_its_base(dtype: str, exponent: Any) -> None:
    oracle = pytest.importorskip("torch")
    found: list[Any] = []
    for framework in (taeda, oracle):
        x = framework.tensor([3, 4], dtype=getattr(framework, dtype))
        power = framework.tensor(exponent) if isinstance(exponent, list) else exponent
        try:
            found.append(x.float_power_(power).tolist())
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == (found[1] if isinstance(found[1], str) else pytest.approx(found[1]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_quotients_of_halves_are_cut_off_as_pytorchs(dtype: str) -> None:
    oracle = pytest.importorskip("torch")
    found = []
    for framework in (taeda, oracle):
        n = framework.arange(8000)
        x = ((n - 4000) / 17).to(getattr(framework, dtype))
        y = (n * 7919 % 613 / 61 + 0.13).to(x.dtype)
        cut = [framework.div(x, by, rounding_mode="trunc").tolist() for by in (y, 1.37, y[1])]
        found.append([*cut, x.clone().div_(y, rounding_mode="trunc").tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_negative_powers_of_integers(dtype: str) -> None:
    x = taeda.tensor([1, 2, 0]).to(getattr(taeda, dtype))
    for call in (lambda: x**-1, lambda: taeda.pow(x, -1), lambda: x.clone().pow_(-2)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not"):
            call()
    assert taeda.pow(taeda.tensor([1, 2, -1]), taeda.tensor([-1, -1, -3])).tolist() == [1, 0, -1]
    np.testing.assert_allclose((x**-1.0).numpy(), 1 / x.numpy().astype(float))


def test_powers_of_bools() -> None:
    x = taeda.tensor([True, False])
    assert (x**True).tolist() == [True, False]
    assert (x**False).tolist() == [True, True]
    assert (x**2).tolist() == [1, 0]
    with pytest.raises(NotImplementedError, match="\"pow\" not implemented for 'Bool'"):
        x**x


def test_floor_divide_has_no_gradient() -> None:
    x = taeda.tensor([5.0, -7.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for floor_divide is not implemented"):
        taeda.floor_divide(x, 2).sum().backward()
    (taeda.div(x, 2, rounding_mode="floor").sum() + taeda.remainder(x, 2).sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    taeda.autograd.gradgradcheck(taeda.remainder, (x.detach().double().requires_grad_(), 2.5))


def test_masked_fill_carries_the_tangent_of_its_value() -> None:
    mask = taeda.tensor([True, False])
    with forward_ad.dual_level():
        x = forward_ad.make_dual(taeda.ones(2), taeda.full((2,), 3.0))
        value = forward_ad.make_dual(taeda.tensor(5.0), taeda.tensor(7.0))
        for result in (taeda.masked_fill(x, mask, value), x.clone().masked_fill_(mask, value)):
            primal, tangent = forward_ad.unpack_dual(result)
            assert primal.tolist() == [5.0, 1.0]
            assert tangent.tolist() == [7.0, 3.0]


def test_meta_stands_beside_no_data() -> None:
    """A 0-d meta tensor has no value that could be broadcast to a real one."""
    meta, real = taeda.ones((), device="meta"), taeda.ones(2)
    for call in (lambda: real + meta, lambda: meta * real, lambda: taeda.maximum(real, meta)):
        with pytest.raises(RuntimeError, match="same device"):
            call()
    with pytest.raises(RuntimeError, match="same device"):
        taeda.ones(()).add_(meta)
    assert (taeda.ones(2, device="meta") + taeda.ones(())).device.type == "meta"


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_one_value_stands_for_all_dimensions(name: str, spatial: int) -> None:
    pool: Any = getattr(taeda.nn.functional, f"{name}{spatial}d")
    x = taeda.arange(float(6**spatial)).reshape(1, 1, *[6] * spatial)
    expected = pool(x, 2, stride=1, padding=1)
    assert taeda.equal(pool(x, [2], stride=[1], padding=(1,)), expected)


def test_a_uint8_condition_is_no_operand() -> None:
    oracle = pytest.importorskip("torch")
    for framework in (taeda, oracle):
        condition = framework.tensor([1, 0, 255], dtype=framework.uint8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = framework.where(condition, 1, 0)
        assert (found.tolist(), str(found.dtype)) == ([1, 0, 1], "torch.int64")


def test_zeros_keep_their_sign() -> None:
    oracle = pytest.importorskip("torch")
    for name in ("relu6", "hardtanh", "relu", "hardswish", "leaky_relu", "hardshrink"):
        signs = [
            framework.signbit(
                getattr(framework.nn.functional, name)(framework.tensor([-0.0, 0.0] * 9))
            ).tolist()
            for framework in (taeda, oracle)
        ]
        assert signs[0] == signs[1], name


@pytest.mark.parametrize("values", [[-1.0, -0.0, 0.0, 3.0, 6.0, 7.0]])
def test_gradient_at_the_bounds_of_relu6(values: list[float]) -> None:
    oracle = pytest.importorskip("torch")
    grads = []
    for framework in (taeda, oracle):
        x = framework.tensor(values, requires_grad=True)
        framework.nn.functional.relu6(x).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


INPLACE = {
    "square_": lambda t, x: x.square_(),
    "clamp_ by a float": lambda t, x: x.clamp_(0.5),
    "logit_": lambda t, x: x.logit_(),
    "deg2rad_": lambda t, x: x.deg2rad_(),
    "ldexp_": lambda t, x: x.ldexp_(t.ones(2)),
}


@pytest.mark.parametrize("call", INPLACE.values(), ids=INPLACE)
def test_a_result_of_a_higher_kind_does_not_fit_in_place(call: Any) -> None:
    oracle = pytest.importorskip("torch")
    for framework in (taeda, oracle):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            call(framework, framework.tensor([True, False]))


OLD_FORMS = {
    "add": lambda t, x, y: x.add(0.5, y),
    "add_": lambda t, x, y: x.clone().add_(2, y),
    "torch.sub": lambda t, x, y: t.sub(x, 2, y),
    "sub_": lambda t, x, y: x.clone().sub_(0.5, y),
    "addcmul_": lambda t, x, y: x.clone().addcmul_(0.5, y, y),
    "torch.addcdiv": lambda t, x, y: t.addcdiv(x, -0.5, y, x),
    "momentum": lambda t, x, y: x.clone().mul_(0.9).add_(0.1, y),
}


@pytest.mark.parametrize("call", OLD_FORMS.values(), ids=OLD_FORMS)
def test_numbers_before_tensors_as_old_programs_give_them(call: Any) -> None:
    oracle = pytest.importorskip("torch")
    found = []
    for framework in (taeda, oracle):
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = call(framework, x, framework.tensor([3.0, 5.0]))
        y.sum().backward()
        found.append([*y.tolist(), *x.grad.tolist()])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_lerp_refuses_ends_and_weights_of_another_dtype() -> None:
    x, y = taeda.ones(2), taeda.zeros(2, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="expected dtype float for `end` but got dtype double"):
        taeda.lerp(x, y, 0.5)
    with pytest.raises(RuntimeError, match="for `weight` but got dtype double"):
        taeda.lerp(x, x, y)
    assert taeda.lerp(x, x * 3, y.sum()).tolist() == [1, 1]


def test_complex_numbers_into_out() -> None:
    x, out = taeda.tensor([1.0, 2.0]), taeda.empty(2, dtype=taeda.complex64)
    assert taeda.complex(x, -x, out=out) is out
    assert out.tolist() == [1 - 1j, 2 - 2j]
    assert taeda.polar(x, taeda.zeros(2), out=out).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype ComplexFloat"):
        taeda.complex(x, x, out=taeda.empty(2))


@pytest.mark.parametrize("name", ["complex", "polar"])
@pytest.mark.parametrize(
    "dtypes", ["float32 float64", "float32 int32", "int32 int32", "float16 float32"]
)
def test_parts_of_complex_numbers_have_one_floating_dtype(name: str, dtypes: str) -> None:
    oracle = pytest.importorskip("torch")
    messages = []
    for framework in (taeda, oracle):
        parts = [framework.ones(2, dtype=getattr(framework, dtype)) for dtype in dtypes.split()]
        with pytest.raises(RuntimeError) as error:
            getattr(framework, name)(*parts)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [2, 3])
def test_a_power_depends_on_its_element_alone(dtype: str, power: int) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, 200).astype(dtype)
    expected = x * x if power == 2 else x * x * x
    for n in (1, 3, 8, 17, 200):
        assert (taeda.from_numpy(x[:n].copy()).pow(power).numpy() == expected[:n]).all()
    exponents = np.where(np.arange(200) % 7 == 0, power, 1.5).astype(dtype)
    got = taeda.from_numpy(np.abs(x)).pow(taeda.from_numpy(exponents)).numpy()
    assert (got[::7] == np.abs(expected)[::7]).all()


def test_abs_of_complex_numbers_is_not_written_over_them() -> None:
    x = taeda.tensor([3 + 4j])
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        x.abs_()
    assert x.item() == 3 + 4j
    assert taeda.abs(x).item() == 5.0


@pytest.mark.parametrize("shape", [(4,), (2, 6), (3, 2)])
def test_selected_rows_are_not_written_to_repeated_memory(shape: tuple[int, ...]) -> None:
    out = taeda.zeros(()).expand(shape)  # also where it would be resized
    with pytest.raises(RuntimeError, match="single memory location"):
        taeda.index_select(taeda.ones(3, 6), 1, taeda.tensor([0, 1]), out=out)
