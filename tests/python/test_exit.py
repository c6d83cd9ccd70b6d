"""The interpreter ends while daemon threads are in the middle of taeda's code: the process exits as
if they were not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = """
import threading, time
import taeda as torch
import taeda.nn.functional as F

torch.set_num_threads({threads})
started = [threading.Event() for _ in range(3)]

def run(event, work):
    while True:
        work()
        event.set()

def start(*works):
    for event, work in zip(started, works):
        threading.Thread(target=run, args=(event, work), daemon=True).start()
    for event, _ in zip(started, works):
        event.wait()
"""
KINDS = {
    "large": """
x = torch.randn(300_000)
start(lambda: x * 2, lambda: x.sum(), lambda: torch.sin(x))
""",
    "small": """
x = torch.randn(3)
start(lambda: x * 2, lambda: F.relu(x), lambda: torch.stack([x, x]))
""",
    "products": """
x, d = torch.randn(300, 300), torch.randn(200, 200, dtype=torch.float64)
start(lambda: x @ x, lambda: d @ d, lambda: torch.linalg.svd(d))
""",
    "convolutions": """
x, w = torch.randn(4, 16, 24, 24), torch.randn(16, 16, 5, 5, requires_grad=True)
start(lambda: F.conv2d(x, w).sum().backward(), lambda: F.conv2d(x, w),
      lambda: F.conv2d(torch.randn(4, 16, 20 + int(time.time() * 1000) % 50, 24), w))
""",
    "backward": """
x = torch.randn(200, 200, requires_grad=True)
start(lambda: (x @ x).relu().sum().backward(), lambda: torch.autograd.grad((x * x).sum(), x),
      lambda: torch.func.grad(lambda t: t.sin().sum())(torch.ones(40_000)))
""",
    "hooks": """
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return sum([g * i for i in range(20)])
def hooked():
    x = torch.randn(40_000, requires_grad=True)
    x.register_hook(lambda g: g * sum(range(1000)))
    Slow.apply(x).sum().backward()
start(hooked, hooked, hooked)
""",
    "subclasses": """
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        sum(range(1000))
        return super().__torch_function__(func, types, args, kwargs or {})
x = torch.randn(40_000).as_subclass(Mine)
start(lambda: x + 1, lambda: F.softmax(x, 0), lambda: x.sum())
""",
    "modules": """
def train():
    model = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.ReLU(), torch.nn.Linear(200, 1))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(300, 200)).sum().backward()
    optimizer.step()
start(train, train)
""",
    "random": "start(lambda: torch.randn(200_000), lambda: torch.randperm(50_000))",
    "sorting": "start(lambda: torch.randn(200_000).sort(), lambda: torch.randn(9).topk(2))",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_exit_beside_daemon_threads(kind: str, threads: int) -> None:
    program = HEAD.replace("{threads}", str(threads)) + KINDS[kind]
    children = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert (child.returncode, errors) == (0, "")


HANDLER = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.__cxa_atexit(libc.puts, ctypes.c_void_p(libc.strdup(b"called")), None)

import taeda as torch
torch.set_num_threads(1)
d = torch.ones(3000, 3000, dtype=torch.float64)
d[:2, :2] @ d[:2, :2]
threading.Thread(target=lambda: d @ d, daemon=True).start()
time.sleep(0.1)
"""


def test_exit_handlers_of_others_run_while_threads_are_in_a_library() -> None:
    """A handler in C, registered before OpenBLAS is opened and so called after what that adds."""
    done = subprocess.run([sys.executable, "-c", HANDLER], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "called\n", "")
