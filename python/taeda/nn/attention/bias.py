"""Causal masks for queries and keys of different lengths.

>>> from torch.nn.attention.bias import causal_lower_right
>>> causal_lower_right(2, 3)
tensor([[ True,  True, False],
        [ True,  True,  True]])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner of the mask the diagonal ends in."""

    UPPER_LEFT = 1  # query i sees keys 0 to i
    LOWER_RIGHT = 2  # the last query sees all keys: for queries that continue a sequence


class CausalBias(Tensor):
    """A boolean mask (queries, keys), True where attention looks, that follows its queries' device.

    It is given to ``scaled_dot_product_attention`` as ``attn_mask``; other functions see a mask.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: variant must be a CausalVariant, not {variant!r}")
        lower_right = variant is CausalVariant.LOWER_RIGHT
        if lower_right and seq_len_q > seq_len_kv:
            warnings.warn(
                "CausalBias: the first queries see no keys, which gives NaN, where there are more "
                f"queries ({seq_len_q}) than keys ({seq_len_kv})",
                stacklevel=3,
            )
        diagonal = seq_len_kv - seq_len_q if lower_right else 0
        mask = taeda.ones(seq_len_q, seq_len_kv, dtype=taeda.bool).tril(diagonal)
        found = Tensor._make_subclass(cls, mask)
        found.variant, found.seq_len_q, found.seq_len_kv = variant, seq_len_q, seq_len_kv
        return found

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return self.as_subclass(Tensor).to("cpu" if device is None else device)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return repr(self._materialize(self.device))

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not taeda.nn.functional.scaled_dot_product_attention:
            with taeda._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        return _attend(*args, **kwargs)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: Any,
) -> Tensor:
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    if isinstance(attn_mask, CausalBias):
        attn_mask = attn_mask._materialize(query.device)
    return taeda.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, **options
    )


def _made(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of a size (queries, keys) in which query i sees keys 0 to i."""
    return _made("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of a size (queries, keys) in which the last query sees all keys."""
    return _made("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
