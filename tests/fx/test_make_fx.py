"""make_fx: operators as graphs, which compute what the function does and what PyTorch's show."""

import pytest

import taeda
from taeda.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

torch = pytest.importorskip("torch")
from torch.fx.experimental import proxy_tensor as theirs  # noqa: E402


def names(graph):
    return [(n.op, str(n.target), n.name) for n in graph.nodes]


FUNCTIONS = {
    "pointwise": (lambda x, y: (x * 2 + y).sin(), 2),
    "reduction": (lambda x: x.exp().sum(1), 1),
    "views": (lambda x: x.transpose(0, 1)[0].view(1, -1), 1),
    "several results": (lambda x: (x.cos(), [x + 1]), 1),
    "parts": (lambda x: x.split(1)[1] * 2, 1),
    "in place": (lambda x: x.clone().mul_(3), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_are_pytorchs(name):
    function, count = FUNCTIONS[name]
    ours = make_fx(function)(*[taeda.ones(2, 3) for _ in range(count)])
    other = theirs.make_fx(function)(*[torch.ones(2, 3) for _ in range(count)])
    assert names(ours.graph) == names(other.graph)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traces_compute_the_function(name):
    function, count = FUNCTIONS[name]
    traced = make_fx(function)(*[taeda.ones(2, 3) for _ in range(count)])
    inputs = [taeda.randn(2, 3) for _ in range(count)]
    expected = taeda.utils._pytree.tree_leaves(function(*inputs))
    found = taeda.utils._pytree.tree_leaves(traced(*inputs))
    assert all(map(taeda.equal, found, expected))


def test_modules_and_gradients_are_traced():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 2), taeda.nn.Tanh())

    def gradient(x):
        x = x.detach().requires_grad_()
        return taeda.autograd.grad(model(x).sum(), x)[0]

    x = taeda.randn(4, 3)
    traced = make_fx(gradient)(x)
    y = taeda.randn(4, 3)
    taeda.testing.assert_close(traced(y), gradient(y))
    assert any(str(n.target).startswith("_param_constant") for n in traced.graph.nodes)
    assert {"addmm", "tanh"} <= {n.name for n in make_fx(model)(x).graph.nodes}


def test_containers_and_constants():
    constant = taeda.arange(3.0)

    def function(inputs, *, scale=None):
        return {"sum": inputs["a"] + inputs["b"][0] + constant}

    traced = make_fx(lambda inputs: function(inputs))({"a": taeda.ones(3), "b": [taeda.ones(3)]})
    found = traced({"a": taeda.zeros(3), "b": [taeda.ones(3)]})
    assert found["sum"].tolist() == [1, 2, 3]
    assert taeda.equal(traced._tensor_constant0, constant)


def test_operators_are_decomposed():
    table = {taeda.ops.aten.tanh.default: lambda x: x.sinh() / x.cosh()}
    traced = make_fx(lambda x: x.tanh(), table)(taeda.ones(2))
    assert [n.name for n in traced.graph.nodes] == ["x_1", "sinh", "cosh", "div", "output"]
    assert traced(taeda.zeros(2)).tolist() == [0, 0]


def test_the_mode_is_known_while_it_records():
    seen = []
    make_fx(lambda x: seen.append(get_proxy_mode()) or x + 1)(taeda.ones(1))
    assert seen[0] is not None
    assert get_proxy_mode() is None


def test_symbolic_sizes_are_refused():
    with pytest.raises(NotImplementedError, match="sizes are numbers"):
        make_fx(lambda x: x, tracing_mode="symbolic")
    with pytest.raises(AssertionError, match="Unexpected tracing type"):
        make_fx(lambda x: x, tracing_mode="other")
