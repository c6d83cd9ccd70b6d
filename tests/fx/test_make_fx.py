"""make_fx: operators as graphs, which compute what the function does and what PyTorch's show."""

import functools

import numpy as np
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


CONSTANTS = {
    "numbers": lambda t, x: x + t.tensor([1.0, 2.0, 3.0]),
    "one number": lambda t, x: x * t.tensor(2.0),
    "as_tensor": lambda t, x: x + t.as_tensor([1.0, 2.0, 3.0]),
    "of another's dtype": lambda t, x: x + x.new_tensor([1, 2, 3]),
    "an array": lambda t, x: x + t.from_numpy(np.ones(3, np.float32)),
    "written in place": lambda t, x: t.tensor([1.0, 2.0, 3.0]).add_(x),
    "an item": lambda t, x: x * t.tensor(2.0).item(),
    "bucketize": lambda t, x: t.bucketize(x, t.tensor([0.0, 1.0])),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_tensors_of_numbers_are_copied_from_constants_in_every_run(name):
    function = CONSTANTS[name]
    traced = make_fx(lambda x: function(taeda, x))(taeda.ones(3))
    other = theirs.make_fx(lambda x: function(torch, x))(torch.ones(3))
    kept = [n for n in names(traced.graph) if "constant" in n[1] or "lift" in n[1]]
    assert kept == [n for n in names(other.graph) if "constant" in n[1] or "lift" in n[1]]
    x = np.array([-1.0, 0.5, 2.0], np.float32)
    for _ in range(2):
        found = traced(taeda.tensor(x)).numpy()
        np.testing.assert_allclose(found, function(torch, torch.tensor(x)).numpy())


def test_arguments_and_modules_are_named_as_in_pytorch():
    def named(first, second):
        return first + second

    def shown(t, trace):
        calls = [
            (named, 2), (lambda *a: a[0] + a[1], 2), (functools.partial(named, second=2.0), 1),
            (t.func.grad(lambda point: (point**2).sum()), 1), (t.func.vmap(lambda row: row * 2), 1),
        ]  # fmt: skip
        graphs = [trace(f)(*[t.ones(3) for _ in range(count)]) for f, count in calls]
        inputs = [[n.name for n in g.graph.nodes if n.op == "placeholder"] for g in graphs]
        return inputs, [type(g).__name__ for g in graphs]

    assert shown(taeda, make_fx) == shown(torch, theirs.make_fx)


LOSSES = {
    "cross_entropy": lambda t, x, y: t.nn.functional.cross_entropy(x, y.argmax(1)),
    "soft targets": lambda t, x, y: t.nn.functional.cross_entropy(x, y.softmax(1)),
    "with_logits": lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "bce": lambda t, x, y: t.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "layer_norm": lambda t, x, y: t.nn.functional.layer_norm(x, (3,), y[0], y[1]),
    "batch_norm": lambda t, x, y: t.nn.functional.batch_norm(x, None, None, y[0], training=True),
    "group_norm": lambda t, x, y: t.nn.functional.group_norm(x, 3),
    "pow": lambda t, x, y: (x.abs() + 0.5) ** y + x**3,
    "selu": lambda t, x, y: t.nn.functional.selu(x) + t.nn.functional.celu(y),
    "logit": lambda t, x, y: x.sigmoid().logit(),
}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_graphs_of_gradients_hold_pytorchs_operators_alone(name, decomposed):
    from taeda._decomp import core_aten_decompositions

    def gradient(t):
        def of(x, y):
            x = x.detach().requires_grad_()
            return t.autograd.grad(LOSSES[name](t, x, y).sum(), x)[0]

        return of

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 3)).astype(np.float32) for _ in range(2))
    table = core_aten_decompositions() if decomposed else None
    traced = make_fx(gradient(taeda), table)(taeda.tensor(x), taeda.tensor(y))
    assert not [n for n in traced.graph.nodes if str(n.target).startswith("taeda.")]
    expected = gradient(torch)(torch.tensor(x), torch.tensor(y))
    found = traced(taeda.tensor(x), taeda.tensor(y))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-4, 1e-5)


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


def test_memory_that_is_freed_and_allocated_anew_is_another_tensors():
    from taeda._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    for count in (9, 12, 10, 16, 11, 14) * 5:
        fake = mode.from_tensor(taeda.ones(count))
        assert fake.shape == (count,)
