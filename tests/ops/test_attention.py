"""Attention by blocks against its definition in float64 and against PyTorch."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda as torch
import taeda.nn.functional as F
from taeda.autograd import forward_ad

attention = F.scaled_dot_product_attention

# batch, heads of queries, heads of keys, queries, keys, features of keys, features of values
SIZES = [
    (1, 1, 1, 8, 8, 4, 4),
    (2, 3, 3, 40, 33, 5, 7),
    (1, 2, 2, 256, 256, 64, 64),
    (2, 4, 2, 130, 300, 16, 16),
    (1, 1, 1, 33, 600, 64, 32),
    (1, 2, 1, 600, 33, 9, 70),
    (1, 1, 1, 300, 1, 1, 1),
    (1, 6, 2, 9, 513, 128, 128),
    (1, 1, 1, 531, 531, 33, 65),
]


def operands(size, seed=0):
    """Query, key, value and a gradient of the result, each with its dimensions in another order."""
    b, h, g, t, s, d, e = size
    torch.manual_seed(seed)
    q = torch.randn(b, t, h, d).transpose(1, 2)
    k, v = torch.randn(b, g, s, d), torch.randn(b, g, e, s).transpose(2, 3)
    return q, k, v, torch.randn(b, h, t, e)


def mask_of(kind, size):
    b, h, _, t, s, _, _ = size
    if kind == "bool":
        return torch.rand(t, s) > 0.3
    if kind == "no keys in some rows":
        mask = torch.rand(b, 1, t, s) > 0.3
        mask[:, :, ::3] = False
        return mask
    if kind == "padding":
        return torch.rand(b, 1, 1, s) > 0.3
    return torch.randn(b, h, t, s) if kind == "float" else None


def definition(q, k, v, gy, mask, causal):
    """The result and the gradients of q, k and v, by NumPy in float64."""
    q, k, v, gy = (x.numpy().astype(np.float64) for x in (q, k, v, gy))
    repeats = q.shape[1] // k.shape[1]
    wide_k, wide_v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
    scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ wide_k.swapaxes(2, 3) * scale
    if mask is not None:
        m = mask.numpy()
        scores = np.where(m, scores, -np.inf) if m.dtype == bool else scores + m
    if causal:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    high = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(high), 0, high))
    total = weights.sum(-1, keepdims=True)
    weights /= np.where(total == 0, 1, total)
    out = weights @ wide_v
    gw = gy @ wide_v.swapaxes(2, 3)
    gs = weights * (gw - (gw * weights).sum(-1, keepdims=True)) * scale

    def by_group(x):
        return x.reshape(x.shape[0], k.shape[1], repeats, *x.shape[2:]).sum(2)

    return (
        out,
        gs @ wide_k,
        by_group(gs.swapaxes(2, 3) @ q),
        by_group(weights.swapaxes(2, 3) @ gy),
    )


def assert_near(actual, expected, tolerance=3e-6):
    actual = actual.detach().float().numpy()
    assert actual.shape == expected.shape
    if expected.size:
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(actual / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["none", "bool", "no keys in some rows", "padding", "float"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_result_and_gradients(size, causal, kind):
    q, k, v, gy = operands(size)
    mask = mask_of(kind, size)
    expected = definition(q, k, v, gy, mask, causal)
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v, mask, is_causal=causal, enable_gqa=size[1] != size[2])
    assert "FlashAttention" in type(out.grad_fn).__name__
    grads = torch.autograd.grad(out, (q, k, v), gy)
    for actual, wanted in zip((out, *grads), expected, strict=True):
        assert_near(actual, wanted)


@pytest.mark.parametrize(
    "size",
    [(0, 2, 2, 9, 5, 4, 4), (2, 2, 2, 9, 0, 4, 4), (2, 2, 2, 9, 5, 0, 4), (2, 2, 2, 9, 5, 4, 0)],
    ids=str,
)
def test_empty(size):
    q, k, v, gy = operands(size)
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v, scale=1.0)
    assert out.shape == gy.shape
    assert not torch.isnan(out).any()
    for x, gx in zip((q, k, v), torch.autograd.grad(out, (q, k, v), gy), strict=True):
        assert gx.shape == x.shape
        assert torch.isfinite(gx).all()
    if size[4] == 0:
        assert not out.any()


FEW = [
    (1, 12, 12, 1, 1024, 64, 64),
    (2, 4, 2, 3, 300, 16, 20),
    (1, 1, 1, 7, 2100, 33, 65),
    (1, 2, 1, 5, 600, 64, 32),
    (3, 6, 2, 1, 513, 128, 128),
    (2, 8, 8, 2, 24, 1, 3),
]


def rows_of_heads(size):
    """As `operands`, but with the features of keys and values side by side, as caches have them."""
    q, k, v, gy = operands(size)
    wide = torch.zeros(*v.shape[:2], 2 * v.shape[2], v.shape[3])  # a cache with room for more
    wide[:, :, : v.shape[2]] = v
    return q, k.transpose(1, 2).contiguous().transpose(1, 2), wide[:, :, : v.shape[2]], gy


@pytest.mark.parametrize("kind", ["none", "bool", "no keys in some rows", "padding", "float"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", FEW, ids=str)
def test_few_queries(size, dtype, causal, kind):
    operands = [x.to(dtype) for x in rows_of_heads(size)]
    mask = mask_of(kind, size)
    expected = definition(*(x.float() for x in operands), mask, causal)
    mask = mask.to(dtype) if kind == "float" else mask
    if kind == "float":
        expected = definition(*(x.float() for x in operands), mask.float(), causal)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            q, k, v, _ = operands
            results.append(attention(q, k, v, mask, is_causal=causal, enable_gqa=True))
    finally:
        torch.set_num_threads(before)
    assert results[0].dtype == dtype
    tolerance = {torch.float32: 3e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    assert_near(results[0], expected[0], tolerance)
    assert torch.equal(*results)


def test_tangents_and_gradients_of_few_queries():
    q, k, v, gy = (x.contiguous() for x in operands(FEW[3]))
    direction = torch.randn(q.shape)

    def run(dtype):
        x = [t.detach().to(dtype) for t in (q, k, v)]
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x[0], direction.to(dtype))
            tangent = forward_ad.unpack_dual(attention(dual, *x[1:])).tangent
        inputs = [t.requires_grad_() for t in x]
        (gq,) = torch.autograd.grad(attention(*inputs), inputs[0], gy.to(dtype), create_graph=True)
        return (tangent, gq, *torch.autograd.grad((gq * direction.to(dtype)).sum(), inputs))

    for actual, expected in zip(run(torch.float32), run(torch.float64), strict=True):
        assert_near(actual, expected.detach().numpy(), 1e-5)


def test_few_queries_of_nothing():
    q, k, v, gy = operands((2, 2, 2, 3, 0, 4, 4))
    assert torch.equal(attention(q, k, v.contiguous()), torch.zeros_like(gy))


def test_an_expanded_gradient_and_every_seventh_feature():
    q, k, v, gy = operands((2, 2, 2, 40, 50, 21, 21))
    q, k, v = (x[..., ::7] for x in (q, k, v))
    gy = torch.ones(1, 1, 1, 1).expand(2, 2, 40, 3)
    expected = definition(q, k, v, gy, None, False)
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = attention(q, k, v)
    for actual, wanted in zip(
        (out, *torch.autograd.grad(out, (q, k, v), gy)), expected, strict=True
    ):
        assert_near(actual, wanted)


def test_memory_of_the_result_is_by_token_where_the_querys_is():
    q, k, v, _ = operands((2, 3, 3, 16, 16, 8, 8))
    assert attention(q, k, v).transpose(1, 2).is_contiguous()
    assert attention(q.contiguous(), k, v).is_contiguous()


def test_large_scores_do_not_overflow():
    q, k, v, gy = operands((1, 1, 1, 64, 700, 16, 16))
    q, k = q * 100, k * 100
    expected = definition(q, k, v, gy, None, False)
    assert_near(attention(q, k, v), expected[0], 1e-4)


@pytest.mark.parametrize("queries", [40, 3])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_inf_as_in_pytorch(value, queries):
    pytorch = pytest.importorskip("torch")
    q, k, v, _ = operands((1, 2, 2, queries, 40, 8, 8))
    v = v.contiguous()
    k[0, 0, 20, 3] = value
    mask = torch.ones(queries, 40, dtype=torch.bool)
    mask[:, 20] = False
    for options in ({}, {"is_causal": True}, {"attn_mask": mask}):
        theirs = {
            n: pytorch.from_numpy(o.numpy()) if n == "attn_mask" else o for n, o in options.items()
        }
        expected = pytorch.nn.functional.scaled_dot_product_attention(
            *(pytorch.from_numpy(x.contiguous().numpy()) for x in (q, k, v)), **theirs
        )
        actual = attention(q, k, v, **options).numpy()
        np.testing.assert_array_equal(np.isnan(actual), pytorch.isnan(expected).numpy())
        np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("few", [False, True], ids=["blocks", "composite"])
@pytest.mark.parametrize("float_mask", [False, True])
def test_rows_without_keys_give_zero(few, float_mask):
    q, k, v, gy = operands((1, 2, 2, 4 if few else 16, 24, 8, 8))
    mask = torch.ones(q.size(2), 24, dtype=torch.bool)
    mask[1] = False
    if float_mask:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    expected = definition(q, k, v, gy, mask, False)
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v, mask)
    assert not out[:, :, 1].any()
    for actual, wanted in zip(
        (out, *torch.autograd.grad(out, (q, k, v), gy)), expected, strict=True
    ):
        assert_near(actual, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_computed_in_single(dtype, causal):
    q, k, v, gy = (x.to(dtype) for x in operands((2, 4, 2, 70, 90, 16, 24)))
    expected = definition(*(x.float() for x in (q, k, v, gy)), None, causal)
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v, is_causal=causal, enable_gqa=True)
    assert out.dtype == dtype
    grads = torch.autograd.grad(out, (q, k, v), gy)
    assert all(g.dtype == dtype for g in grads)
    for actual, wanted in zip((out, *grads), expected, strict=True):
        assert_near(actual, wanted, 8e-3 if dtype == torch.bfloat16 else 1e-3)


def test_gradients_of_gradients_and_tangents():
    q, k, v, gy = operands((1, 4, 2, 20, 30, 5, 6))
    mask = torch.randn(20, 30)
    direction = torch.randn(1, 4, 20, 5)

    def run(dtype):
        x = [t.detach().to(dtype).requires_grad_() for t in (q, k, v)]
        options = {"attn_mask": mask.to(dtype), "enable_gqa": True}
        (gq,) = torch.autograd.grad(attention(*x, **options), x[0], gy.to(dtype), create_graph=True)
        second = torch.autograd.grad((gq * direction.to(dtype)).sum(), x)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x[0].detach(), direction.to(dtype))
            tangent = forward_ad.unpack_dual(
                attention(dual, *(t.detach() for t in x[1:]), **options)
            ).tangent
        return (*second, tangent)

    for actual, expected in zip(run(torch.float32), run(torch.float64), strict=True):
        assert_near(actual, expected.detach().numpy(), 1e-5)


def test_a_mask_that_wants_a_gradient():
    q, k, v, gy = operands((1, 2, 2, 20, 30, 5, 6))

    def run(dtype):
        mask = torch.linspace(-1, 1, 600).view(20, 30).to(dtype).requires_grad_()
        attention(*(x.to(dtype) for x in (q, k, v)), mask).backward(gy.to(dtype))
        return mask.grad

    assert_near(run(torch.float32), run(torch.float64).numpy(), 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_half_precision_are_not_rounded(dtype):
    q, k, v, gy = operands((2, 3, 3, 40, 60, 16, 8))
    mask = torch.linspace(-2, 2, 2400).view(40, 60)

    def run(tensors, mask):
        tensors = [t.detach().requires_grad_() for t in tensors]
        mask = mask.detach().requires_grad_()
        out = attention(*tensors, mask)
        out.backward(gy.to(out.dtype))
        return out.detach(), *(t.grad for t in (*tensors, mask))

    given = [(3 * t).to(dtype) for t in (q, k, v)]  # scores of 9 and more
    expected = run([t.double() for t in given], mask.to(dtype).double())
    for actual, exact in zip(run(given, mask.to(dtype)), expected, strict=True):
        # The result's own rounding is half of eps.
        error = (actual.double() - exact).abs().max() / exact.abs().max()
        assert error < torch.finfo(dtype).eps


def test_three_dimensions_and_dropout():
    q, k, v, _ = operands((1, 6, 6, 20, 30, 5, 6))
    mask = torch.rand(6, 20, 30) > 0.3
    expected = attention(q, k, v, mask)
    assert_near(attention(q[0], k[0], v[0], mask), expected[0].numpy())
    torch.manual_seed(1)
    some = torch.stack([attention(q, k, v, mask, dropout_p=0.3) for _ in range(400)]).mean(0)
    assert (some - expected).abs().max() < 0.25  # the mean of dropped weights is the weights


@pytest.mark.parametrize(
    "change, message",
    [
        ({"key": torch.randn(2, 3, 9, 5).double()}, "to have the same dtype"),
        ({"query": torch.randn(5)}, "at least 2 dimensional"),
        ({"attn_mask": torch.ones(9, 9, dtype=torch.int32)}, "Expected attn_mask dtype"),
        ({"attn_mask": torch.zeros(4, 9)}, "must match the size"),
        ({"key": torch.randn(2, 3, 9, 6)}, "Expected size for first two dimensions"),
        ({"dropout_p": 1.5}, "dropout probability"),
        ({"query": torch.randn(2, 4, 9, 5), "enable_gqa": True}, "Number of heads"),
    ],
)
def test_errors(change, message):
    x = torch.randn(2, 3, 9, 5)
    with pytest.raises(RuntimeError, match=message):
        attention(**{"query": x, "key": x, "value": x, **change})


def test_meta():
    q, k, v, _ = (x.to("meta") for x in operands((2, 4, 2, 70, 90, 16, 24)))
    for x in (q, k, v):
        x.requires_grad_()
    out = attention(q, k, v, enable_gqa=True)
    assert out.is_meta
    assert out.shape == (2, 4, 70, 24)
    assert [g.shape for g in torch.autograd.grad(out.sum(), (q, k, v))] == [
        x.shape for x in (q, k, v)
    ]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "size", [(2, 4, 2, 600, 300, 32, 16), (1, 1, 1, 530, 700, 32, 16), (1, 6, 3, 300, 530, 16, 33)]
)
def test_threads_change_no_bit(size, causal):
    q, k, v, gy = operands(size)
    for x in (q, k, v):
        x.requires_grad_()
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            out = attention(q, k, v, is_causal=causal, enable_gqa=True)
            results.append((out, *torch.autograd.grad(out, (q, k, v), gy)))
    finally:
        torch.set_num_threads(before)
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("mask_dtype", [None, torch.bool, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [(3,), (2, 3), (2, 2, 3)])
def test_no_keys_give_zeros(mask_dtype, dtype, size):
    if mask_dtype is torch.float32:
        mask_dtype = dtype
    mask = None if mask_dtype is None else torch.zeros(3, 0, dtype=mask_dtype)
    q = torch.ones(*size, 4, dtype=dtype, requires_grad=True)
    k, v = (torch.ones(*size[:-1], 0, 4, dtype=dtype, requires_grad=True) for _ in range(2))
    out = attention(q, k, v, attn_mask=mask)
    assert out.shape == q.shape and not out.any()
    out.sum().backward()
    assert not q.grad.any() and k.grad.shape == k.shape and v.grad.shape == v.shape


@pytest.mark.skipif("TAEDA_CPU" in os.environ, reason="runs itself")
@pytest.mark.parametrize("cpu", ["baseline", "avx2"])
def test_other_instruction_sets(cpu):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env={**os.environ, "TAEDA_CPU": cpu}, cwd=Path(__file__).parents[2],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
