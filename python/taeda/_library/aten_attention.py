"""PyTorch's operators of attention over packed or padded sequences, as compositions.

Queries, keys and values are (batch, length, heads, size), or with the sequences' ends (total
length, heads, size).
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .spelling import define, functional


def _attend(
    q: Tensor, k: Tensor, v: Tensor, bias: Any, scale: float | None, causal: str, p: float
) -> tuple[Tensor, Tensor]:
    """The outputs of batches, and the logarithms of the sums of the weights by head."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.mT).float() * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if causal:
        rows, columns = scores.shape[-2:]
        first = columns - rows if causal == "bottom_right" else 0
        kept = taeda.ones(rows, columns, dtype=taeda.bool, device=q.device).tril(first)
        scores = scores.masked_fill(~kept, -taeda.inf)
    weights = taeda.ops.aten._safe_softmax(scores, -1)
    weights = functional("dropout")(weights, p) if p else weights
    return (weights.to(v.dtype) @ v).transpose(1, 2), scores.logsumexp(-1)


def _attend_packed(
    q: Tensor, k: Tensor, v: Tensor, ends_q: Tensor, ends_k: Tensor, *rest: Any
) -> tuple[Tensor, Tensor]:
    """The same of sequences that lie one behind the other."""
    outputs, sums = [], []
    q, k, v = (x.squeeze(0) if x.dim() == 4 else x for x in (q, k, v))
    starts = zip(ends_q.tolist(), ends_q[1:].tolist(), ends_k.tolist(), ends_k[1:].tolist())
    for q0, q1, k0, k1 in starts:
        one = (q[q0:q1].unsqueeze(0), k[k0:k1].unsqueeze(0), v[k0:k1].unsqueeze(0))
        output, total = _attend(*one, None, *rest)
        outputs.append(output.squeeze(0))
        sums.append(total.squeeze(0))
    return taeda.cat(outputs), taeda.cat(sums, -1)


def _random_state(x: Tensor) -> tuple[Tensor, Tensor]:
    """The seed and the offset of dropout, which nobody needs again."""
    return x.new_zeros((), dtype=taeda.int64), x.new_zeros((), dtype=taeda.int64)


@define(
    "_efficient_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? "
    "cu_seqlens_q, Tensor? cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, float "
    "dropout_p, int custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None, "
    "Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, Tensor logsumexp, Tensor "
    "philox_seed, Tensor philox_offset, SymInt max_seqlen_batch_q, SymInt max_seqlen_batch_k)"
)
def _efficient_attention_forward(
    q: Tensor, k: Tensor, v: Tensor, bias: Any, ends_q: Any, ends_k: Any, max_q: Any, max_k: Any,
    p: float, mask: int, with_sums: bool = False, *, scale: float | None = None,
    seqlen_k: Any = None, window_size: int | None = None,
) -> tuple:  # fmt: skip
    """The kind of mask is 0: none, 1: causal, 2: causal, aligned at the last key."""
    if seqlen_k is not None or window_size is not None:
        raise NotImplementedError(
            "aten::_efficient_attention_forward: neither seqlen_k nor window_size; use a bias"
        )
    causal = ("", "top_left", "bottom_right")[mask]
    if ends_q is None:
        output, sums = _attend(q, k, v, bias, scale, causal, p)
        max_q, max_k = q.shape[1], k.shape[1]
    else:
        output, sums = _attend_packed(q, k, v, ends_q, ends_k, scale, causal, p)
        output = output.unsqueeze(0) if q.dim() == 4 else output
    sums = sums if with_sums else sums.new_zeros((*sums.shape[:-1], 0))
    return output, sums, *_random_state(q), max_q, max_k


_WINDOW = (
    "float? scale=None, SymInt? window_size_left=None, SymInt? window_size_right=None, "
    "Tensor? seqused_k=None, Tensor? alibi_slopes=None, Tensor? block_table=None, "
    "int? num_splits=None"
)


@define(
    "_flash_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? "
    "cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, bool "
    f"return_debug_mask, *, {_WINDOW}) -> (Tensor output, Tensor softmax_logsumexp, Tensor "
    "rng_state, Tensor unused, Tensor debug_attn_mask)"
)
def _flash_attention_forward(
    q: Tensor, k: Tensor, v: Tensor, ends_q: Any, ends_k: Any, max_q: int, max_k: int, p: float,
    is_causal: bool, return_debug_mask: bool, *, scale: float | None = None, **rest: Any,
) -> tuple:  # fmt: skip
    """Causal masks are aligned at the last key."""
    given = [name for name, value in rest.items() if value is not None]
    if given:
        raise NotImplementedError(f"aten::_flash_attention_forward: no {given[0]}")
    causal = "bottom_right" if is_causal else ""
    if ends_q is None:
        output, sums = _attend(q, k, v, None, scale, causal, p)
    else:
        output, sums = _attend_packed(q, k, v, ends_q, ends_k, scale, causal, p)
    return output, sums, *_random_state(q), q.new_zeros((0,))
