"""Indexing with scalar tensors within vmap, where libraries import it from."""

from taeda.nn.attention._modifications import TransformGetItemToIndex

__all__ = ["TransformGetItemToIndex"]
