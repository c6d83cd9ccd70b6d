"""Programs as graphs: tracing with proxies, editing the graph, running it or its Python code.

>>> def half_of_relu(x):
...     return torch.relu(x) / 2
>>> traced = torch.fx.symbolic_trace(half_of_relu)
>>> [node.name for node in traced.graph.nodes]
['x', 'relu', 'truediv', 'output']
>>> traced(torch.tensor([-2.0, 4.0]))
tensor([0., 2.])
"""

from taeda import _missing
from taeda.fx import immutable_collections  # noqa: F401
from taeda.fx._symbolic_trace import (
    PH,
    ProxyableClassMeta,
    Tracer,
    symbolic_trace,
    wrap,
)
from taeda.fx.graph import CodeGen, Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter, Transformer
from taeda.fx.node import Node, has_side_effect, map_arg
from taeda.fx.proxy import Proxy
from taeda.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

__getattr__, __dir__ = _missing.attributes(__name__)
