"""Tracing: graphs, their code, and what the graphs compute, beside PyTorch."""

import copy
import importlib
import math
import pickle
from typing import Any

import pytest

import taeda
import taeda.nn.functional as F
from taeda import fx, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.seq = nn.Sequential(nn.ReLU(), nn.BatchNorm2d(4))
        self.weight = nn.Parameter(taeda.ones(4))
        self.register_buffer("offset", taeda.ones(4))

    def forward(self, x: taeda.Tensor, *, scale: float = 2.0) -> Any:
        y = self.seq(self.conv(x))
        n, c = y.shape[0], y.size(1)
        y = taeda.cat([y, y * scale], dim=1).flatten(2)
        y = y.view(n, 2, c, -1).mean(-1) + self.weight + self.offset
        first, second = y.unbind(1)
        first = first + taeda.tensor([1.0, 2.0, 3.0, 4.0])
        return {"a": F.relu(first), "b": (second[..., 1:], second.T, -second, 2 - second)}


@pytest.fixture
def model() -> Model:
    taeda.manual_seed(0)
    return Model().eval()


def leaves(value: Any) -> list:
    return taeda.utils._pytree.tree_leaves(value)


def assert_same(first: Any, second: Any) -> None:
    assert len(leaves(first)) == len(leaves(second))
    assert all(taeda.equal(a, b) for a, b in zip(leaves(first), leaves(second)))


def test_a_traced_module_computes_what_the_module_does(model: Model) -> None:
    traced, x = fx.symbolic_trace(model), taeda.randn(2, 3, 8, 8)
    traced.graph.lint()
    assert_same(traced(x), model(x))
    assert_same(traced(x, scale=3.0), model(x, scale=3.0))
    assert_same(fx.Interpreter(traced).run(x), model(x))
    assert_same(fx.Transformer(traced).transform()(x), model(x))
    assert_same(copy.deepcopy(traced)(x), model(x))
    assert_same(pickle.loads(pickle.dumps(traced))(x), model(x))


def test_gradients_reach_the_parameters_of_the_module(model: Model) -> None:
    fx.symbolic_trace(model)(taeda.randn(2, 3, 8, 8))["a"].sum().backward()
    assert model.weight.grad is not None
    assert model.conv.weight.grad is not None


PROGRAMS = [
    "lambda torch, x, y: torch.relu(x) + y ** 2",
    "lambda torch, x, y: torch.cat([x, y], dim=-1)[..., 1:].sum(0)",
    "lambda torch, x, y: x.view(x.shape[0], -1).expand(y.size(0), -1)",
    "lambda torch, x, y: torch.stack([x, y]).chunk(2)[0]",
    "lambda torch, x, y: torch.zeros((x.size(0), 2)) @ y",
    "lambda torch, x, y: torch.ones(3)[x] * abs(-y) // 2",
    "lambda torch, x, y: {'a': [x, (y, 1)], 'b': x[:, None, y]}",
    "lambda torch, x, y: torch.full((x, 2), y).to(torch.float64)",
    "lambda torch, x, y: torch.ones(2, device=x.device, dtype=y.dtype, layout=x.layout)",
    "lambda torch, x, y: torch.arange(x.shape[0], device=y.device)",
    "lambda torch, x, y: torch.rand(2, generator=x).sum(dtype=y.dtype)",
    "lambda torch, x, y: torch.ones(2).to(device=x.device)",
    "lambda torch, x, y: torch.tensor([1, 2], dtype=x.dtype)",
    "lambda torch, x, y: x.relu_().add(y, alpha=2).T.foo[0](1)",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_code_is_that_of_pytorch(program: str) -> None:
    torch = pytest.importorskip("torch")
    texts = []
    for framework in (torch, taeda):
        tracer = importlib.import_module(f"{framework.__name__}.fx")
        function = eval(program)

        traced = tracer.Tracer().trace(_of_two(function, framework))
        texts.append(traced.python_code("self").src)
    assert texts[0] == texts[1]


def _of_two(function: Any, framework: Any) -> Any:
    def forward(x, y):
        return function(framework, x, y)

    return forward


def test_math_and_wrapped_functions_stay_calls() -> None:
    traced = fx.symbolic_trace(lambda x: math.sqrt(x.shape[0]) + wrapped(x))
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert math.sqrt in targets
    assert wrapped in targets
    assert float(traced(taeda.ones(4))) == 6


@fx.wrap
def wrapped(x: taeda.Tensor) -> int:
    return len(x)


@pytest.mark.parametrize(
    ("program", "kind", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "inputs to control flow"),
        (lambda x: [item for item in x], fx.proxy.TraceError, "cannot be iterated"),
        (lambda x: len(x), RuntimeError, "'len' is not supported"),
        (lambda x: {x: 1}[x] and x + object(), NotImplementedError, "argument of type"),
    ],
)
def test_what_a_trace_cannot_record_raises(program: Any, kind: type, text: str) -> None:
    with pytest.raises(kind, match=text):
        fx.symbolic_trace(program)
    assert not fx._symbolic_trace.is_fx_tracing()
    assert nn.Module.__call__ is fx._symbolic_trace._orig_module_call


