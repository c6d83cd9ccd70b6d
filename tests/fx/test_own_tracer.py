"""A tracer of one's own, from the parts of torch.fx._symbolic_trace, like torch_geometric's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import taeda


def graph_of(framework: Any) -> Any:
    st = importlib.import_module(f"{framework.__name__}.fx._symbolic_trace")

    class Tracer(framework.fx.Tracer):
        def trace(self, root: Any, concrete_args: Any = None) -> Any:
            self.root = root
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.graph = framework.fx.Graph(tracer_cls=type(self))
            self.tensor_attrs = {root.scale: "scale"}
            assert not isinstance(root, st.ScriptObject)
            call = st._orig_module_call

            def module_call(module: Any, *args: Any, **kwargs: Any) -> Any:
                def forward(*args: Any, **kwargs: Any) -> Any:
                    return call(module, *args, **kwargs)

                return self.call_module(module, forward, args, kwargs)

            called, args = self.create_args_for_root(type(root).forward, True, None)
            with st._Patcher() as patcher:
                patcher.patch_method(
                    framework.nn.Module, "__call__", module_call, deduplicate=False
                )
                st._patch_wrapped_functions(patcher)
                self.create_node("output", "output", (self.create_arg(called(*args)),), {})
            return self.graph

    class Model(framework.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = framework.nn.Linear(2, 2)
            self.scale = framework.tensor([2.0, 3.0])

        def forward(self, x: Any) -> Any:
            return self.linear(x) * self.scale

    model = Model()
    graph = Tracer().trace(model)
    assert framework.nn.Module.__call__ is st._orig_module_call
    x = framework.ones(1, 2)
    assert framework.equal(framework.fx.GraphModule(model, graph)(x), model(x))
    return [(node.op, str(node.target)) for node in graph.nodes if node.op != "call_function"]


def test_a_tracer_of_ones_own_records_what_pytorchs_parts_record() -> None:
    expected = [
        ("placeholder", "x"),
        ("call_module", "linear"),
        ("get_attr", "scale"),
        ("output",) * 2,
    ]
    assert graph_of(taeda) == expected
    assert graph_of(pytest.importorskip("torch")) == expected
