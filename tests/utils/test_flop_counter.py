"""FLOPs by module and operator, beside PyTorch's."""

from importlib import import_module

import pytest

import taeda
from taeda.utils import flop_counter
from taeda.utils.flop_counter import FlopCounterMode

torch = pytest.importorskip("torch")
theirs = import_module("torch.utils.flop_counter")


def net(package):
    nn = package.nn
    linear = [nn.Linear(128, 16), nn.ReLU(), nn.Linear(16, 3, bias=False)]
    conv = [nn.Conv2d(2, 4, 3, padding=1), nn.ConvTranspose2d(4, 2, 2, stride=2)]
    return nn.Sequential(*conv, nn.Flatten(), nn.Sequential(*linear))


def attend(package):
    layer = package.nn.MultiheadAttention(4, 2, batch_first=True)
    x = package.ones(2, 3, 4)
    layer(x, x, x)[0].sum().backward()


PROGRAMS = {
    "net": lambda p: net(p)(p.ones(2, 2, 4, 4)).sum().backward(),
    "input": lambda p: net(p)(p.ones(2, 2, 4, 4, requires_grad=True)).sum().backward(),
    "forward": lambda p: net(p)(p.ones(2, 2, 4, 4)),
    "grouped": lambda p: p.nn.Conv2d(4, 4, 3, groups=2)(p.ones(1, 4, 5, 5)).sum().backward(),
    "one_dimension": lambda p: p.nn.Conv1d(4, 2, 3)(p.ones(1, 4, 5)).sum().backward(),
    "linear": lambda p: p.nn.Linear(3, 4)(p.ones(2, 5, 3)).sum().backward(),
    "batches": lambda p: p.ones(2, 2, 3) @ p.ones(2, 3, 2),
    "sums": lambda p: p.baddbmm(p.ones(2, 2, 2), p.ones(2, 2, 3), p.ones(2, 3, 2)),
    "addmm": lambda p: p.addmm(p.ones(2, 2), p.ones(2, 3), p.ones(3, 2)),
    "einsum": lambda p: p.einsum("ij,jk->ik", p.ones(2, 3), p.ones(3, 2)),
    "attention": attend,
    "none": lambda p: p.ones(3).exp(),
}


def counts_of(module, package, program):
    counter = module.FlopCounterMode(display=False, depth=None)
    with counter:
        program(package)
    found = counter.get_flop_counts()
    named = {name: {str(op): n for op, n in c.items()} for name, c in found.items() if c}
    return counter.get_total_flops(), named


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_are_pytorchs(name):
    ours = counts_of(flop_counter, taeda, PROGRAMS[name])
    expected = counts_of(theirs, torch, PROGRAMS[name])
    if name == "attention":  # other products of the same matrices
        for counts in (ours, expected):
            counts[1].update({module: sum(c.values()) for module, c in counts[1].items()})
    assert ours == expected


def test_tables():
    with FlopCounterMode(display=False) as counter:
        taeda.nn.Linear(30, 40)(taeda.ones(2, 30))
        taeda.ones(2, 30) @ taeda.ones(30, 5)
    lines = counter.get_table().splitlines()
    assert set(lines[1]) == {"-", " "}
    assert [line.split() for line in lines if line is not lines[1]] == [
        ["Module", "FLOP", "%", "Total"],
        ["Global", "5400.000", "100.00%"],
        ["-", "aten.addmm", "4800.000", "88.89%"],
        ["-", "aten.mm", "600.000", "11.11%"],
        ["Linear", "4800.000", "88.89%"],
        ["-", "aten.addmm", "4800.000", "88.89%"],
    ]
    empty = FlopCounterMode(display=False)
    with empty:
        pass
    assert empty.get_table().splitlines()[2].split() == ["Global", "0.000", "0%"]


def test_formulas_of_ones_own():
    formula = {taeda.ops.aten.exp: lambda x, out_shape=None: x.numel()}
    with FlopCounterMode(display=False, custom_mapping=formula) as counter:
        taeda.ones(3, 4).exp()
    assert counter.get_total_flops() == 12
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        flop_counter.register_flop_formula(taeda.ops.aten.exp.default)(lambda x: 0)
    with pytest.raises(RuntimeError, match="duplicate"):
        flop_counter.register_flop_formula(taeda.ops.aten.mm)(lambda x: 0)
