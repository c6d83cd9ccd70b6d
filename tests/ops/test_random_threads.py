"""Long random tensors against NumPy's Mersenne twister, whoever of the threads makes them."""

import numpy as np
import pytest

import taeda

SEED, LONG = 5, 100_003


def stream(count, skip=0):
    """Words of the generator that manual_seed(SEED) starts."""
    twister = np.random.MT19937()
    twister._legacy_seeding(SEED)
    return twister.random_raw(skip + count)[skip:]


def pairs(words):
    """The first and the second word of each element as a number of 53 bits."""
    return (words[::2] << np.uint64(32) | words[1::2]) & np.uint64((1 << 53) - 1)


def units(words):
    return ((words & np.uint64(0xFFFFFF)) * 2.0**-24).astype(np.float32)


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = taeda.get_num_threads()
    taeda.set_num_threads(request.param)
    yield
    taeda.set_num_threads(before)


# Draws before, so that pieces begin anywhere in the generator's state.
@pytest.mark.parametrize("skip", [0, 1, 623, 1000])
def test_long_tensors_follow_the_stream(threads, skip):
    def after(draw):
        taeda.manual_seed(SEED)
        taeda.rand(skip)
        result = draw()
        return result.numpy(), int(taeda.randint(0, 1 << 20, ()))

    def check(draw, expected, words):
        result, following = after(draw)
        np.testing.assert_array_equal(result, expected)
        assert following == stream(1, skip + words)[0] % (1 << 20)

    one, two = stream(LONG, skip), stream(2 * LONG, skip)
    check(lambda: taeda.rand(LONG), units(one), LONG)
    check(lambda: taeda.rand(LONG, dtype=taeda.float64), pairs(two) * 2.0**-53, 2 * LONG)
    for high in (1, 2, 100, 1 << 16, (1 << 28) - 1):
        check(lambda h=high: taeda.randint(0, h, (LONG,)), one % np.uint64(high), LONG)
    whole = taeda.empty(LONG, dtype=taeda.int32)
    check(lambda: whole.random_(), one % np.uint64(1 << 31), LONG)
    check(
        lambda: taeda.randint(-3, (1 << 40) - 3, (LONG,)),
        ((two[::2] << np.uint64(32) | two[1::2]) % np.uint64(1 << 40)).astype(np.int64) - 3,
        2 * LONG,
    )
    chances = np.linspace(0, 1, LONG, dtype=np.float32)
    check(lambda: taeda.bernoulli(taeda.from_numpy(chances)), units(one) < chances, LONG)
    kept = pairs(two) * 2.0**-53 < 0.7
    check(lambda: taeda.zeros(LONG).bernoulli_(0.7), kept, 2 * LONG)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_long_dropout(threads, dtype):
    kept = pairs(stream(2 * LONG)) * 2.0**-53 < 1 - 0.25
    x = taeda.linspace(-3, 3, LONG, dtype=dtype).requires_grad_()
    taeda.manual_seed(SEED)
    y = taeda.nn.functional.dropout(x, 0.25)
    (gx,) = taeda.autograd.grad(y, [x], x.detach())
    scale = taeda.tensor(1 / 0.75, dtype=dtype)
    expected = x.detach() * taeda.where(taeda.from_numpy(kept), scale, 0)
    assert taeda.equal(y.detach(), expected)
    assert taeda.equal(gx, expected)


def test_flips_that_the_second_word_decides():
    """The threshold has the upper bits of one draw: above and below it by the lower ones."""
    bits = pairs(stream(2 * LONG))
    for at in (0, 17, 5000, LONG - 1):
        for threshold in (int(bits[at]), int(bits[at]) + 1):
            p = threshold * 2.0**-53
            taeda.manual_seed(SEED)
            drawn = taeda.empty(LONG, dtype=taeda.uint8).bernoulli_(p).numpy()
            np.testing.assert_array_equal(drawn, bits < np.uint64(threshold))
            taeda.manual_seed(SEED)
            kept = taeda.nn.functional.dropout(taeda.ones(LONG), 1 - p).numpy()
            np.testing.assert_array_equal(kept != 0, bits < np.uint64(int((1 - (1 - p)) * 2**53)))


@pytest.mark.parametrize("bad", [-0.5, 1.5, float("nan")])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_chances_are_checked_before_anything_is_drawn(bad, dtype):
    p = taeda.full((5000,), 0.5, dtype=dtype)
    p[4321] = bad
    before = taeda.get_rng_state()
    with pytest.raises(RuntimeError, match=r"probabilities in \[0, 1\]"):
        taeda.bernoulli(p)
    assert taeda.equal(taeda.get_rng_state(), before)
