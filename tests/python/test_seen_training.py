"""What a TorchDispatchMode sees of a step of training, beside what PyTorch's mode sees.

Each difference is listed with its reason; any other fails. Views, copies and what autograd does for
its own bookkeeping are left out: taeda makes fewer views (its products take transposed operands),
and copies the gradient of a leaf that Python has seen, which PyTorch shares.
"""

import difflib
import re
import warnings
from collections import Counter
from contextlib import nullcontext
from importlib import import_module

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

LEFT_OUT = re.compile(
    r"aten\.(detach|lift_fresh|clone|t|view|_unsafe_view|empty)\.\w+|profiler\..*"
)
REASONS = {
    "cross entropy": (
        "keeps log(sum(exp(row))), of which backward makes the logarithms again",
        ["+ aten.logsumexp.default", "+ aten.unsqueeze.default", "+ aten.sub.Tensor"],
    ),
    "batch norm": (
        "its variance is made of the reciprocal deviation, running averages move by operators",
        [
            *("+ aten.pow.Tensor_Scalar", "+ aten.sub.Tensor"),
            *("+ aten.mul_.Tensor", "+ aten.add_.Tensor") * 2,
            *("+ aten.add.Scalar", "+ aten.rsqrt.default"),
        ],
    ),
    "self-attention": (
        "the three projections are parts of one product with its bias, whose gradient is one cat",
        [
            *("+ aten.addmm.default", "+ aten.split.Tensor", "+ aten.cat.default"),
            *("- aten.mm.default", *["- aten.select.int"] * 3, *["- aten.add.Tensor"] * 3),
            *["- aten.unsqueeze.default", "- aten.transpose.int", "- aten.squeeze.dim"] * 2,
            *["- aten.select_backward.default"] * 3,
        ],
    ),
}
# Steps of taeda's own, where PyTorch calls oneDNN's layer on the CPUs that have it.
RECURRENT = {"taeda._rnn_layer.default", "taeda._rnn_layer_backward.default"}


def perceptron(t):
    nn = t.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = t.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1, foreach=False)
    return step(t, model, optimizer, t.randn(5, 4), t.tensor([0, 1, 2, 0, 1]))


def convolutional(t):
    nn = t.nn
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 2))
    optimizer = t.optim.Adam(model.parameters(), foreach=False)
    return step(t, model, optimizer, t.randn(2, 3, 8, 8), t.tensor([0, 1]))


def transformer(t):
    model = t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    optimizer = t.optim.AdamW(model.parameters(), foreach=False)
    return step(t, model, optimizer, t.randn(2, 3, 8), t.randn(2, 3, 8), "mse_loss")


def recurrent(t):
    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = t.nn.LSTM(3, 4), t.nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.lstm(x)[0][-1])

    model = Model()
    optimizer = t.optim.RMSprop(model.parameters(), foreach=False)
    return step(t, model, optimizer, t.randn(5, 2, 3), t.tensor([0, 1]))


def step(t, model, optimizer, x, y, loss="cross_entropy"):
    def run():
        optimizer.zero_grad()
        getattr(t.nn.functional, loss)(model(x), y).backward()
        optimizer.step()

    return run


PROGRAMS = {
    perceptron: ["cross entropy"],
    convolutional: ["cross entropy", "batch norm"],
    transformer: ["self-attention"],
}