def test_concrete_arguments_decide_control_flow_and_containers() -> None:
    def program(inputs, double):
        total = sum(inputs.values())
        return total * 2 if double else total

    values = {"inputs": {"a": fx.PH, "b": fx.PH}, "double": True}
    traced = fx.symbolic_trace(program, values)
    assert float(traced({"a": taeda.tensor(1.0), "b": taeda.tensor(2.0)}, True)) == 6
    with pytest.raises(AssertionError, match="double has been specialized"):
        traced({"a": taeda.tensor(1.0), "b": taeda.tensor(2.0)}, False)


def test_leaf_modules_and_scopes(model: Model) -> None:
    class Whole(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return module_qualified_name == "seq" or super().is_leaf_module(
                m, module_qualified_name
            )

    tracer = Whole()
    graph = tracer.trace(model)
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["conv", "seq"]
    assert tracer.node_name_to_scope["seq"][1] is nn.Sequential


def test_shape_prop_notes_metadata(model: Model) -> None:
    from taeda.fx.passes.shape_prop import ShapeProp

    traced = fx.symbolic_trace(model)
    ShapeProp(traced).propagate(taeda.randn(2, 3, 8, 8))
    conv = next(node for node in traced.graph.nodes if node.target == "conv")
    assert conv.meta["tensor_meta"].shape == (2, 4, 6, 6)
    assert conv.meta["tensor_meta"].dtype == taeda.float32


def test_proxies_take_the_place_of_numbers_and_tensors() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    for value in (
        taeda.ones(2).view(1, x),
        taeda.zeros((x, 2)),
        taeda.randn(x),
        taeda.ones(2)[x],
        taeda.ones(2)[..., x],
        taeda.ops.aten.relu.default(x),
        taeda.ops.aten.cat.default([x, x]),
        taeda.dropout(taeda.ones(2), x, False),
    ):
        assert isinstance(value, fx.Proxy)


def test_shapes_of_parameters_are_known_where_the_tracer_says_so() -> None:
    class Plain(fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None):
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(taeda.ones(3))

        def forward(self, x):
            return x * self.weight if self.weight.shape[0] == 3 else x

    assert len(fx.Tracer(param_shapes_constant=True).trace(Sized()).nodes) == 4
    with pytest.raises(fx.proxy.TraceError):
        Plain(param_shapes_constant=True).trace(Sized())


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: torch.nn.functional.dropout(x),
        lambda torch, x: torch.nn.functional.softmax(x, 1),
        lambda torch, x: torch.nn.functional.max_pool2d(x, 2),
        lambda torch, x: torch.nn.functional.layer_norm(x, (4,)),
        lambda torch, x: torch.nn.functional.linear(x, x),
        lambda torch, x: torch.nn.functional.conv2d(x, x),
        lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
        lambda torch, x: torch.numel(x),
        lambda torch, x: torch.einsum("ij->i", x),
        lambda torch, x: torch.einsum("ij,ij->i", (x, x)),
    ],
)
def test_layers_are_recorded_as_pytorch_records_them(call) -> None:
    oracle = pytest.importorskip("torch")
    import torch.fx

    ours = fx.symbolic_trace(lambda x: call(taeda, x))
    theirs = torch.fx.symbolic_trace(lambda x: call(oracle, x))
    assert ours.code.split() == theirs.code.split()


@pytest.mark.parametrize("root", [nn.Sequential(nn.Linear(2, 2)), nn.ReLU(), nn.Identity()])
def test_traced_layers_are_pickled(root):
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, nn.Linear)

    traced = fx.GraphModule(root, Whole().trace(root))
    again = pickle.loads(pickle.dumps(traced))
    x = taeda.randn(3, 2)
    assert taeda.equal(again(x), root(x))
    assert "_Any_" not in traced.code and "_Tensor_" not in traced.code
