"""Attention over packed sequences, as PyTorch's table calls it, is that of each sequence."""

from __future__ import annotations

import pytest

import taeda

aten = taeda.ops.aten
attention = taeda.nn.functional.scaled_dot_product_attention


def each(q, k, v, **kwargs):
    """The attention of a batch whose heads are the third dimension."""
    return attention(*(x.transpose(1, 2) for x in (q, k, v)), **kwargs).transpose(1, 2)


def tensors(*lengths):
    return [taeda.randn(2, n, 3, 8) for n in lengths]


@pytest.mark.parametrize("causal", [False, True])
def test_batches(causal):
    q, k, v = tensors(5, 5, 5)
    found = aten._efficient_attention_forward(
        q, k, v, None, None, None, None, None, 0.0, int(causal), True
    )
    taeda.testing.assert_close(found[0], each(q, k, v, is_causal=causal), rtol=1e-5, atol=1e-5)
    assert found[1].shape == (2, 3, 5) and found[4:] == (5, 5)
    flash = aten._flash_attention_forward(q, k, v, None, None, 5, 5, 0.0, causal, False)
    taeda.testing.assert_close(flash[0], found[0])


def test_a_bias_is_added():
    q, k, v = tensors(4, 6, 6)
    bias = taeda.randn(2, 3, 4, 6)
    found = aten._efficient_attention_forward(
        q, k, v, bias, None, None, None, None, 0.0, 0, scale=0.5
    )
    expected = each(q, k, v, attn_mask=bias, scale=0.5)
    taeda.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-5)


def test_sequences_that_lie_behind_each_other():
    x = taeda.randn(9, 3, 8)
    ends = taeda.tensor([0, 4, 9], dtype=taeda.int32)
    found = aten._flash_attention_forward(x, x, x, ends, ends, 5, 5, 0.0, True, False)
    parts = [x[a:b].unsqueeze(0) for a, b in ((0, 4), (4, 9))]
    expected = taeda.cat([each(p, p, p, is_causal=True).squeeze(0) for p in parts])
    taeda.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-5)
    assert found[1].shape == (3, 9)
    with pytest.raises(NotImplementedError, match="alibi_slopes"):
        aten._flash_attention_forward(
            x, x, x, ends, ends, 5, 5, 0.0, True, False, alibi_slopes=taeda.ones(3)
        )


def test_semi_structured_matrices_are_refused_in_pytorchs_words():
    with pytest.raises(RuntimeError, match="Only CUDA tensors are currently supported"):
        taeda.sparse.to_sparse_semi_structured(taeda.ones(32, 32))
    kind = taeda.sparse.SparseSemiStructuredTensorCUTLASS
    assert issubclass(kind, taeda.sparse.SparseSemiStructuredTensor)
    assert kind._DTYPE_SHAPE_CONSTRAINTS[taeda.float16].sparse_min_cols == 64
