"""torch.nn.attention.bias: attention with causal masks against NumPy in float64."""

import numpy as np
import pytest

import taeda
from taeda.nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)

attend = taeda.nn.functional.scaled_dot_product_attention


def expected(q, k, v, offset):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    later = np.arange(k.shape[-2]) > np.arange(q.shape[-2])[:, None] + offset
    scores[..., later] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("queries", [1, 3, 5])
@pytest.mark.parametrize("made", [causal_upper_left, causal_lower_right])
def test_attention_sees_what_came_before(made, queries):
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, 2, n, 4)) for n in (queries, 5, 5))
    tensors = [taeda.tensor(x, requires_grad=True) for x in (q, k, v)]
    found = attend(*tensors, attn_mask=made(queries, 5))
    offset = 5 - queries if made is causal_lower_right else 0
    assert type(found) is taeda.Tensor
    np.testing.assert_allclose(found.detach().numpy(), expected(q, k, v, offset), rtol=1e-12)
    mask = made(queries, 5)
    assert taeda.autograd.gradcheck(lambda *t: attend(*t, attn_mask=mask), tensors)


def test_what_a_mask_knows():
    mask = causal_lower_right(2, 3)
    assert isinstance(mask, CausalBias) and mask.variant is CausalVariant.LOWER_RIGHT
    assert (mask.seq_len_q, mask.seq_len_kv) == tuple(mask.shape) == (2, 3)
    assert mask._materialize().tolist() == [[True, True, False], [True, True, True]]
    assert (~mask).sum() == 1


def test_what_is_refused():
    x = taeda.ones(1, 1, 2, 4)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D"):
        causal_upper_left(2)
    with pytest.raises(AssertionError, match="variant must be"):
        CausalBias("lower", 2, 2)
    with pytest.raises(ValueError, match="causal=True"):
        attend(x, x, x, attn_mask=causal_upper_left(2, 2), is_causal=True)
    with pytest.warns(UserWarning, match=r"more queries \(3\) than keys \(2\)"):
        causal_lower_right(3, 2)


def test_numbers_are_pytorchs():
    torch = pytest.importorskip("torch")
    bias = pytest.importorskip("torch.nn.attention.bias")
    q, k = np.random.default_rng(1).standard_normal((2, 1, 1, 4, 8)).astype(np.float32)
    q = q[:, :, :3]
    for name in ("causal_upper_left", "causal_lower_right"):
        t, u = torch.tensor(q), torch.tensor(k)
        theirs = torch.nn.functional.scaled_dot_product_attention(
            t, u, u, attn_mask=getattr(bias, name)(3, 4)
        )
        mine = attend(*map(taeda.tensor, (q, k, k)), attn_mask=globals()[name](3, 4))
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-6, atol=2e-7)
