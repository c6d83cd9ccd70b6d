"""The n-th allocation fails, for every n: OutOfMemoryError, nothing lost, the next step is right.

What is counted: the memory of tensors, the scratch of kernels, and the blocks of storages, tensors
and graph nodes (base/fail_allocation.h).
"""

from __future__ import annotations

import copy
import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models import bfloat16, convnet, lstm, mlp, transformer

import taeda as torch
from taeda import _C
from taeda.nn import functional as F

OPTIMIZERS: dict[str, Callable] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks in other threads' lists count as used."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()  # what other tests have made is not looked through again for each failure
    yield
    gc.unfreeze()
    torch.set_num_threads(before)


def in_use() -> dict[str, int]:
    return {**_C._blocks_in_use(), "bytes": _C._cpu_memory_stats()["live_bytes"]}


def more_than(expected: dict[str, int]) -> dict[str, int]:
    return {name: n - expected[name] for name, n in in_use().items() if n > expected[name]}


def check_in_use(expected: dict[str, int]) -> None:
    if more_than(expected):  # what hangs on a cycle is not lost, and collecting takes long
        gc.collect()
    assert not more_than(expected)


def until_it_succeeds(work: Callable[[], object], after: Callable[[], None]) -> int:
    """Calls work() with the first, second, ... allocation failing, and after() after each failure;
    returns how many allocations a call makes."""
    n = 0
    while True:
        n += 1
        _C._fail_allocation(n)
        try:
            work()
            failed = False
        except torch.OutOfMemoryError as error:
            assert "memory" in str(error)
            failed = True
        finally:
            counted = _C._fail_allocation(0)
        # Whoever swallows an OutOfMemoryError must have coped with it.
        assert not failed or counted == n
        if counted < n:
            return counted
        after()


class Training:
    """A model whose steps can be repeated from the same state."""

    def __init__(self, make: Callable, optimizer: str) -> None:
        torch.manual_seed(1)
        self.model, self.x = make()
        self.optimizer = OPTIMIZERS[optimizer](list(self.model.parameters()))
        self.step()  # the optimizer's state and the gradients exist

    def step(self) -> None:
        torch.manual_seed(2)
        self.optimizer.zero_grad(set_to_none=False)
        out = self.model(self.x)
        out = out[0] if isinstance(out, tuple) else out
        F.mse_loss(out, torch.zeros_like(out)).backward()
        self.optimizer.step()

    def state(self) -> tuple:
        return copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))

    def restore(self, state: tuple) -> None:
        for own, kept in zip(self.tensors(), self.tensors(state), strict=True):
            with torch.no_grad():
                own.copy_(kept)

    def tensors(self, state: tuple | None = None) -> list[torch.Tensor]:
        model, optimizer = state or (self.model.state_dict(), self.optimizer.state_dict())
        states = [t for s in optimizer["state"].values() for t in s.values()]
        return [*model.values(), *(t for t in states if isinstance(t, torch.Tensor))]

    def bits(self) -> list[bytes]:
        return [bytes(t.contiguous().untyped_storage()) for t in self.tensors()]


TRAINED = [(make, o) for make in (mlp, convnet, transformer) for o in OPTIMIZERS]


@pytest.mark.parametrize("make, optimizer", [*TRAINED, (lstm, "SGD"), (bfloat16, "Adam")])
def test_a_training_step(make: Callable, optimizer: str) -> None:
    training = Training(make, optimizer)
    state = training.state()
    training.step()
    expected = training.bits()
    training.restore(state)
    used = in_use()

    def check() -> None:
        check_in_use(used)
        training.restore(state)
        training.step()
        assert training.bits() == expected
        training.restore(state)

    assert until_it_succeeds(training.step, check) > 60
    assert training.bits() == expected


