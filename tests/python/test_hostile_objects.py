"""What is written in C, called with Python objects that lie, raise and change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import ENVIRONMENT

import taeda as torch

MODULE = "tests.python.hostile_objects"


def test_no_hostile_object_ends_the_process(tmp_path: Path) -> None:
    """By hand: python -m tests.python.hostile_objects 1000 SEED /tmp/log"""
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "8", "seed 1", str(tmp_path / "log")],
        capture_output=True, text=True, timeout=600, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.endswith(" 0 deaths\n"), done.stdout + done.stderr


def test_format_takes_strings() -> None:
    for spec in (None, 5, b"", torch.ones(1)):
        with pytest.raises(TypeError, match="argument must be str, not"):
            torch.ones(3).__format__(spec)
    assert format(torch.tensor(2.5), ".3f") == "2.500"


CHANGES = """
class Changes:
    'An integer that changes the list it comes from when it is read.'

    def __init__(self, items, new):
        self.items, self.new = items, new

    def __index__(self):
        self.items[:] = self.new
        return 1

    def __float__(self):
        return float(self.__index__())
"""
LIMIT = "from tests.children import limit_child; limit_child()"

# Each is run by itself: an old build dies.
SMALL_PROGRAMS = {
    "a list of ints that shrinks": """
x = []
x[:] = [Changes(x, []) for _ in range(9000)]
torch.ones(x)""",
    "a list of floats that shrinks": """
x = []
x[:] = [Changes(x, []) for _ in range(9)]
torch.nn.functional.interpolate(torch.ones(1, 1, 4), scale_factor=x)""",
    "a list of tensors that are numbers by now": """
x = [torch.ones(2)] * 2
torch.cat(x, Changes(x, [1, 2]))""",
    "sizes of a storage": """
x = []
x[:] = [Changes(x, []) for _ in range(900)]
torch._C._tensor_from_storage(torch.ones(1).untyped_storage(), torch.float32, 0, x, x)""",
    "an edge that its number removes": """
y = torch.ones(1, requires_grad=True) * 2
edges = []
edges.append((y.grad_fn, Changes(edges, [])))
torch._C._backward(edges, None, False, False, None)""",
    "arguments that are no tuple": "torch._C._disabled_torch_function_impl(len, (), 5)",
    "keywords that are no dict": "torch.Tensor.__torch_function__(torch.add, (), (), 5)",
    "a result that holds itself": """
class Sub(torch.Tensor): pass
cycle = []
cycle.append(cycle)
Sub.__torch_function__(lambda: cycle, ())""",
    "a context that is given anything": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.to_save = 5
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g
F.apply(torch.ones(1, requires_grad=True))""",
    "names that are no tuple": """
torch.return_types.max.__match_args__ = 5
repr(torch.ones(2, 2).max(0))""",
    "no dual number": "torch._C._unpack_dual(None, 1)",
    "a level that is no number": "torch._C._exit_dual_level('x')",
    "a mode that is no number": "torch._C._exit_inference_mode('x')",
    "lists in lists without end": "torch.ones([1] * 200000).tolist()",
    "text of too many dimensions": "repr(torch.ones([1] * 200000))",
    "Sizes in Sizes": """
s = torch.Size(())
for _ in range(200000):
    s = torch.Size(()) + (s,)""",
    "a sequence without end": """
class Endless:
    def __len__(self): return 2
    def __getitem__(self, i): return 1.0
    def __iter__(self):
        while True: yield 1.0
torch.tensor(Endless())""",
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL_PROGRAMS)
def test_small_programs_end_well(name: str) -> None:
    program = f"{LIMIT}\nimport taeda as torch\n{CHANGES}\n{SMALL_PROGRAMS[name]}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=60, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert "SystemError" not in done.stderr
