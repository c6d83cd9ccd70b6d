"""The jagged layout under the name that it has in files."""

from typing import Any

from taeda.nested._tensor import NestedTensor

__all__ = ["NestedTensor"]


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """A tensor of the jagged layout from its parts by name."""
    return NestedTensor(**constructor_kwargs)
