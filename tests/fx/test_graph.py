"""Editing graphs, and replacing patterns in them."""

import operator

import pytest

import taeda
from taeda import fx, nn


def program(x, y):
    return taeda.relu(x + y) * (x + y)


@pytest.fixture
def traced() -> fx.GraphModule:
    return fx.symbolic_trace(program)


def names(graph: fx.Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_nodes_know_their_arguments_and_users(traced: fx.GraphModule) -> None:
    x, y, add, relu, add_1, mul, output = traced.graph.nodes
    assert add.args == (x, y)
    assert list(x.users) == [add, add_1]
    assert mul.all_input_nodes == [relu, add_1]
    assert traced.graph.output_node() is output
    assert x < mul
    assert [n.name for n in reversed(traced.graph.nodes)][:2] == ["output", "mul"]
    add_1.args = (y, y)
    assert list(x.users) == [add]
    with pytest.raises(TypeError, match="does not support mutation"):
        traced.graph.create_node("call_function", taeda.cat, ([x, y],)).args[0].append(x)


def test_nodes_are_inserted_replaced_and_erased(traced: fx.GraphModule) -> None:
    graph = traced.graph
    relu = next(node for node in graph.nodes if node.name == "relu")
    with graph.inserting_after(relu):
        new = graph.call_function(taeda.neg, (relu.args[0],))
    with pytest.raises(RuntimeError, match="Tried to erase Node relu but it still had 1 users"):
        graph.erase_node(relu)
    assert relu.replace_all_uses_with(new) == [n for n in graph.nodes if n.name == "mul"]
    graph.erase_node(relu)
    graph.lint()
    traced.recompile()
    assert float(traced(taeda.tensor(1.0), taeda.tensor(2.0))) == -9


def test_order_is_checked(traced: fx.GraphModule) -> None:
    add, relu = list(traced.graph.nodes)[2:4]
    relu.append(add)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        traced.graph.lint()
    relu.prepend(add)
    traced.graph.lint()


def test_dead_code_goes_and_effects_stay() -> None:
    def dead(x):
        x + 1
        taeda._assert(x, "x")
        return x * 2

    graph = fx.symbolic_trace(dead).graph
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "_assert", "mul", "output"]
    assert not graph.eliminate_dead_code()


def test_graphs_are_copied(traced: fx.GraphModule) -> None:
    graph = fx.Graph()
    result = graph.graph_copy(traced.graph, {})
    graph.output(result)
    assert names(graph) == names(traced.graph)
    assert all(node.graph is graph for node in graph.nodes)


def test_text_is_that_of_pytorch() -> None:
    pytest.importorskip("torch")
    import torch.fx

    def forward(x, y=3):
        return (x + y).sum(dim=0), [x]

    expected = torch.fx.symbolic_trace(forward)
    found = fx.symbolic_trace(forward)
    assert str(found.graph) == str(expected.graph)
    assert found.code == expected.code


def test_patterns_are_replaced() -> None:
    def forward(x, y):
        return taeda.cat([x, y]).sum() * taeda.cat([y, x]).sum() + taeda.cat([x, x])

    traced = fx.symbolic_trace(forward)
    x, y = taeda.randn(3), taeda.randn(3)
    expected = traced(x, y)
    matches = fx.replace_pattern(
        traced, lambda a, b: taeda.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum()
    )
    assert len(matches) == 2
    traced.graph.lint()
    assert sum(node.target is taeda.cat for node in traced.graph.nodes) == 1
    taeda.testing.assert_close(traced(x, y), expected)


def test_a_pattern_whose_inside_is_used_elsewhere_stays() -> None:
    def forward(x):
        y = x + 1
        return taeda.relu(y), y

    traced = fx.symbolic_trace(forward)
    assert not fx.replace_pattern(traced, lambda a: taeda.relu(a + 1), lambda a: a)


def test_submodules_are_added_and_unused_ones_deleted() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Tanh())
    traced = fx.symbolic_trace(model)
    assert traced.add_submodule("extra.gelu", nn.GELU())
    relu = next(node for node in traced.graph.nodes if node.target == "1")
    relu.target = "extra.gelu"
    traced.delete_all_unused_submodules()
    traced.recompile()
    assert [name for name, _ in traced.named_modules()] == ["", "0", "2", "extra", "extra.gelu"]
    x = taeda.randn(2)
    taeda.testing.assert_close(traced(x), nn.functional.gelu(model[0](x)).tanh())


def test_a_module_is_made_of_a_dictionary_and_a_graph() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("a.weight")
    graph.output(graph.call_function(operator.mul, (x, weight)))
    with pytest.raises(RuntimeError, match="was not provided"):
        fx.GraphModule({}, graph)
    module = fx.GraphModule({"a.weight": nn.Parameter(taeda.tensor(3.0))}, graph)
    assert [name for name, _ in module.named_parameters()] == ["a.weight"]
    assert module(taeda.tensor(2.0)).item() == 6


def test_errors_show_the_generated_line(capsys: pytest.CaptureFixture) -> None:
    traced = fx.symbolic_trace(lambda x: x.no_such_method(1))
    with pytest.raises(AttributeError):
        traced(taeda.ones(1))
    assert "<--- HERE" in capsys.readouterr().err
    assert "no_such_method" in traced.print_readable(print_output=False)


def test_nodes_are_printed_as_tabulate_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    fx.symbolic_trace(lambda x: x.neg()).graph.print_tabular()
    assert capsys.readouterr().out.splitlines() == [
        "opcode       name    target    args    kwargs",
        "-----------  ------  --------  ------  --------",
        "placeholder  x       x         ()      {}",
        "call_method  neg     neg       (x,)    {}",
        "output       output  output    (neg,)  {}",
    ]
