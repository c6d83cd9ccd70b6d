"""Random numbers on a simulated device: Philox as PyTorch's CUDA kernels deal it.

The expected values are computed here in Python from the definition; some were published as what
PyTorch gives for torch.rand(..., device="cuda") with seed 0.
"""

import math

import numpy as np
import pytest

import taeda
from taeda import _C

PUBLISHED = [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203]


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def philox(counter, thread, key):
    c = [counter & 0xFFFFFFFF, counter >> 32, thread, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def most_threads():
    card = taeda.cuda.get_device_properties(0)
    return card.multi_processor_count * (card.max_threads_per_multi_processor // 256) * 256


def words(n, seed, offset=0, each=4):
    """The words that element i is made of, for draws of `each` elements."""
    threads = min(most_threads(), (n + 255) // 256 * 256)
    found = []
    for i in range(n):
        draw, k = divmod(i // threads, each)
        block = philox(offset // 4 + draw, i % threads, seed)
        found.append(block[4 // each * k : 4 // each * (k + 1)])
    return np.array(found, dtype=np.uint64)


def uniform(n, seed, offset=0):
    x = words(n, seed, offset)[:, 0].astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
    return np.where(x == 1, 0, x).astype(np.float32)


def uniform_doubles(n, seed):
    w = words(n, seed, each=2)
    return (w[:, 0] ^ (w[:, 1] << np.uint64(21))).astype(np.float64) * 2.0**-53 + 2.0**-54


def test_the_published_numbers():
    taeda.cuda.manual_seed(0)
    np.testing.assert_allclose(taeda.rand(8, device="cuda").tolist(), PUBLISHED, atol=5e-5)


def test_uniform_numbers_of_half_precision_stay_below_the_upper_bound():
    for dtype in (taeda.float16, taeda.bfloat16):
        x = taeda.rand(100_000, device="cuda", dtype=dtype).float()
        assert 0 <= x.min().item() and x.max().item() < 1
        y = taeda.empty(100_000, device="cuda", dtype=dtype).uniform_(-3, 5).float()
        assert -3 <= y.min().item() and y.max().item() < 5


def test_uniform_numbers_follow_the_definition():
    taeda.cuda.manual_seed(7)
    a, b = taeda.rand(1000, device="cuda"), taeda.rand(5, device="cuda")
    assert a.tolist() == uniform(1000, 7).tolist()
    assert b.tolist() == uniform(5, 7, 4).tolist()
    taeda.cuda.manual_seed(7)
    x = taeda.empty(40, 25, device="cuda").t()
    assert x.uniform_().t().flatten().tolist() == a.tolist()


def test_doubles_have_53_bits():
    taeda.cuda.manual_seed(3)
    x = taeda.rand(500, device="cuda", dtype=taeda.float64)
    assert x.tolist() == uniform_doubles(500, 3).tolist()


def test_normal_numbers_are_pairs():
    taeda.cuda.manual_seed(5)
    x = taeda.randn(300, device="cuda")
    for i in (0, 17, 299):
        w = philox(0, i, 5)
        u, v = w[0] * 2.0**-32 + 2.0**-33, (w[1] + 0.5) * 2.0**-32 * 2 * np.pi
        assert abs(x[i].item() - np.sqrt(-2 * np.log(u)) * np.sin(v)) < 1e-5
    taeda.cuda.manual_seed(5)
    y = taeda.randn(300, device="cuda", dtype=taeda.float64)
    for i in (0, 17, 299):
        w = [int(word) for word in philox(0, i, 5)]
        u, v = (((a ^ b << 21) + 0.5) * 2.0**-53 for a, b in (w[:2], w[2:]))
        assert abs(y[i].item() - np.sqrt(-2 * np.log(u)) * np.sin(2 * np.pi * v)) < 1e-13
    y = taeda.randn(20000, device="cuda", dtype=taeda.float64)
    assert abs(y.mean().item()) < 0.03 and abs(y.std().item() - 1) < 0.03


def test_integers_bernoulli_exponential():
    taeda.cuda.manual_seed(11)
    x = taeda.randint(-3, 4, (1000,), device="cuda")
    assert x.tolist() == ((words(1000, 11)[:, 0] % 7).astype(np.int64) - 3).tolist()
    p = taeda.zeros(4000, device="cuda").bernoulli_(0.25)
    assert set(p.tolist()) == {0, 1} and abs(p.mean().item() - 0.25) < 0.03
    e = taeda.empty(4000, device="cuda").exponential_(2.0)
    assert e.amin().item() > 0 and abs(e.mean().item() - 0.5) < 0.05


def unit(words_of_numbers):
    return words_of_numbers.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)


def test_integers_of_a_wide_range_have_64_bits():
    taeda.cuda.manual_seed(2)
    x = taeda.randint(0, 1 << 28, (100,), device="cuda")
    pairs = words(100, 2, each=2)
    wide = [(int(a) << 32 | int(b)) % (1 << 28) for a, b in pairs]
    assert x.tolist() == wide


@pytest.mark.parametrize(
    "dtype, range_",
    [("int32", 2**31), ("uint8", 256), ("bool", 2), ("float16", 2**11 + 1), ("float32", 2**24 + 1)],
)
def test_random_counts_as_far_as_the_dtype_does(dtype, range_):
    taeda.cuda.manual_seed(4)
    x = taeda.empty(50, dtype=getattr(taeda, dtype), device="cuda").random_()
    assert x.tolist() == [w % range_ for w in words(50, 4)[:, 0].tolist()]
    taeda.cuda.manual_seed(4)
    y = taeda.empty(9, dtype=taeda.int64, device="cuda").random_()
    assert y.tolist() == [(int(a) << 32 | int(b)) % 2**63 for a, b in words(9, 4, each=2)]


def test_transformed_uniform_and_normal_numbers():
    u = unit(words(200, 6)[:, 0]).astype(np.float64)
    expected = {
        "cauchy_": 1 + 2 * np.tan(np.pi * (np.clip(u, 2**-23, 1 - 2**-23) - 0.5)),
        "geometric_": np.ceil(np.log(u) / np.log(1 - np.float32(0.3))),
    }
    arguments = {"cauchy_": (1.0, 2.0), "geometric_": (0.3,)}
    for name, values in expected.items():
        taeda.cuda.manual_seed(6)
        x = getattr(taeda.empty(200, device="cuda"), name)(*arguments[name])
        np.testing.assert_allclose(x.tolist(), values, rtol=2e-4)
    for dtype, tolerance in ((taeda.float32, 1e-6), (taeda.float64, 1e-12)):
        taeda.cuda.manual_seed(6)
        normal = taeda.randn(200, device="cuda", dtype=dtype)
        taeda.cuda.manual_seed(6)
        x = taeda.empty(200, device="cuda", dtype=dtype).log_normal_(0.5, 0.25)
        expected = np.exp(0.25 * np.array(normal.tolist()) + 0.5)
        np.testing.assert_allclose(x.tolist(), expected, tolerance)


def test_transformed_doubles():
    u = uniform_doubles(200, 6)
    expected = {
        "cauchy_": (1 + 2 * np.tan(np.pi * (u - 0.5)), 1.0, 2.0),
        "exponential_": (-np.log(u) / 2, 2.0),
        "geometric_": (np.ceil(np.log(u) / np.log(0.7)), 0.3),
        "bernoulli_": (u < 0.25, 0.25),
    }
    for name, (values, *arguments) in expected.items():
        taeda.cuda.manual_seed(6)
        x = getattr(taeda.empty(200, device="cuda", dtype=taeda.float64), name)(*arguments)
        np.testing.assert_allclose(x.tolist(), values, rtol=1e-12, err_msg=name)


def test_probabilities_by_element_have_four_elements_a_thread():
    taeda.cuda.manual_seed(8)
    p = taeda.linspace(0, 1, 1001)
    x = taeda.bernoulli(p.to("cuda"))
    drawn = np.array([philox(0, t, 8) for t in range(251)], dtype=np.uint64).flatten()[:1001]
    assert x.tolist() == (unit(drawn) <= p.numpy()).astype(float).tolist()
    assert taeda.rand(1, device="cuda").item() == uniform(1, 8, 12)[0]  # 10, rounded up
    y = taeda.empty(30, 20, device="cuda", dtype=taeda.int64).t()
    y.bernoulli_(taeda.zeros(20, 1, device="cuda"))
    assert y.sum().item() == 0
    taeda.bernoulli(taeda.tensor([0.5, 1.5], device="cuda"))
    with pytest.raises(RuntimeError, match=r"expected probabilities in \[0, 1\]"):
        taeda.cuda.synchronize()


def dropped(n, seed, width):
    """Which words, of which draws, decide about the elements."""
    threads = min(most_threads(), (n + 255) // 256 * 256)
    found = []
    for i in range(n):
        group, k = divmod(i, width)
        turn, thread = divmod(group, threads)
        if width == 1:
            turn, k = divmod(turn, 4)
        draw = turn * 2 + k // 4 if width == 8 else turn
        found.append(philox(draw, thread, seed)[k % 4])
    return unit(np.array(found, dtype=np.uint64))


@pytest.mark.parametrize(
    "dtype, n, width",
    [
        ("float32", 4096, 4),
        ("float32", 4098, 2),
        ("float32", 4097, 1),
        ("float16", 4096, 8),
        ("bfloat16", 4100, 4),
        ("float64", 514, 2),
        ("float64", 51, 1),
    ],
)
def test_dropout_keeps_by_draws_of_four(dtype, n, width):
    x = taeda.arange(n, dtype=taeda.float64).remainder(61).add(1).to(getattr(taeda, dtype))
    on_device = x.to("cuda").requires_grad_()
    taeda.cuda.manual_seed(9)
    y = taeda.dropout(on_device, 0.25, True)
    kept = dropped(n, 9, width) < 0.75
    scale = np.float64(1 / 0.75) if dtype == "float64" else np.float32(1 / 0.75)
    wide = x.to(taeda.float64 if dtype == "float64" else taeda.float32).numpy()
    expected = taeda.tensor(wide * kept * scale).to(x.dtype)
    assert y.tolist() == expected.tolist()
    y.backward(taeda.ones_like(y))
    assert on_device.grad.tolist() == taeda.tensor(kept * scale).to(x.dtype).tolist()


def test_dropout_of_more_elements_than_threads_draws_on():
    card = most_threads()
    n = 4 * card + 4
    taeda.cuda.manual_seed(1)
    y = taeda.dropout(taeda.ones(n, device="cuda"), 0.5, True).cpu().numpy()
    for i in (0, 5, 4 * card - 1, 4 * card, n - 1):
        turn, group = divmod(i // 4, card)
        assert (y[i] != 0) == (unit(np.uint64(philox(turn, group, 1)[i % 4])) < 0.5)
    second = taeda.rand(1, device="cuda").item()
    assert second == uniform(1, 1, 8)[0]


def test_small_poisson_numbers_count_arrivals():
    taeda.cuda.manual_seed(12)
    rates = np.linspace(0, 60, 300).astype(np.float32)
    x = taeda.poisson(taeda.tensor(rates).to("cuda"))
    for i in (0, 1, 77, 299):
        stream = (w for draw in range(100) for w in philox(draw, i, 12))
        product, k = np.exp(rates[i]), 0
        while True:
            k += 1
            product *= unit(np.uint64(next(stream)))
            if not product > 1:
                break
        assert x[i].item() == k - 1
    assert taeda.rand(1, device="cuda").item() == uniform(1, 12, 20)[0]


@pytest.mark.parametrize("rate", [3.0, 100.0, 3000.0, 5000.0])
def test_poisson_numbers_have_the_mean_and_variance_of_their_rate(rate):
    taeda.cuda.manual_seed(13)
    x = taeda.poisson(taeda.full((4000,), rate, device="cuda", dtype=taeda.float64)).cpu().numpy()
    assert (x == np.floor(x)).all() and (x >= 0).all()
    assert abs(x.mean() - rate) < 5 * math.sqrt(rate / 4000)
    assert abs(x.var() / rate - 1) < 0.15


def test_a_negative_rate_raises_later():
    taeda.poisson(taeda.tensor([1.0, -1.0], device="cuda"))
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        taeda.cuda.synchronize()


def test_binomial_numbers_add_up_waiting_times():
    taeda.cuda.manual_seed(14)
    n, p = 600, 0.3
    counts = taeda.full((n,), 12.0, device="cuda")
    x = taeda.binomial(counts, taeda.full((n,), p, device="cuda"))

    def successes(words_of_thread):
        trials, k = np.float32(0), 0
        while True:
            u = np.float32((next(words_of_thread) & 0xFFFFFF) * 2.0**-24)
            trials += np.ceil(np.log(u) / np.log1p(np.float32(-p)))
            if trials > 12:
                return k
            k += 1

    for block, lane in ((0, 0), (0, 5), (1, 3)):
        stream = (w for draw in range(99) for w in philox(draw, block * 128 + lane, 14))
        for k in range(4):
            i = block * 512 + lane + 128 * k
            if i < n:
                assert x[i].item() == successes(stream), (block, lane, k)
    assert taeda.rand(1, device="cuda").item() == uniform(1, 14, 44)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_binomial_numbers_have_the_right_mean_and_variance(p, dtype):
    taeda.cuda.manual_seed(15)
    counts = taeda.full((4000,), 1000.0, device="cuda", dtype=getattr(taeda, dtype))
    x = taeda.binomial(counts, taeda.full_like(counts, p)).cpu().double().numpy()
    mean, variance = 1000 * p, 1000 * p * (1 - p)
    assert (x == np.floor(x)).all() and (0 <= x).all() and (x <= 1000).all()
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / 4000)
    assert abs(x.var() / variance - 1) < 0.15


def test_binomial_at_the_ends():
    nan = math.nan
    counts = taeda.tensor([0.0, 5, 5, 5, nan], device="cuda")
    p = taeda.tensor([0.5, 0, 1, nan, 0.5], device="cuda")
    x = taeda.binomial(counts, p).tolist()
    assert x[:3] == [0, 0, 5] and math.isnan(x[3]) and math.isnan(x[4])


class Curand:
    """The numbers of one thread, as PyTorch's kernels call for them."""

    def __init__(self, thread, seed):
        self.words = (np.uint64(w) for draw in range(1000) for w in philox(draw, thread, seed))
        self.second = None

    def uniform(self):
        return float(unit(next(self.words)))

    def normal(self):
        if self.second is not None:
            x, self.second = self.second, None
            return x
        u, v = self.uniform(), (int(next(self.words)) + 0.5) * 2.0**-32 * 2 * math.pi
        radius = math.sqrt(-2 * math.log(u))
        self.second = radius * math.cos(v)
        return radius * math.sin(v)

    def gamma(self, shape):
        scale = 1.0
        if shape < 1:
            if shape == 0:
                return 0
            scale = (1 - self.uniform()) ** (1 / shape)
            shape += 1
        d = shape - float(np.float32(1 / 3))
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            v = (1 + c * x) ** 3
            if v <= 0:
                continue
            u = 1 - self.uniform()
            if math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
                return scale * d * v


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_numbers_are_those_of_marsaglia_and_tsang(dtype):
    shapes = np.concatenate([[0.0, 0.01, 0.3], np.geomspace(0.05, 1e4, 297)])
    shapes = shapes.astype(dtype)
    taeda.cuda.manual_seed(20)
    x = taeda._standard_gamma(taeda.from_numpy(shapes).to("cuda")).numpy(force=True)
    expected = [Curand(i, 20).gamma(float(shape)) for i, shape in enumerate(shapes)]
    expected = np.maximum(np.array(expected), np.finfo(dtype).tiny)
    np.testing.assert_allclose(x, expected, rtol=2e-4 if dtype == "float32" else 3e-6)
    assert taeda.rand(1, device="cuda").item() == uniform(1, 20, 12)[0]  # 10, rounded up


@pytest.mark.parametrize("shape", [0.2, 1.0, 30.0])
def test_gamma_numbers_have_the_right_mean_and_variance(shape):
    taeda.cuda.manual_seed(21)
    x = taeda._standard_gamma(taeda.full((8000,), shape, device="cuda")).double()
    assert abs(x.mean().item() - shape) < 5 * math.sqrt(shape / 8000)
    assert abs(x.var().item() / shape - 1) < 0.2


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gamma_numbers_of_shapes_that_are_none(device):
    x = taeda._standard_gamma(taeda.tensor([math.nan, -1.0, math.inf, 2.0], device=device)).tolist()
    assert math.isnan(x[0]) and math.isnan(x[1]) and x[2] == math.inf and 0 < x[3] < 20


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dirichlet_numbers_are_shares_of_gamma_numbers(dtype):
    alpha = taeda.tensor([[0.5, 1, 3, 7], [2, 2, 1e-8, 9]], dtype=getattr(taeda, dtype))
    taeda.cuda.manual_seed(22)
    gamma = taeda._standard_gamma(alpha.to("cuda")).numpy(force=True)
    taeda.cuda.manual_seed(22)
    x = taeda._sample_dirichlet(alpha.to("cuda")).numpy(force=True)
    limits = np.finfo(dtype)
    expected = np.clip(gamma / gamma.sum(-1, keepdims=True), limits.tiny, 1 - limits.eps)
    assert x.dtype == gamma.dtype
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_gradients_of_gamma_and_dirichlet_numbers_stay_on_the_device():
    alpha = taeda.tensor([0.5, 1, 3, 7], device="cuda", requires_grad=True)
    x = taeda._standard_gamma(alpha)
    (grad,) = taeda.autograd.grad(x.sum(), alpha)
    assert taeda.equal(grad, taeda._standard_gamma_grad(alpha, x))
    taeda.distributions.Dirichlet(alpha).rsample().square().sum().backward()
    assert alpha.grad.isfinite().all() and alpha.grad.device.type == "cuda"


def exponential(n, seed):
    return -np.log(unit(words(n, seed)[:, 0]).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("samples", [1, 7])
def test_categories_without_replacement_are_those_of_the_largest_keys(samples, dtype):
    weights = np.random.default_rng(0).random((5, 40)).astype(dtype)
    weights[2, 3:] = 0
    weights[2, :3] = 1e-30
    taeda.cuda.manual_seed(16)
    if samples == 7:
        weights[2] += 0.01
    x = taeda.multinomial(taeda.tensor(weights).to("cuda"), samples)
    draws = exponential(200, 16) if dtype == np.float32 else -np.log(uniform_doubles(200, 16))
    keys = weights.astype(np.float64) / draws.reshape(5, 40)
    assert x.tolist() == np.argsort(-keys, 1, kind="stable")[:, :samples].tolist()
    assert x.dtype is taeda.int64


def test_categories_with_replacement_are_searched_for():
    weights = np.random.default_rng(1).random((3, 50)).astype(np.float32)
    weights[:, ::3] = 0
    taeda.cuda.manual_seed(17)
    x = taeda.multinomial(taeda.tensor(weights).to("cuda"), 150, replacement=True).numpy(force=True)
    cumulative = (
        np.cumsum(weights.astype(np.float64), 1) / weights.sum(1, dtype=np.float64)[:, None]
    )
    for row in range(3):
        u = [unit(np.uint64(philox(0, row * 256 + s, 17)[0])) for s in range(150)]
        assert (x[row] == np.searchsorted(cumulative[row], u)).mean() > 0.97  # rounding
        assert (weights[row][x[row]] > 0).all()
    assert taeda.rand(1, device="cuda").item() == uniform(1, 17, 4)[0]


@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_wrong_raise_later(replacement):
    for weights, message in [
        ([1.0, -1.0, 2.0], "element < 0"),
        ([1.0, math.nan, 2.0], "element < 0"),
        ([1.0, math.inf, 2.0], "element < 0"),
        ([0.0, 0.0, 0.0], "sum of probabilities <= 0"),
    ]:
        taeda.multinomial(taeda.tensor(weights, device="cuda"), 2, replacement)
        with pytest.raises(RuntimeError, match=message):
            taeda.cuda.synchronize()


def test_half_precision_and_one_row():
    taeda.cuda.manual_seed(18)
    w = taeda.tensor([0.0, 1, 0, 3], device="cuda", dtype=taeda.float16)
    x = taeda.multinomial(w, 500, replacement=True)
    assert set(x.tolist()) == {1, 3} and abs((x == 3).float().mean().item() - 0.75) < 0.07
    assert sorted(taeda.multinomial(w, 2).tolist()) == [1, 3]


def test_seeds_and_states_repeat():
    taeda.cuda.manual_seed(1)
    a = taeda.rand(10, device="cuda")
    state = taeda.cuda.get_rng_state()
    b = taeda.rand(10, device="cuda")
    taeda.cuda.set_rng_state(state)
    assert taeda.rand(10, device="cuda").tolist() == b.tolist() != a.tolist()
