"""Passes that make a module cheaper to run."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from taeda import _missing, nn
from taeda.fx import Graph, GraphModule, Node, Transformer, symbolic_trace
from taeda.nn import Module
from taeda.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "remove_dropout",
    "replace_node_module",
]


def _parent_name(target: str) -> tuple[str, str]:
    """("a.b", "c") of "a.b.c"."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Whether a node calls a module of the second class on what one of the first class gives."""
    if not node.args:
        return False
    return all(
        isinstance(one, Node)
        and one.op == "call_module"
        and type(modules.get(str(one.target))) is kind
        for kind, one in zip(pattern, (node.args[0], node))
    )


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Puts a module in the place of the one that a node calls."""
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The module, in eval mode, with each batch norm multiplied into the layer before it.

    Args:
        model: of which convolutions and linear layers are followed by batch norms.
        inplace: whether the module itself is changed; else a copy.
        no_trace: whether a GraphModule is taken as it is.

    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    >>> from torch.fx.experimental.optimization import fuse
    >>> [node.name for node in fuse(model).graph.nodes]
    ['input_1', '_0', '_2', 'output']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    patterns = (
        (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
        (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
        (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
        (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
    )
    for layer, norm, fused in patterns:
        for node in list(graph.nodes):
            if not matches_module_pattern((layer, norm), node, modules):
                continue
            first: Any = node.args[0]
            bn: Any = modules[str(node.target)]
            if len(first.users) > 1 or not bn.track_running_stats:
                continue
            replace_node_module(first, modules, fused(modules[first.target], bn))
            node.replace_all_uses_with(first)
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _DropoutRemover(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> Module:
    """The module without its Dropout layers."""
    return _DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module that computes `outputs` from `inputs` by the nodes between them."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda one: copies[one])
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


__getattr__, __dir__ = _missing.attributes(__name__)
