"""Warnings: given for the calls for which PyTorch gives them, in its category, as often."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import taeda


def backward_hook(torch, **flags):
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *args: None)
    layer(torch.ones(1, 2, **flags)).sum().backward()


def create_graph(torch):
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    x.grad = None


def gradient_of_a_real_part(torch):
    x = torch.ones(2, requires_grad=True)
    x.to(torch.complex64).abs().sum().backward()


def indices(torch, n):
    return torch.empty(n, dtype=torch.int64)


def complex_ones(torch):
    return torch.ones(2, dtype=torch.complex64)


def assign(torch, index, value):
    x = torch.zeros(1).expand(4)
    x[index(torch)] = value


CALLS = {
    "hook without inputs that require grad": backward_hook,
    "hook with inputs that require grad": lambda t: backward_hook(t, requires_grad=True),
    "complex to float": lambda t: complex_ones(t).to(t.float32),
    "complex to int": lambda t: complex_ones(t).int(),
    "complex to bool": lambda t: complex_ones(t).bool(),
    "copy_ of complex": lambda t: t.zeros(2).copy_(complex_ones(t)),
    "the gradient of a conversion": gradient_of_a_real_part,
    "var of one": lambda t: t.var(t.ones(1)),
    "var of none": lambda t: t.ones(0).var(),
    "var over one": lambda t: t.ones(3, 1).var(1),
    "var with correction": lambda t: t.var(t.ones(3, 2), 1, correction=2),
    "var of no rows": lambda t: t.ones(0, 2).var(1),
    "biased var": lambda t: t.ones(1).var(unbiased=False),
    "var of meta": lambda t: t.ones(1, device="meta").var(),
    "std of one": lambda t: t.ones(1).std(),
    "std of two": lambda t: t.ones(2).std(),
    "var_mean": lambda t: t.var_mean(t.ones(1)),
    "std_mean": lambda t: t.std_mean(t.ones(3, 1), dim=1),
    "out resized": lambda t: t.add(t.ones(2, 3), 1, out=t.empty(3)),
    "out of none resized": lambda t: t.add(t.ones(2, 3), 1, out=t.empty(0)),
    "out of a reduction": lambda t: t.sum(t.ones(2, 3), 0, out=t.empty(2)),
    "out of a copy": lambda t: t.cat([t.ones(2), t.ones(2)], out=t.empty(2)),
    "two outs": lambda t: t.sort(t.ones(3), out=(t.empty(2), indices(t, 2))),
    "out of a factory": lambda t: t.zeros(3, out=t.empty(2)),
    "out of random numbers": lambda t: t.randn(3, out=t.empty(2)),
    "create_graph": create_graph,
    "grad with create_graph": lambda t: t.autograd.grad(
        (x := t.ones(1, requires_grad=True)) * x, x, create_graph=True
    ),
    "T of a vector": lambda t: t.ones(2).T,
    "T of a number": lambda t: t.ones(()).T,
    "T of a matrix": lambda t: t.ones(2, 3).T,
    "T of a batch": lambda t: t.ones(2, 3, 4).T,
    "mT of a number": lambda t: t.ones(()).mT,
    "H of a number": lambda t: t.ones(()).H,
    "mH of a number": lambda t: t.ones(()).mH,
    "where with bytes": lambda t: t.where(t.ones(2, dtype=t.uint8), t.ones(2), t.zeros(2)),
    "indexing with bytes": lambda t: t.ones(2)[t.ones(2, dtype=t.uint8)],
    "index_fill_ expanded": lambda t: t.zeros(1).expand(4).index_fill_(0, t.tensor([0]), 1.0),
    "index_put_ expanded": lambda t: t.zeros(1).expand(4).index_put_((t.tensor([0]),), t.ones(1)),
    "assignment expanded": lambda t: assign(t, lambda t: t.tensor([0, 1]), 1.0),
    "float of a tensor that requires grad": lambda t: float(t.ones(1, requires_grad=True)),
    "int of a tensor that requires grad": lambda t: int(t.ones(1, requires_grad=True)),
    "item of a tensor that requires grad": lambda t: t.ones(1, requires_grad=True).item(),
    "float of a tensor": lambda t: float(t.ones(1)),
    "float without history": lambda t: t.no_grad()(lambda x: float(x))(
        t.ones(1, requires_grad=True)
    ),
    "a list of arrays": lambda t: t.tensor([np.ones(2)]),
    "a tuple of arrays": lambda t: t.tensor((np.ones(2),)),
    "lists of lists of arrays": lambda t: t.tensor([[np.ones(2)]]),
    "a list of NumPy's numbers": lambda t: t.tensor([np.float32(1), np.float32(2)]),
    "meshgrid": lambda t: t.meshgrid(t.ones(2), t.ones(3)),
    "meshgrid with indexing": lambda t: t.meshgrid(t.ones(2), t.ones(3), indexing="xy"),
    "cross": lambda t: t.cross(t.ones(3), t.ones(3)),
    "cross with dim": lambda t: t.cross(t.ones(3), t.ones(3), dim=0),
    "qr": lambda t: t.qr(t.eye(2)),
    "linalg.qr": lambda t: t.linalg.qr(t.eye(2)),
    "cholesky": lambda t: t.cholesky(t.eye(2)),
    "triangular_solve": lambda t: t.triangular_solve(t.eye(2), t.eye(2)),
    "add with alpha first": lambda t: t.add(t.ones(2), 2, t.ones(2)),
    "add_ with alpha first": lambda t: t.ones(2).add_(0.5, t.ones(2)),
    "sub_ with alpha first": lambda t: t.ones(2).sub_(0.5, t.ones(2)),
    "addcmul_ with value first": lambda t: t.ones(2).addcmul_(2, t.ones(2), t.ones(2)),
    "addcdiv_ with value first": lambda t: t.ones(2).addcdiv_(-1, t.ones(2), t.ones(2)),
    "range": lambda t: t.range(0, 2),
    "cuda.amp.GradScaler": lambda t: t.cuda.amp.GradScaler(),
    "cuda.amp.autocast": lambda t: t.cuda.amp.autocast(),
    "cuda.amp.autocast, disabled": lambda t: t.cuda.amp.autocast(enabled=False),
    "cuda.amp.custom_fwd": lambda t: t.cuda.amp.custom_fwd(lambda ctx: None),
    "cpu.amp.GradScaler": lambda t: t.cpu.amp.GradScaler(),
    "cpu.amp.autocast": lambda t: t.cpu.amp.autocast(),
}


def given(framework, call):
    framework.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call(framework)
    finally:
        framework.set_warn_always(False)
    return [w.category for w in found]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_warnings_are_pytorchs(call):
    torch = pytest.importorskip("torch")
    assert given(taeda, call) == given(torch, call)


ONCE = """
import warnings, {framework} as torch
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as found:
    for _ in range(3):
        torch.ones(3).T
        torch.ones(2, dtype=torch.complex64).float()
        torch.ones(1).var()
print(len(found))
"""


def test_deprecations_are_told_once_a_process():
    for framework in ("taeda", "torch"):
        if framework == "torch":
            pytest.importorskip("torch")
        code = ONCE.format(framework=framework)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "5", done.stderr


def test_a_warning_may_be_an_exception():
    x = taeda.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="degrees of freedom"):
            x.var()
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert x.var().isnan()


def test_a_warning_names_the_callers_line():
    with pytest.warns(UserWarning, match="degrees of freedom") as found:
        taeda.ones(40000, 1).var(1)  # large: without the GIL
    assert found[0].filename == __file__