def seen(t, program):
    """The operators of the first step and of the second."""
    calls = []

    class Log(import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls[-1].append(str(func))
            return func(*args, **(kwargs or {}))

    t.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = program(t)
        for _ in range(2):
            calls.append([])
            with Log():
                run()
    return [[name for name in each if not LEFT_OUT.fullmatch(name)] for each in calls]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_step_of_training_shows_pytorchs_operators(program):
    for ours, theirs in zip(seen(taeda, program), seen(torch, program)):
        found = Counter(line for line in difflib.ndiff(theirs, ours) if line[0] in "+-")
        moved = Counter({f"+{line[1:]}": n for line, n in found.items() if line[0] == "-"}) & found
        found -= moved + Counter({f"-{line[1:]}": n for line, n in moved.items()})
        expected = Counter(line for name in PROGRAMS[program] for line in REASONS[name][1])
        assert found == expected


@pytest.mark.parametrize("program", [*PROGRAMS, recurrent], ids=lambda program: program.__name__)
def test_a_step_of_training_shows_no_other_operator_of_taedas_own(program):
    names = {name for each in seen(taeda, program) for name in each}
    own = {name for name in names if not name.startswith("aten.")}
    assert own == (RECURRENT if program is recurrent else set())


# --- foreach=True: the operators on lists that the second step of an optimizer shows ---

BY_LISTS = {
    "SGD": {"lr": 0.1},
    "SGD with momentum": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {},
    "Adam with decay": {"weight_decay": 0.1, "amsgrad": True},
    "AdamW": {},
    "RMSprop": {},
    "RMSprop, centered": {"centered": True, "momentum": 0.9, "weight_decay": 0.1},
    "Adadelta": {"weight_decay": 0.1},
}
# Others than PyTorch's: what PyTorch has there, and why.
NEARLY = {
    "SGD of Nesterov": (
        "writes no gradient of the program's",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        ["+ aten._foreach_add.List", "- aten._foreach_add_.List"],
    ),
    "Adagrad": (
        "the step is part of the quotient",
        {"weight_decay": 0.1},
        [
            *("- aten._foreach_mul_.ScalarList", "- aten._foreach_addcdiv_.Scalar"),
            "+ aten._foreach_addcdiv_.ScalarList",
        ],
    ),
    "Adamax": (
        "makes a temporary of absolute values",
        {"weight_decay": 0.1},
        ["- aten._foreach_abs_.default", "+ aten._foreach_abs.default"],
    ),
}
ONE_BY_ONE = ["NAdam", "RAdam", "ASGD", "Rprop"]  # whose steps branch on values


def stepped(t, name, options, log=True):
    """What a mode sees of two steps by lists, and the parameters after them."""
    calls = []

    class Log(import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls[-1].append(str(func))
            return func(*args, **(kwargs or {}))

    given = [[1.0, -2.0, 3.0], [[0.5], [0.25]]]
    params = [t.tensor(values, dtype=t.float64, requires_grad=True) for values in given]
    optimizer = getattr(t.optim, name.split()[0].rstrip(","))(params, foreach=True, **options)
    for step in range(2):
        calls.append([])
        for p in params:
            p.grad = p.detach().cos() * (step + 1)
        with Log() if log else nullcontext():
            optimizer.step()
    return [[c for c in each if "_foreach" in c] for each in calls], params


@pytest.mark.parametrize("name", BY_LISTS)
def test_a_step_by_lists_shows_pytorchs_operators(name):
    ours, theirs = (stepped(t, name, BY_LISTS[name])[0] for t in (taeda, torch))
    assert ours == theirs
    assert len(ours[1]) > 0


@pytest.mark.parametrize("name", NEARLY)
def test_other_steps_by_lists_differ_as_listed(name):
    _, options, expected = NEARLY[name]
    ours, theirs = (stepped(t, name, options)[0][1] for t in (taeda, torch))
    assert [line for line in difflib.ndiff(theirs, ours) if line[0] in "+-"] == expected


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_steps_that_branch_on_values_go_one_by_one(name):
    assert stepped(taeda, name, {})[0] == [[], []]


@pytest.mark.parametrize("name", [*BY_LISTS, *NEARLY, *ONE_BY_ONE])
def test_a_step_by_lists_does_what_a_step_without_a_mode_does(name):
    options = BY_LISTS.get(name) or (NEARLY[name][1] if name in NEARLY else {})
    seen_one, plain, theirs = (
        stepped(t, name, options, log)[1]
        for t, log in ((taeda, True), (taeda, False), (torch, False))
    )
    for x, y, z in zip(seen_one, plain, theirs):
        taeda.testing.assert_close(x, y, rtol=1e-14, atol=0)
        np.testing.assert_allclose(x.detach().numpy(), z.detach().numpy(), rtol=1e-12)
