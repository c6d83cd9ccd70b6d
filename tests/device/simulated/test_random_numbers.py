"""Random numbers on a simulated device: Philox as PyTorch's CUDA kernels deal it.

The expected values are computed here in Python from the definition; some were published as what
PyTorch gives for torch.rand(..., device="cuda") with seed 0.
"""

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


def words(n, seed, offset=0, each=4):
    """The words that element i is made of, for draws of `each` elements."""
    card = taeda.cuda.get_device_properties(0)
    most = card.multi_processor_count * (card.max_threads_per_multi_processor // 256)
    threads = min(most, (n + 255) // 256) * 256
    found = []
    for i in range(n):
        draw, k = divmod(i // threads, each)
        block = philox(offset // 4 + draw, i % threads, seed)
        found.append(block[4 // each * k : 4 // each * (k + 1)])
    return np.array(found, dtype=np.uint64)


def uniform(n, seed, offset=0):
    x = words(n, seed, offset)[:, 0].astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
    return np.where(x == 1, 0, x).astype(np.float32)


def test_the_published_numbers():
    taeda.cuda.manual_seed(0)
    np.testing.assert_allclose(taeda.rand(8, device="cuda").tolist(), PUBLISHED, atol=5e-5)


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
    w = words(500, 3, each=2)
    expected = (w[:, 0] ^ (w[:, 1] << np.uint64(21))).astype(np.float64) * 2.0**-53 + 2.0**-54
    assert x.tolist() == expected.tolist()


def test_normal_numbers_are_pairs():
    taeda.cuda.manual_seed(5)
    x = taeda.randn(300, device="cuda")
    for i in (0, 17, 299):
        w = philox(0, i, 5)
        u, v = w[0] * 2.0**-32 + 2.0**-33, (w[1] + 0.5) * 2.0**-32 * 2 * np.pi
        assert abs(x[i].item() - np.sqrt(-2 * np.log(u)) * np.sin(v)) < 1e-5
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


def test_seeds_and_states_repeat():
    taeda.cuda.manual_seed(1)
    a = taeda.rand(10, device="cuda")
    state = taeda.cuda.get_rng_state()
    b = taeda.rand(10, device="cuda")
    taeda.cuda.set_rng_state(state)
    assert taeda.rand(10, device="cuda").tolist() == b.tolist() != a.tolist()
