"""What a TorchDispatchMode sees of a step of training, beside what PyTorch's mode sees.

Each difference is listed with its reason; any other fails. Views, copies and what autograd does for
its own bookkeeping are left out: taeda makes fewer views (its products take transposed operands),
and copies the gradient of a leaf that Python has seen, which PyTorch shares.
"""

import difflib
import re
import warnings
from collections import Counter
from importlib import import_module

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
            *("+ aten.add.Tensor", "+ aten.rsqrt.default"),
        ],
    ),
    "squared errors": (
        "the gradient is the table's formula",
        ["- aten.mse_loss_backward.default", "+ aten.sub.Tensor", "+ aten.div.Tensor"]
        + ["+ aten.mul.Tensor"] * 2,
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
    transformer: ["squared errors", "self-attention"],
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
