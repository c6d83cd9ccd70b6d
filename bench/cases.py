"""What is measured inside a running process: each case makes a function of no arguments.

The same lines run under taeda and under PyTorch: a case gets the framework's module. NumPy's are
those of numpy_cases.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import kernel_cases
import numpy_cases
import process_cases
from part import Part

Run = Callable[[], Any]
CASES: dict[str, dict[str, Callable[[Any], Run]]] = {
    "tiny": {},
    "transforms": {},
    "kernels": kernel_cases.KERNELS,
    "processes": process_cases.PROCESSES,
}


def case(suite: str, name: str) -> Callable[[Callable[[Any], Run]], Callable[[Any], Run]]:
    def add(function: Callable[[Any], Run]) -> Callable[[Any], Run]:
        CASES[suite][name] = function
        return function

    return add


def make(suite: str, name: str, framework: str) -> tuple[Run, float]:
    """What a case calls, and how many such calls are the whole case: one, but in the suite `part`,
    kernels on a part of their data."""
    if framework == "numpy":
        return numpy_cases.CASES[name](), 1.0
    torch = importlib.import_module(framework)
    torch.manual_seed(0)
    if suite != "part":
        return CASES[suite][name](torch), 1.0
    part = Part(torch)
    return kernel_cases.KERNELS[name](part), part.times


def frameworks(suite: str, name: str) -> list[str]:
    """Those that a case is measured in."""
    numpy = ["numpy"] if suite == "kernels" and name in numpy_cases.CASES else []
    return ["taeda", "torch", *numpy]


# --- tiny tensors: what the language on top costs ----------------------------------------------


def tiny(torch: Any) -> tuple[Any, Any]:
    return torch.ones(2, 2), torch.ones(2, 2)


@case("tiny", "a + b")
def add(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: a + b


@case("tiny", "a * 2.0")
def mul_number(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a * 2.0


@case("tiny", "a.view(-1)")
def view(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.view(-1)


@case("tiny", "a[0]")
def index(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a[0]


@case("tiny", "a.add_(b)")
def add_(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: a.add_(b)


@case("tiny", "relu(a)")
def relu(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: torch.relu(a)


@case("tiny", "a.sum()")
def sum_(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.sum()


@case("tiny", "zeros(2)")
def zeros(torch: Any) -> Run:
    return lambda: torch.zeros(2)


@case("tiny", "a @ b")
def matmul(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: a @ b


@case("tiny", "(w * x).sum().backward()")
def backward(torch: Any) -> Run:
    x = torch.ones(2, 2)
    w = torch.ones(2, 2, requires_grad=True)
    return lambda: (w * x).sum().backward()


@case("tiny", "a.item()")
def item(torch: Any) -> Run:
    a = torch.ones(())
    return lambda: a.item()


@case("tiny", "cat([a, b])")
def cat(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: torch.cat([a, b])


@case("tiny", "stack([a, b])")
def stack(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: torch.stack([a, b])


@case("tiny", "tensor([1., 2.])")
def tensor(torch: Any) -> Run:
    return lambda: torch.tensor([1.0, 2.0])


@case("tiny", "randn(2, 2)")
def randn_tiny(torch: Any) -> Run:
    return lambda: torch.randn(2, 2)


@case("tiny", "empty_like(a)")
def empty_like(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: torch.empty_like(a)


@case("tiny", "a.reshape(4)")
def reshape(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.reshape(4)


@case("tiny", "a.t()")
def transpose(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.t()


@case("tiny", "a[:, 0]")
def slice_(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a[:, 0]


@case("tiny", "a[i]")
def index_tensor(torch: Any) -> Run:
    a, _ = tiny(torch)
    i = torch.tensor([0, 1])
    return lambda: a[i]


@case("tiny", "a[0] = 1.0")
def assign(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.__setitem__(0, 1.0)


@case("tiny", "a > b")
def greater(torch: Any) -> Run:
    a, b = tiny(torch)
    return lambda: a > b


@case("tiny", "a.mean(1)")
def mean(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.mean(1)


@case("tiny", "a.max(1)")
def max_(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.max(1)


@case("tiny", "a.clone()")
def clone(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.clone()


@case("tiny", "a.double()")
def double(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: a.double()


@case("tiny", "softmax(a, 1)")
def softmax_tiny(torch: Any) -> Run:
    a, _ = tiny(torch)
    return lambda: torch.softmax(a, 1)


@case("tiny", "w + b, with gradient")
def add_gradient(torch: Any) -> Run:
    a, b = tiny(torch)
    a.requires_grad_()
    return lambda: a + b


@case("tiny", "Linear(4, 4)(x)")
def linear(torch: Any) -> Run:
    nn = importlib.import_module(f"{torch.__name__}.nn")
    layer, x = nn.Linear(4, 4), torch.ones(2, 4)
    return lambda: layer(x)


@case("tiny", "LSTMCell(4, 4)(x, state)")
def lstm_cell(torch: Any) -> Run:
    nn = importlib.import_module(f"{torch.__name__}.nn")
    layer, x, state = nn.LSTMCell(4, 4), torch.ones(2, 4), (torch.ones(2, 4), torch.ones(2, 4))
    return lambda: layer(x, state)


@case("tiny", "ten operators, forward and backward")
def ten_operators(torch: Any) -> Run:
    x = torch.ones(2, 2)
    w = torch.ones(2, 2, requires_grad=True)

    def run() -> None:
        y = w
        for _ in range(3):
            y = torch.tanh(y * x + x)
        y.sum().backward()

    return run


def mlp_step(torch: Any, optimizer: Callable[[Any, Any], Any]) -> Run:
    nn = importlib.import_module(f"{torch.__name__}.nn")
    optim = importlib.import_module(f"{torch.__name__}.optim")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    opt = optimizer(optim, model.parameters())
    x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
    loss_function = nn.CrossEntropyLoss()

    def step() -> None:
        loss = loss_function(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

    return step


@case("tiny", "MLP training step, SGD")
def mlp_sgd(torch: Any) -> Run:
    return mlp_step(torch, lambda optim, parameters: optim.SGD(parameters, lr=0.01))


@case("tiny", "MLP training step, Adam")
def mlp_adam(torch: Any) -> Run:
    return mlp_step(torch, lambda optim, parameters: optim.Adam(parameters, lr=0.001))


# --- transforms: 1,000 samples of a small MLP ----------------------------------------------------


def samples_of_mlp(torch: Any) -> tuple[Any, dict[str, Any], Any, Any]:
    """A model, its parameters without history, samples and their labels."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    params = {name: p.detach() for name, p in model.named_parameters()}
    return model, params, torch.randn(1000, 32), torch.randint(0, 10, (1000,))


@case("transforms", "vmap of an MLP, 1,000 samples")
def vmap_mlp(torch: Any) -> Run:
    model, params, x, _ = samples_of_mlp(torch)
    scores = lambda x: torch.func.functional_call(model, params, (x,))  # noqa: E731
    return lambda: torch.vmap(scores)(x)


@case("transforms", "gradients of 1,000 samples of an MLP")
def per_sample_gradients(torch: Any) -> Run:
    model, params, x, labels = samples_of_mlp(torch)

    def loss(params: dict[str, Any], x: Any, label: Any) -> Any:
        scores = torch.func.functional_call(model, params, (x,))
        return torch.nn.functional.cross_entropy(scores, label)

    return lambda: torch.vmap(torch.func.grad(loss), (None, 0, 0))(params, x, labels)


@case("transforms", "Jacobian of an MLP by its input, 64 x 10 x 32")
def jacobians(torch: Any) -> Run:
    model, params, x, _ = samples_of_mlp(torch)
    scores = lambda x: torch.func.functional_call(model, params, (x,))  # noqa: E731
    return lambda: torch.vmap(torch.func.jacrev(scores))(x[:64])