FIRST_STEPS: dict[str, Callable] = {
    "Adam": torch.optim.Adam,
    "AMSGrad": lambda parameters: torch.optim.Adam(parameters, amsgrad=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, momentum=0.9, centered=True),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "NAdam": torch.optim.NAdam,
    "Adagrad": torch.optim.Adagrad,
    "ASGD": torch.optim.ASGD,
    "Rprop": torch.optim.Rprop,
}


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_a_first_step_makes_its_state_or_none(name: str) -> None:
    """Optimizers make their state in the first step; what a failed one has made is whole."""
    torch.manual_seed(0)
    model, x = mlp()
    optimizer = FIRST_STEPS[name](list(model.parameters()))
    model(x).sum().backward()
    kept = copy.deepcopy(model.state_dict())
    reference = copy.deepcopy(model)
    for own, other in zip(model.parameters(), reference.parameters(), strict=True):
        other.grad = own.grad
    whole = FIRST_STEPS[name](list(reference.parameters()))
    whole.step()
    keys = set(whole.state_dict()["state"][0])

    def check() -> None:
        model.load_state_dict(kept)
        assert all(set(s) in (set(), keys) for s in optimizer.state.values())
        if not fused:
            optimizer.state.clear()  # some parameters have taken the step

    fused = name in ("Adam", "AMSGrad", "RMSprop")
    until_it_succeeds(optimizer.step, check)
    for own, other in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(own, other)


def test_save(tmp_path: Path) -> None:
    model, _ = convnet()
    views = [torch.arange(1000.0).reshape(10, 100).t(), torch.ones(3)[1:]]
    path = tmp_path / "x.pt"
    torch.save("old", path)
    used = in_use()

    def check() -> None:
        check_in_use(used)
        assert torch.load(path) == "old"
        assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]

    until_it_succeeds(lambda: torch.save([model.state_dict(), views], path), check)
    assert torch.equal(torch.load(path)[1][0], views[0])


@pytest.mark.parametrize("kind", ["zip", "mmap", "safetensors"])
def test_load(kind: str, tmp_path: Path) -> None:
    from taeda import safetensors

    model, _ = convnet()
    expected = model.state_dict()
    expected["large"] = torch.ones(700, 700)
    path = tmp_path / "x"
    (safetensors.save_file if kind == "safetensors" else torch.save)(expected, path)
    loaded: list = []

    def work() -> None:
        if kind == "safetensors":
            loaded.append(safetensors.load_file(path))
        else:
            loaded.append(torch.load(path, mmap=kind == "mmap"))

    work()
    loaded.clear()
    used = in_use()

    def check() -> None:
        assert not loaded
        check_in_use(used)

    until_it_succeeds(work, check)
    assert all(torch.equal(loaded[0][name], x) for name, x in expected.items())


def test_copies_and_pickles() -> None:
    import pickle

    model, _ = mlp()
    data = io.BytesIO()
    torch.save(model.state_dict(), data)
    used = in_use()

    def work() -> None:
        other = copy.deepcopy(model)
        pickle.loads(pickle.dumps(other))
        other.load_state_dict(torch.load(io.BytesIO(data.getvalue())))

    until_it_succeeds(work, lambda: None)
    check_in_use(used)


PROGRAM = """
import taeda as torch
try:
    x = torch.ones(10) + 1
    y = torch.ones(10) + 2
except torch.OutOfMemoryError as error:
    print("failed:", error)
print("then", (torch.ones(3) + 1).tolist())
"""


def run_with(n: int) -> str:
    environment = {**os.environ, "TAEDA_FAIL_ALLOCATION": str(n)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, env=environment).stdout


def test_the_environment_variable_counts_from_the_start() -> None:
    assert run_with(0) == "then [2.0, 2.0, 2.0]\n"
    for n in (1, 2, 3, 8):
        assert run_with(n).startswith("failed: ")
        assert run_with(n).endswith("then [2.0, 2.0, 2.0]\n")
    assert run_with(1000) == "then [2.0, 2.0, 2.0]\n"


def test_what_is_no_count_is_named_and_ignored() -> None:
    for text in ("abc", "3x", "-1", "1e3", "99999999999999999999"):
        environment = {**os.environ, "TAEDA_FAIL_ALLOCATION": text}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.stdout == "then [2.0, 2.0, 2.0]\n"
        assert f"TAEDA_FAIL_ALLOCATION={text} ignored" in done.stderr
