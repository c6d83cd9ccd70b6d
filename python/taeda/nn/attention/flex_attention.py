"""Attention whose scores and mask are functions of the caller's, with gradients.

>>> import taeda as torch
>>> from taeda.nn.attention.flex_attention import create_block_mask, flex_attention
>>> query = key = value = torch.ones(1, 1, 4, 2)
>>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 4, 4)
>>> flex_attention(query, key, value, lambda s, b, h, q, kv: s - (q - kv), causal).shape
torch.Size([1, 1, 4, 2])

It computes the whole matrix of scores: there is no kernel that leaves out masked blocks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import taeda as torch
from taeda import Tensor
from taeda.nn.attention._block_mask import (
    DEFAULT_BLOCK_SIZE,
    BlockMask,
    create_block_mask,
    create_mask,
    dense_to_ordered,
    noop_mask,
    ordered_to_dense,
    sliced_mask_mod,
)
from taeda.nn.attention._modifications import (
    Mod,
    ModificationType,
    apply_score_mod,
    map_over_indices,
    modification_type,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

# The names by which libraries import these.
_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE
_dense_to_ordered, _ordered_to_dense = dense_to_ordered, ordered_to_dense
_ModificationType, _get_mod_type = ModificationType, modification_type
_vmap_for_bhqkv = map_over_indices

_LARGE_SPARSE_BLOCK_SIZE = 1 << 30
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
BlockMask.__module__ = __name__


class AuxRequest(NamedTuple):
    """What flex_attention returns besides its output: logsumexp and maximum of the scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What an AuxRequest asked for, (batch, heads, queries) each; None for the rest."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels; none of them changes what is computed here."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BACKEND: str


def _identity(
    score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    """The score_mod that changes nothing."""
    return score


def _combined(mask_mods: tuple[Mod, ...], start: bool) -> Mod:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def combined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=torch.bool)
        for mod in mask_mods:
            mask = mod(b, h, q_idx, kv_idx)
            result = result & mask if start else result | mask
        return result

    return combined


def or_masks(*mask_mods: Mod) -> Mod:
    """The mask_mod that allows what any of `mask_mods` allows."""
    return _combined(mask_mods, False)


def and_masks(*mask_mods: Mod) -> Mod:
    """The mask_mod that allows what all of `mask_mods` allow."""
    return _combined(mask_mods, True)


def _check_tensors(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got "
            f"query.device: {query.device}, key.device: {key.device}, "
            f"and value.device: {value.device} instead."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, kv_heads = query.size(1), key.size(1)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if heads % kv_heads:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={kv_heads}."
        )


def _check_block_mask(query: Tensor, key: Tensor, mask: BlockMask | None) -> None:
    if query.size(0) != key.size(0) and (
        mask is None or mask.kv_num_blocks.size(0) != query.size(0)
    ):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to "
            f"have the same batch size, but got Bq={query.size(0)} and Bkv={key.size(0)}."
        )
    if mask is None:
        return
    if mask.mask_mod is sliced_mask_mod:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if mask.BLOCK_SIZE == (_LARGE_SPARSE_BLOCK_SIZE, _LARGE_SPARSE_BLOCK_SIZE):
        return
    lengths = (query.size(-2), key.size(-2))
    if lengths != mask.shape[-2:]:
        smaller = any(a > b for a, b in zip(lengths, mask.shape[-2:], strict=True))
        advice = (
            "create a new block mask"
            if smaller
            else "create a new one, or crop it to its upper left corner with "
            "block_mask._adjust(q_len, kv_len), which does not suit all mask_mods"
        )
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got "
            f"q_len={lengths[0]} and kv_len={lengths[1]}: {advice}."
        )
    if query.device != mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {mask.kv_num_blocks.device}."
        )


def _scores(
    query: Tensor, key: Tensor, score_mod: Mod | None, mask: BlockMask | None, scale: float
) -> Tensor:
    """Scaled, changed and masked: -inf where a query does not attend to a key."""
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = (query @ key.transpose(-2, -1)).to(dtype) * scale
    masked = None if mask is None else ~mask.allowed(tuple(scores.shape), scores.device)
    if score_mod is not None:
        scores = apply_score_mod(score_mod, scores)
    return scores if masked is None else scores.masked_fill(masked, -math.inf)


def _outputs(scores: Tensor, value: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """The weighted sum of the values, zero where no key is attended to, and such rows."""
    nothing = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), -1).masked_fill(nothing, 0.0)
    return weights.to(dtype) @ value, nothing.squeeze(-1)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention of queries (B, Hq, L, E) to keys (B, Hkv, S, E) and values (B, Hkv, S, Ev).

    ``score_mod(score, b, h, q_idx, kv_idx)`` changes the scaled scores, `block_mask` says which
    count. Gives the output (B, Hq, L, Ev), and with `return_aux` an AuxOutput besides.

    ValueError for shapes and lengths that do not fit.
    """
    _check_tensors(query, key, value, enable_gqa)
    _check_block_mask(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux.")
    if return_lse:
        warnings.warn(
            "return_lse is deprecated; use return_aux=AuxRequest(lse=True)",
            FutureWarning,
            stacklevel=2,
        )
    group = query.size(1) // key.size(1)
    key, value = (
        (each.repeat_interleave(group, 1) if group > 1 else each).expand(query.size(0), -1, -1, -1)
        for each in (key, value)
    )
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1))
    scores = _scores(query, key, score_mod, block_mask, scale)
    output, nothing = _outputs(scores, value, query.dtype)
    if return_lse or (return_aux is not None and return_aux.lse):
        lse = scores.masked_fill(nothing.unsqueeze(-1), 0.0).logsumexp(-1)
        lse = lse.masked_fill(nothing, -math.inf)
        if return_lse:
            return output, lse
    if return_aux is None:
        return output
    return output, AuxOutput(
        lse if return_aux.lse else None,
        scores.amax(-1) if return_aux.max_scores else None,
    )
