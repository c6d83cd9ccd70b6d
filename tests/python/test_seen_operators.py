"""What a TorchDispatchMode sees of common programs: the operators that PyTorch's mode sees.

seen_programs.txt has one program a line; where another list of operators is seen than in PyTorch,
the reason stands behind " # ". A line with a reason that has none any more fails, too.
"""

import re
import warnings
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

import taeda
from taeda.utils._pytree import tree_leaves

torch = pytest.importorskip("torch")

LINES = Path(__file__).with_name("seen_programs.txt").read_text().splitlines()
PROGRAMS = dict(line.partition(" # ")[::2] for line in LINES if line and line[0] != "#")
REASONS = {
    "fused": "one operator of the table's own where PyTorch has several or another",
    "composed": "an expression of other operators, as the table defines it",
    "gradient": "the table's formula of the gradient, in other steps",
    "list": "tensors are stepped one by one, or counters of steps made and read otherwise",
    "order": "the same work in other steps, or other views of it",
}
# What says nothing of a program: copies for autograd's bookkeeping, constants, profiling.
BOOKKEEPING = re.compile(r"aten\.(detach|lift_fresh)\.default|profiler\..*")


def tensors(t):
    """The names in programs: tensors with the same values in both frameworks."""
    x = t.linspace(-1, 2, 12).view(3, 4)
    ramp = lambda *sizes: t.linspace(0, 1, int(t.Size(sizes).numel())).view(*sizes)  # noqa: E731
    p = t.nn.Parameter(t.ones(3, 4))
    p.grad = t.ones(3, 4)
    symmetric = t.eye(3) * 2 + t.ones(3, 3)
    return {
        "t": t, "nn": t.nn, "F": t.nn.functional, "optim": t.optim,
        "x": x, "y": t.linspace(0.1, 1, 12).view(3, 4), "z": x.clone(), "p": p,
        "r": x.clone().requires_grad_(), "x3": ramp(2, 3, 4),
        "w1": t.tensor([0.25]), "w3": t.tensor([1.0, -2.0, 3.0]),
        "w4": t.tensor([1.0, 2.0, 3.0, 4.0]), "w16": t.arange(16.0),
        "c1": ramp(1, 2, 12), "c2": ramp(1, 2, 6, 6), "c3": ramp(1, 2, 4, 4, 4),
        "c4": ramp(1, 4, 4, 4), "rc": ramp(1, 2, 6, 6).requires_grad_(),
        "k2": t.ones(3, 2, 3, 3, requires_grad=True), "labels": t.tensor([0, 2, 1]),
        "labels2": t.zeros(1, 6, 6, dtype=t.int64), "idx": t.tensor([[0, 1, 2, 3]] * 3),
        "grid": t.zeros(1, 3, 3, 2), "theta": t.ones(1, 2, 3), "mask": t.zeros(4, 4),
        "q": ramp(1, 2, 4, 4), "rq": ramp(1, 2, 4, 4).requires_grad_(),
        "sq": symmetric, "spd": symmetric, "rs": symmetric.clone().requires_grad_(),
        "logp": t.zeros(5, 2, 4).log_softmax(2), "ctct": t.tensor([[1, 2], [2, 1]]),
        "bw": lambda loss: loss.backward(),
    }  # fmt: skip


def split(program):
    """A layer or an optimizer is made before the mode is on: its text, and that of the rest."""
    if not program.startswith(("nn.", "optim.")) or program.startswith("nn.utils"):
        return "", program
    end = depth = 0
    while end == 0 or depth:  # behind the bracket that closes the first one
        end += 1
        depth = program[:end].count("(") - program[:end].count(")") if "(" in program[:end] else 1
    made, rest = program[:end], program[end:]
    if rest.startswith(".eval()"):
        made, rest = made + ".eval()", rest.removeprefix(".eval()")
    return made, "made" + rest


def run(t, program, mode=None):
    """What the program gives, and the tensors that it was given, as it left them."""
    t.manual_seed(0)
    names = tensors(t)
    made, text = split(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if made:
            names["made"] = eval(made, names)
        with mode or nullcontext():
            result = eval(text, names)
    return result, [names[name] for name in ("z", "p", "r", "rc", "k2", "rq", "rs")]


def log(t, calls):
    """A mode that notes the names of operators."""

    class Log(import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    return Log()


def seen(t, program):
    """The operators that a mode sees while the program runs."""
    calls = []
    run(t, program, log(t, calls))
    return [name for name in calls if not BOOKKEEPING.fullmatch(name)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_mode_sees_pytorchs_operators(program):
    reason = PROGRAMS[program]
    assert reason in ("", *REASONS)
    same = seen(taeda, program) == seen(torch, program)
    assert same == (reason == ""), f"{seen(taeda, program)}\nPyTorch: {seen(torch, program)}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_mode_passes_on_gives_the_same(program):
    if "empty" in program:
        pytest.skip("gives memory as it is")
    found = [run(taeda, program), run(taeda, program, log(taeda, []))]
    plain, watched = (
        [x for x in tree_leaves(each) + [y.grad for y in each[1]] if isinstance(x, taeda.Tensor)]
        for each in found
    )
    assert len(plain) == len(watched)
    for x, y in zip(plain, watched):
        taeda.testing.assert_close(y, x, equal_nan=True)


def test_most_programs_are_seen_as_in_pytorch():
    same = sum(reason == "" for reason in PROGRAMS.values())
    assert len(PROGRAMS) > 600
    assert same / len(PROGRAMS) > 0.5
