"""torch.compile with a program's own backend: the graph that it gets, and what is run."""

from __future__ import annotations

import operator

import pytest

import taeda
from taeda import nn


class Backend:
    """Keeps the graphs and example inputs that it is called with."""

    def __init__(self):
        self.graphs, self.inputs, self.runs = [], [], 0

    def __call__(self, module, inputs):
        self.graphs.append(module)
        self.inputs.append(inputs)

        def run(*args):
            self.runs += 1
            return module(*args)

        return run


def targets(module):
    return [n.target for n in module.graph.nodes if n.op not in ("placeholder", "output")]


def test_a_backend_gets_a_graph_and_what_it_gives_is_run():
    backend = Backend()

    @taeda.compile(backend=backend)
    def f(x, y):
        return {"sum": (taeda.sin(x) @ y + 1).sum(), "name": "f"}

    x, y = taeda.randn(2, 3, requires_grad=True), taeda.randn(3, 2)
    found = f(x, y)
    found["sum"].backward()
    assert taeda.allclose(found["sum"], (x.sin() @ y + 1).sum()) and found["name"] == "f"
    assert taeda.allclose(x.grad, x.detach().cos() * y.sum(1))
    (module,), (inputs,) = backend.graphs, backend.inputs
    assert isinstance(module, taeda.fx.GraphModule)
    assert targets(module) == [taeda.sin, "matmul", operator.add, "sum"]
    assert [tuple(i.shape) for i in inputs] == [(2, 3), (3, 2)]
    assert [n.target for n in module.graph.nodes][:2] == ["L_x_", "L_y_"]
    f(x, y)
    assert backend.runs == 2 and len(backend.graphs) == 1


def test_other_sizes_dtypes_numbers_and_modes_are_recorded_anew():
    backend = Backend()
    f = taeda.compile(lambda x, n: x * n if n > 1 else x - n, backend=backend)
    x = taeda.ones(2)
    assert f(x, 2).tolist() == [2, 2] and f(x, 1).tolist() == [0, 0]
    assert f(taeda.ones(3), 2).tolist() == [2, 2, 2]
    assert f(x.double(), 2).dtype == taeda.float64
    with taeda.no_grad():
        f(x, 2)
    assert len(backend.graphs) == 5


def test_parameters_and_buffers_are_inputs_and_train():
    backend = Backend()
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    twin = taeda.nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    twin.load_state_dict(model.state_dict())
    compiled = taeda.compile(model, backend=backend)
    x = taeda.randn(8, 3)
    for one in (compiled, twin):
        optimizer = taeda.optim.SGD(one.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            one(x).square().mean().backward()
            optimizer.step()
    assert len(backend.graphs) == 1 and backend.runs == 3
    assert model[1].num_batches_tracked == 3
    for ours, theirs in zip(model.state_dict().values(), twin.state_dict().values()):
        assert taeda.equal(ours, theirs)
    names = [n.target for n in backend.graphs[0].graph.nodes if n.op == "placeholder"]
    assert "L_self_modules_0_parameters_weight_" in names
    compiled.eval()
    assert taeda.equal(compiled(x), twin.eval()(x)) and len(backend.graphs) == 2


def test_writes_views_several_results_and_no_grad_are_in_the_graph():
    def f(x):
        with taeda.no_grad():
            doubled = x * 2
        y = x.clone()
        y[0] = 1
        y += doubled
        low, high = y.chunk(2)
        value, index = y.max(0)
        return low, [high, value], index, x, y.T, 1 / y, 2 - y

    x = taeda.randn(2, 2, requires_grad=True)
    backend = Backend()
    flat = taeda.utils._pytree.tree_leaves
    for ours, theirs in zip(flat(taeda.compile(f, backend=backend)(x)), flat(f(x)), strict=True):
        assert taeda.equal(ours, theirs) and ours.requires_grad == theirs.requires_grad
    assert len(backend.graphs) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1 if x.sum() > 0 else x - 1,
        lambda x: x * x.max().item(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
    ],
)
def test_what_reads_values_runs_eagerly_with_a_warning(f):
    backend = Backend()
    compiled = taeda.compile(f, backend=backend)
    with pytest.warns(UserWarning, match="runs eagerly, and its backend is not called"):
        assert taeda.equal(compiled(taeda.ones(2)), f(taeda.ones(2)))
    assert taeda.equal(compiled(-taeda.ones(2)), f(-taeda.ones(2)))
    assert not backend.graphs


def test_a_module_that_sets_its_attributes_runs_eagerly():
    class Counts(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            self.last = x * 2
            return self.last

    model, backend = Counts(), Backend()
    compiled = taeda.compile(model, backend=backend)
    with pytest.warns(UserWarning, match="attributes of the module are set"):
        compiled(taeda.ones(2))
    assert model.calls == 1 and model.last.tolist() == [2, 2] and not backend.graphs


def test_an_error_of_the_backend_says_so():
    def broken(module, inputs):
        raise ValueError("no")

    with pytest.raises(
        taeda._dynamo.exc.BackendCompilerFailed, match="'broken' raised:\nValueError"
    ):
        taeda.compile(lambda x: x + 1, backend=broken)(taeda.ones(1))


def test_an_error_of_the_function_is_its_own():
    f = taeda.compile(lambda x: x @ taeda.ones(3, 3), backend=Backend())
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="multiplied"):
        f(taeda.ones(2, 2))


def test_a_backend_by_its_registered_name_with_options():
    seen = []

    @taeda._dynamo.register_backend(name="kept_backend")
    def kept(module, inputs, mode=None):
        seen.append(mode)
        return module.forward

    try:
        f = taeda.compile(lambda x: x * 2, backend="kept_backend", mode="fast")
        assert f(taeda.ones(2)).tolist() == [2, 2] and seen == ["fast"]
        assert "kept_backend" in taeda.compiler.list_backends()
    finally:
        taeda._dynamo._backends.pop("kept_backend")


def test_a_disabled_compiler_calls_no_backend(monkeypatch):
    backend = Backend()
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    assert taeda.compile(lambda x: x + 1, backend=backend)(taeda.ones(1)).tolist() == [2]
    monkeypatch.delenv("TORCHDYNAMO_DISABLE")
    with taeda._dynamo.config.patch(disable=True):
        assert taeda.compile(lambda x: x + 1, backend=backend)(taeda.ones(1)).tolist() == [2]
    assert not backend.graphs
