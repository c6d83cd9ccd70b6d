"""Functions of a score and its indices, as flex_attention takes them, applied to whole tensors.

A *mask_mod* says for a batch, a head, a query's and a key's index whether the one attends to the
other; a *score_mod* takes the score before these and gives another. Both are written for scalars
and mapped over four dimensions with vmap.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any

import taeda as torch
from taeda import Tensor
from taeda.overrides import TorchFunctionMode

Mod = Callable[..., Tensor]


class TransformGetItemToIndex(TorchFunctionMode):
    """Within it ``table[i, j]`` looks up scalar tensors as tensors: also those that vmap batches.

    Outside, a scalar index is read as a number, which a batched one has none of.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is Tensor.__getitem__ or getattr(func, "__name__", "") == "__getitem__":
            table, index = args
            indices = index if isinstance(index, tuple) else (index,)
            if indices and all(_is_scalar_index(each) for each in indices):
                return table[tuple(each.unsqueeze(0) for each in indices)].squeeze(0)
        return func(*args, **(kwargs or {}))


def _is_scalar_index(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dim() == 0 and index.dtype != torch.bool


class ModificationType(enum.Enum):
    """Whether a function changes scores or masks them."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def modification_type(mod: Mod) -> ModificationType:
    """By the number of arguments without a default: five of a score_mod, four of a mask_mod."""
    code = getattr(mod, "__code__", None)
    if code is not None:
        count = code.co_argcount - len(getattr(mod, "__defaults__", None) or ())
    else:
        parameters = inspect.signature(mod).parameters.values()
        count = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return ModificationType.SCORE_MOD if count == 5 else ModificationType.MASK_MOD


def map_over_indices(
    mod: Mod,
    prefix: tuple[int | None, ...],
    suffix: tuple[int | None, ...] = (),
    out_dims: Any = 0,
    group_dim: bool = False,
) -> Mod:
    """`mod` of whole ranges of batch, head, query and key, as PyTorch's _vmap_for_bhqkv.

    The dimensions of arguments before the four indices are `prefix`, of those after, `suffix`.
    """
    order = (3, 2, 1, 1, 0) if group_dim else (3, 2, 1, 0)
    for mapped in order:
        dims = tuple(0 if index == mapped else None for index in range(4))
        mod = torch.vmap(mod, in_dims=prefix + dims + suffix, out_dims=out_dims)
    return mod


def _ranges(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    return [torch.arange(size, device=device) for size in shape]


def apply_mask_mod(mask_mod: Mod, shape: tuple[int, ...], device: Any) -> Tensor:
    """The mask of all indices of a shape (batch, heads, queries, keys)."""
    with TransformGetItemToIndex():
        return map_over_indices(mask_mod, prefix=())(*_ranges(shape, device))


def apply_score_mod(score_mod: Mod, scores: Tensor) -> Tensor:
    """The scores (batch, heads, queries, keys) as `score_mod` makes them."""
    ranges = _ranges(tuple(scores.shape), scores.device)
    with TransformGetItemToIndex():
        return map_over_indices(score_mod, prefix=(0,))(scores, *ranges)
