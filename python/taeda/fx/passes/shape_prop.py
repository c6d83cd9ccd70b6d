"""ShapeProp: runs a graph and notes the metadata of all tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor but its values."""

    shape: taeda.Size
    dtype: taeda.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: taeda.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: taeda.Tensor, include_contiguity: bool = True) -> Any:
    """The metadata of a tensor."""
    memory_format = None
    if include_contiguity:
        formats = [taeda.contiguous_format]
        formats += {4: [taeda.channels_last], 5: [taeda.channels_last_3d]}.get(result.dim(), [])
        fitting = (f for f in formats if result.is_contiguous(memory_format=f))
        memory_format = next(fitting, None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph; ``meta['tensor_meta']`` of each node tells the shape of its tensors, and
    ``meta['type']`` the type of its value.

    >>> traced = torch.fx.symbolic_trace(lambda x: x.sum(0))
    >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2, 3))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    [torch.Size([2, 3]), torch.Size([3]), torch.Size([3])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, taeda.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with these arguments and returns the result."""
        return super().run(*args)
