"""Division of integers, whose vectors compute in floating point, against Python's and NumPy's."""

import numpy as np
import pytest

import taeda

QUOTIENTS = {
    "floor": (taeda.floor_divide, np.floor_divide),
    "remainder": (taeda.remainder, np.remainder),
    "fmod": (taeda.fmod, np.fmod),
    "trunc": (
        lambda x, y: taeda.div(x, y, rounding_mode="trunc"),
        lambda x, y: (x.astype(object) - np.fmod(x, y).astype(object)) // y.astype(object),
    ),
}


def expected(name, x, y):
    """NumPy's answer; the quotient of the smallest integer by -1 wraps around."""
    with np.errstate(all="ignore"):
        answer = QUOTIENTS[name][1](x, y)
    if answer.dtype == object:
        info = np.iinfo(x.dtype)
        span = int(info.max) - int(info.min) + 1
        answer = (answer - int(info.min)) % span + int(info.min)
    return answer.astype(x.dtype)


def check(name, x, y):
    got = QUOTIENTS[name][0](taeda.from_numpy(x), taeda.from_numpy(y)).numpy()
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, expected(name, *np.broadcast_arrays(x, y)))


def edges(dtype):
    """Powers of two and their neighbours, of both signs, where the type has them."""
    info = np.iinfo(dtype)
    powers = [(1 << k) + d for k in range(info.bits) for d in (-1, 0, 1)]
    return np.array(
        sorted({s * p for p in powers for s in (-1, 1) if info.min <= s * p <= info.max}), dtype
    )


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_pairs_of_bytes(name, dtype):
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1, dtype=dtype)
    y = x[x != 0]
    check(name, np.repeat(x, len(y)), np.tile(y, len(x)))
    for divisor in y:
        check(name, x, divisor[None])


@pytest.mark.parametrize("name", QUOTIENTS)
def test_all_short_integers(name):
    x = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    for divisor in [*edges("int16"), *np.arange(-40, 41, dtype=np.int16)]:
        if divisor != 0:
            check(name, x, divisor[None])
    rng = np.random.default_rng(0)
    divisors = rng.permutation(x[x != 0])
    check(name, x[: len(divisors)], divisors)


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_wide_integers_of_all_sizes(name, dtype):
    special = edges(dtype)
    y = special[special != 0]
    check(name, np.repeat(special, len(y)), np.tile(y, len(special)))
    rng = np.random.default_rng(1)
    bits = np.iinfo(dtype).bits
    for shift in range(0, bits, 5):
        whole = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 4099), dtype=dtype)
        x, divisor = whole[0] >> shift, whole[1] >> rng.integers(0, bits - 1, 4099, dtype=dtype)
        divisor[divisor == 0] = 1
        check(name, x, divisor)
        check(name, divisor * (x // divisor), divisor)  # whole multiples, or what wraps around
        check(name, x, divisor[:1])
        check(name, x[:1], divisor)


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_short_and_strided_arrays(name, dtype):
    x = np.arange(1, 400).astype(dtype)
    y = np.roll(x, 7)
    y[y == 0] = 3
    for n in range(70):
        check(name, x[:n], y[:n])
    check(name, x[::3], y[::3])
    check(name, x[:360].reshape(18, 20), y[:20])
    check(name, x[:360].reshape(18, 20).T, y[:18])
    inplace = taeda.from_numpy(x.copy())
    if name == "floor":
        inplace //= taeda.from_numpy(y)
        np.testing.assert_array_equal(inplace.numpy(), expected(name, x, y))


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("at", [0, 5, 63, 130])
def test_a_zero_divisor_raises_wherever_it_is(name, dtype, at):
    x = taeda.arange(1, 132).to(getattr(taeda, dtype))
    y = taeda.ones_like(x)
    y[at] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        QUOTIENTS[name][0](x, y)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        QUOTIENTS[name][0](x, taeda.zeros_like(y[:1]))


def test_threads_change_nothing():
    x = taeda.randint(-(1 << 40), 1 << 40, (300_000,))
    y = taeda.randint(1, 1 << 20, (300_000,))
    threads = taeda.get_num_threads()
    try:
        answers = []
        for n in (1, 2):
            taeda.set_num_threads(n)
            answers.append((x // y, x % y))
    finally:
        taeda.set_num_threads(threads)
    assert taeda.equal(answers[0][0], answers[1][0]) and taeda.equal(answers[0][1], answers[1][1])


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_no_pair_ends_the_process(dtype, n):
    """The smallest integer by -1, and anything by zero, which the processor traps."""
    info = np.iinfo(dtype)
    edge = [info.min, info.max, 0, 1] + ([-1] if info.min < 0 else [])
    for a in edge:
        for b in edge:
            x, y = np.full(n, a, dtype), np.full(n, b, dtype)
            for name in QUOTIENTS:
                if b == 0:
                    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                        QUOTIENTS[name][0](taeda.from_numpy(x), taeda.from_numpy(y))
                else:
                    check(name, x, y)
