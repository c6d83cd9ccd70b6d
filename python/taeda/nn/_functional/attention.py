"""Multi-head attention as a function. https://arxiv.org/abs/1706.03762"""

from __future__ import annotations

import math
import warnings

import taeda
from taeda import Tensor

from .dropout import dropout
from .raw import raw

__all__ = ["multi_head_attention_forward"]

_KEYS = "each key has one value: give two tensors of one length and batch, or the same one twice"
_linear = raw("linear")
_scaled_dot_product_attention = raw("scaled_dot_product_attention")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: taeda.dtype | None,
    other_name: str,
    target_type: taeda.dtype | None,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add: -inf where a boolean mask is true."""
    if mask is None:
        return None
    if mask.dtype != taeda.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} "
            "is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.dtype == taeda.bool:
        zeros = taeda.zeros(mask.shape, dtype=target_type, device=mask.device)
        return zeros.masked_fill_(mask, float("-inf"))
    return mask


def _none_or_dtype(tensor: Tensor | None) -> taeda.dtype | None:
    return None if tensor is None else tensor.dtype


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the input has a batch dimension; AssertionError if the shapes do not fit together."""
    batched = query.dim() == 3
    if query.dim() not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.dim()}-D query tensor"
        )
    kind, ndim = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != ndim or value.dim() != ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
                )
    return batched


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of one; what is the same object stays so, which projects once."""
    q = query.unsqueeze(1)
    k = q if key is query else key.unsqueeze(1)
    return q, k, k if value is key else value.unsqueeze(1)


def _head_dim(embed_dim: int, expected: int, num_heads: int) -> int:
    if embed_dim != expected:
        raise AssertionError(
            f"was expecting embedding dimension of {expected}, but got {embed_dim}"
        )
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    return embed_dim // num_heads


def _misfit(message: str, fix: str) -> AssertionError:
    """An error with what to do, which comes behind the path of the layer."""
    error = AssertionError(message)
    error._taeda_fix = f"Fix: {fix}"  # type: ignore[attr-defined]
    error.add_note(f"Fix: {fix}")
    return error


def _project(
    q: Tensor, k: Tensor, v: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The projections of query, key and value by one packed weight (3e, e)."""
    if k.shape != v.shape:
        raise _misfit(f"key shape {k.shape} does not match value shape {v.shape}", _KEYS)
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if k is v and q is k:
        return tuple(_linear(q, weight, bias).chunk(3, -1))
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _project_apart(
    q: Tensor, k: Tensor, v: Tensor, weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The projections by a weight each and one packed bias (3e)."""
    if k.shape[:2] != v.shape[:2]:
        raise _misfit(
            f"key's sequence and batch dims {k.shape[:2]} do not match value's {v.shape[:2]}", _KEYS
        )
    for name, weight in zip("qkv", weights):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    w_q, w_k, w_v = weights
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _by_sample(mask: Tensor | None, heads: int, length: int, source: int) -> Tensor | None:
    """A mask (1 or heads, length, source); RuntimeError for other shapes."""
    if mask is None:
        return None
    expected = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _without_padding(
    mask: Tensor | None, padding: Tensor | None, batch: int, num_heads: int, source: int
) -> Tensor | None:
    """The mask with what masks keys of each sample (batch, source)."""
    if padding is None:
        return mask
    if tuple(padding.shape) != (batch, source):
        transposed = "; yours is transposed, mask.T" if padding.shape == (source, batch) else ""
        raise _misfit(
            f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}",
            f"a padding mask is (batch, source length), with batch_first=False too{transposed}",
        )
    padding = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, source)
    return padding if mask is None else mask + padding


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    """The result (length, heads, head_dim) and the weights (heads, length, source)."""
    scores = (q * math.sqrt(1.0 / q.size(-1))) @ k.transpose(-2, -1)
    weights = (scores if mask is None else mask + scores).softmax(-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return (weights @ v).transpose(0, 1), weights


def _attend_fused(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, num_heads: int
) -> Tensor:
    """The result (length, batch, num_heads, head_dim), by the operator that keeps no weights."""
    by_head = q.size(0) // num_heads, num_heads
    if mask is not None:
        one_for_all = mask.size(0) == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if one_for_all else mask.view(*by_head, *mask.shape[1:])
    q, k, v = (x.reshape(*by_head, *x.shape[1:]) for x in (q, k, v))
    return _scaled_dot_product_attention(q, k, v, mask, dropout_p, False).permute(2, 0, 1, 3)


def _pad_keys(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which takes part."""
    if mask is None:
        return None
    return taeda.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], dim=-1)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The computation of ``nn.MultiheadAttention``.

    Query ``(l, n, e)``, key and value ``(s, n, .)``, or without the batch dimension. Returns the
    output ``(l, n, e)`` and the weights ``(n, l, s)`` (per head unless averaged), or None.

    >>> x, layer = torch.rand(5, 2, 4), torch.nn.MultiheadAttention(4, 2)
    >>> weights = layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0
    >>> out = layer.out_proj.weight, layer.out_proj.bias
    >>> attend = torch.nn.functional.multi_head_attention_forward
    >>> y, attention = attend(x, x, x, 4, 2, *weights, *out)
    >>> y.shape, attention.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 5, 5]))
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    head_dim = _head_dim(embed_dim, embed_dim_to_check, num_heads)
    if use_separate_proj_weight:
        apart = q_proj_weight, k_proj_weight, v_proj_weight
        q, k, v = _project_apart(query, key, value, apart, in_proj_bias)
    else:
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    heads = batch * num_heads
    attn_mask = _by_sample(attn_mask, heads, length, key.shape[0])
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = taeda.cat([k, bias_k.repeat(1, batch, 1)])
        v = taeda.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _pad_keys(attn_mask), _pad_keys(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")
    q = q.reshape(length, heads, head_dim).transpose(0, 1)
    k = _static(static_k, heads, head_dim, "static_k", k)
    v = _static(static_v, heads, head_dim, "static_v", v)
    if add_zero_attn:
        k = taeda.cat([k, k.new_zeros((heads, 1, head_dim))], dim=1)
        v = taeda.cat([v, v.new_zeros((heads, 1, head_dim))], dim=1)
        attn_mask, key_padding_mask = _pad_keys(attn_mask), _pad_keys(key_padding_mask)
    source = k.size(1)
    mask = _without_padding(attn_mask, key_padding_mask, batch, num_heads, source)
    dropout_p = dropout_p if training else 0.0
    weights: Tensor | None = None
    if need_weights:
        output, weights = _attend(q, k, v, mask, dropout_p)
        weights = weights.view(batch, num_heads, length, source)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        output = _attend_fused(q, k, v, mask, dropout_p, num_heads)
    output = output.contiguous().view(length * batch, embed_dim)
    output = _linear(output, out_proj_weight, out_proj_bias)
    output = output.view(length, batch, output.size(1))
    if batched:
        return output, weights
    return output.squeeze(1), None if weights is None else weights.squeeze(0)


def _static(given: Tensor | None, heads: int, head_dim: int, name: str, x: Tensor) -> Tensor:
    """Keys or values by head: those given ready-made, or the projected ones."""
    if given is None:
        return x.reshape(x.shape[0], heads, head_dim).transpose(0, 1)
    if given.size(0) != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {given.size(0)}")
    if given.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {given.size(2)}")
    return given
