"""Passes over graphs: their managers, fusing, and modules written as packages."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from tests.children import ENVIRONMENT

import taeda

torch = pytest.importorskip("torch")
BOTH = (taeda, torch)


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.fx.{name}")


def remover(lib, function):
    """A pass that takes calls of a function out."""
    result = module(lib, "passes.infra.pass_base").PassResult

    def take_out(traced):
        found = [node for node in traced.graph.nodes if node.target is function]
        for node in found:
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
        return result(traced, bool(found))

    return take_out


def test_passes_run_until_nothing_changes():
    def run(lib):
        manager = module(lib, "passes.infra.pass_manager").PassManager
        traced = lib.fx.symbolic_trace(lambda x: lib.relu(x).neg() + 1)
        passes = manager([remover(lib, lib.relu)], steps=5)
        first, changed = passes(traced)
        again = passes(first)
        return first(lib.tensor(-3.0)).item(), changed, again.modified

    assert run(taeda) == run(torch) == (4.0, True, False)


def test_constraints_order_passes_or_are_refused():
    def run(lib):
        infra = module(lib, "passes.infra.pass_manager")
        ran = []

        def first(traced):
            ran.append("first")

        def second(traced):
            ran.append("second")

        wrapped = [infra.pass_result_wrapper(p) for p in (second, first)]
        before = infra.this_before_that_pass_constraint
        manager = infra.PassManager(wrapped, [before(wrapped[1], wrapped[0])])
        with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
            manager.validate_constraints()
        manager(lib.fx.symbolic_trace(lambda x: x + 1))
        circular = [before(wrapped[0], wrapped[1]), before(wrapped[1], wrapped[0])]
        with pytest.raises(RuntimeError, match="Circular dependency detected"):
            infra.PassManager(wrapped, circular).solve_constraints()
        return ran

    assert run(taeda) == run(torch) == ["first", "second"]


def test_errors_name_the_pass_and_those_before_it():
    def message(lib):
        infra = module(lib, "passes.infra.pass_manager")

        def good(traced):
            pass

        def bad(traced):
            raise ValueError("no")

        manager = infra.PassManager([infra.pass_result_wrapper(good), bad])
        with pytest.raises(Exception, match="An error occurred") as error:
            manager(lib.fx.symbolic_trace(lambda x: x + 1))
        assert isinstance(error.value.__cause__, ValueError)
        return str(error.value)

    assert message(taeda) == message(torch)


def test_passes_as_classes_check_before_and_behind():
    def run(lib):
        base = module(lib, "passes.infra.pass_base")
        seen = []

        class Pass(base.PassBase):
            def requires(self, traced):
                seen.append("before")

            def call(self, traced):
                seen.append("call")
                return base.PassResult(traced, False)

            def ensures(self, traced):
                seen.append("behind")

        Pass()(lib.fx.symbolic_trace(lambda x: x))
        return seen

    assert run(taeda) == run(torch) == ["before", "call", "behind"]


def test_the_older_manager_hands_modules_on():
    def run(lib):
        older = module(lib, "passes.pass_manager")
        seen = []

        def count(x):
            seen.append(x)

        twice = older.loop_pass(lambda x: x + 1, n_iter=2)
        until = older.loop_pass(lambda x: x * 2, predicate=lambda x: x < 20)
        manager = older.PassManager([twice, older.inplace_wrapper(count)])
        manager.add_pass(until)
        with pytest.raises(AssertionError):
            older.loop_pass(count)
        return manager(1), seen

    assert run(taeda) == run(torch) == ((24, [3]))


class Net:
    """Convolutions and a linear layer, each with a batch norm behind it."""

    @staticmethod
    def make(lib):
        lib.manual_seed(0)
        net = lib.nn.Sequential(
            lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.nn.ReLU(), lib.nn.Dropout(),
            lib.nn.Flatten(), lib.nn.Linear(12, 4), lib.nn.BatchNorm1d(4),
        )  # fmt: skip
        net(lib.randn(8, 2, 4, 4))  # running statistics of their own
        return net.eval()


def test_fused_modules_give_the_same_numbers_with_fewer_layers():
    def run(lib):
        net = Net.make(lib)
        optimization = module(lib, "experimental.optimization")
        fused = optimization.fuse(net)
        x = lib.arange(32.0).view(1, 2, 4, 4) / 10
        np.testing.assert_allclose(fused(x).detach(), net(x).detach(), rtol=1e-4, atol=1e-5)
        plain = optimization.remove_dropout(fused)
        return [node.name for node in fused.graph.nodes], [n.name for n in plain.graph.nodes]

    assert run(taeda) == run(torch)


def test_layers_with_batch_statistics_stay():
    net = taeda.nn.Sequential(
        taeda.nn.Linear(3, 2), taeda.nn.BatchNorm1d(2, track_running_stats=False)
    ).eval()
    names = [n.name for n in module(taeda, "experimental.optimization").fuse(net).graph.nodes]
    assert names == ["input_1", "_0", "_1", "output"]


def test_a_part_of_a_graph_becomes_a_module():
    def run(lib):
        traced = lib.fx.symbolic_trace(lambda x: ((x + 1) * 2).neg())
        nodes = list(traced.graph.nodes)
        extract = module(lib, "experimental.optimization").extract_subgraph
        part = extract(traced, nodes[1:3], [nodes[0]], [nodes[2]])
        return [y.tolist() for y in part(lib.ones(2))]

    assert run(taeda) == run(torch) == [[4.0, 4.0]]


def test_a_module_written_as_a_package_runs_from_it(tmp_path):
    class Small(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = taeda.nn.Linear(3, 2)
            self.act = taeda.nn.GELU()
            self.scale = taeda.nn.Parameter(taeda.tensor([2.0, 3.0]))
            self.register_buffer("offset", taeda.tensor([0.5, 1.0]))

        def forward(self, x):
            return self.act(self.layer(x)) * self.scale + self.offset

    traced, package = taeda.fx.symbolic_trace(Small()), tmp_path / "written_module"
    with pytest.warns(UserWarning, match=r"saved as pickled files instead: \['act'\]"):
        traced.to_folder(package, "Written")
    assert {"module.py", "__init__.py", "state_dict.pt", "act.pt"} == set(
        file.name for file in package.iterdir()
    )
    taeda.save(x := taeda.randn(4, 3), tmp_path / "x.pt")
    program = (
        "import torch, written_module\nprint(written_module.Written()(torch.load('x.pt')).tolist())"
    )
    command = [sys.executable, "-m", "taeda", "-c", program]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert found.stdout.strip() == str(traced(x).tolist()), found.stderr
