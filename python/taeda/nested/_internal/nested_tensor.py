"""The jagged layout under the name that it has in files."""

from typing import Any

from taeda import Tensor
from taeda.nested import nested_tensor_from_jagged
from taeda.nested._tensor import NestedTensor

__all__ = ["NestedTensor"]


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """A tensor of the jagged layout from its parts by name."""
    return NestedTensor(**constructor_kwargs)


def nested_view_from_values_offsets(
    values: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A view of `values` as tensors that begin at `offsets` along dimension ``ragged_idx - 1``."""
    return nested_tensor_from_jagged(
        values, offsets, jagged_dim=ragged_idx, min_seqlen=min_seqlen, max_seqlen=max_seqlen
    )
