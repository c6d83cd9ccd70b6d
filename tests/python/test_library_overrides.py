"""Kernels that a program gives to operators of the table, compared with PyTorch's."""

import gc
import threading
import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def forty_two(t):
    return lambda a, b, alpha=1: t.full((2,), 42.0)


CALLS = {
    "torch.add": lambda t, x, g: t.add(x, x),
    "+": lambda t, x, g: x + x,
    "+ of a number": lambda t, x, g: x + 1,
    "by overload": lambda t, x, g: t.ops.aten.add.Tensor(x, x),
    "by packet": lambda t, x, g: t.ops.aten.add(x, x),
    "in place": lambda t, x, g: x.clone().add_(x),
    "out=": lambda t, x, g: t.add(x, x, out=t.empty(2)),
    "with gradient": lambda t, x, g: g + g,
    "without gradient": lambda t, x, g: without_gradient(t, lambda: g + g),
    "meta": lambda t, x, g: t.empty(2, device="meta") + 1,
    "vmap": lambda t, x, g: t.vmap(lambda v: v + v)(x),
    "autocast": lambda t, x, g: autocast(t, lambda: x + x),
    "inside of another": lambda t, x, g: t.nn.functional.linear(x, t.eye(2)) + x,
}
KEYS = [
    "CPU",
    "Meta",
    "CUDA",
    "Autograd",
    "Functionalize",
    "Tracer",
    "AutocastCPU",
    "FuncTorchBatched",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
]


def without_gradient(t, call):
    with t.no_grad():
        return call()


def autocast(t, call):
    with t.autocast("cpu", dtype=t.bfloat16):
        return call()


def described(result):
    values = "meta" if result.device.type == "meta" else result.tolist()
    return values, tuple(result.shape), str(result.dtype).split(".")[-1], result.requires_grad


def outcome(t, call):
    x = t.tensor([1.0, 2.0])
    return described(CALLS[call](t, x, x.clone().requires_grad_()))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", KEYS)
def test_a_kernel_answers_where_pytorchs_does(key, call):
    results = []
    for t in (taeda, torch):
        before = outcome(t, call)
        library = t.library.Library("aten", "IMPL")
        try:
            library.impl("add.Tensor", forty_two(t), key)
            results.append(outcome(t, call))
        finally:
            library._destroy()
        assert outcome(t, call) == before
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("name", "kernel", "call"),
    [
        ("relu", lambda t: lambda x: x * 0 - 1, lambda t, x: x.relu()),
        ("relu", lambda t: lambda x: x * 0 - 1, lambda t, x: t.nn.functional.relu(x)),
        ("relu_", lambda t: lambda x: x.fill_(5.0), lambda t, x: x.clone().relu_()),
        ("relu_", lambda t: lambda x: x.fill_(5.0), lambda t, x: x.relu()),
        ("add.out", lambda t: lambda a, b, alpha=1, out=None: out.fill_(3.0),
         lambda t, x: t.add(x, x, out=t.empty(2))),
        ("add.out", lambda t: lambda a, b, alpha=1, out=None: out.fill_(3.0), lambda t, x: x + x),
        ("gt.Scalar", lambda t: lambda a, b: a < b, lambda t, x: x > 1),
        ("gt.Scalar", lambda t: lambda a, b: a < b, lambda t, x: x > x),
        ("gt.Tensor", lambda t: lambda a, b: a < 9, lambda t, x: x > 1),
        ("gt.Tensor", lambda t: lambda a, b: a < 9, lambda t, x: x > x),
        ("pow.Tensor_Scalar", lambda t: lambda a, b: a + b, lambda t, x: x**2),
        ("mm", lambda t: lambda a, b: a.new_ones(1, 1), lambda t, x: x.view(1, 2) @ x.view(2, 1)),
        ("mean.dim", lambda t: lambda a, d, keepdim=False, dtype=None: a.sum(d),
         lambda t, x: x.mean(0)),
        ("t", lambda t: lambda x: x.clone(), lambda t, x: x.view(1, 2).t()),
        ("transpose.int", lambda t: lambda x, a, b: x.clone(),
         lambda t, x: x.view(1, 2).transpose(0, 1)),
    ],
)  # fmt: skip
def test_forms_and_overloads_have_kernels_of_their_own(name, kernel, call):
    results = []
    for t in (taeda, torch):
        x = t.tensor([1.0, 2.0])
        library = t.library.Library("aten", "IMPL")
        try:
            library.impl(name, kernel(t), "CPU")
            results.append(call(t, x).tolist())
        finally:
            library._destroy()
    assert results[0] == results[1]


def test_a_gradient_passes_through_a_kernel_for_a_device():
    def run(t):
        library = t.library.Library("aten", "IMPL")
        library.impl("sin", lambda x: x * 10, "CPU")
        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = x.sin()
        y.sum().backward()
        library._destroy()
        return y.tolist(), x.grad.tolist()

    (ours, our_grad), (theirs, their_grad) = run(taeda), run(torch)
    assert ours == theirs == [10.0, 20.0]
    assert our_grad == pytest.approx(their_grad)


def test_kernels_end_with_their_library():
    x = taeda.tensor([1.0])
    library = taeda.library.Library("aten", "IMPL")
    library.impl("neg", lambda t: t + 7, "CPU")
    assert (-x).item() == 8
    del library
    gc.collect()
    assert (-x).item() == -1


def test_the_newest_kernel_answers_and_gives_back_the_one_before():
    x = taeda.tensor([1.0])
    first, second = (taeda.library.Library("aten", "IMPL") for _ in range(2))
    first.impl("neg", lambda t: t + 1, "CPU")
    with pytest.raises(RuntimeError, match="already a kernel registered from python"):
        second.impl("neg", lambda t: t + 2, "CPU", allow_override=False)
    second.impl("neg", lambda t: t + 2, "CPU")
    assert (-x).item() == 3
    second._destroy()
    assert (-x).item() == 2
    first._destroy()
    assert (-x).item() == -1
    third = taeda.library.Library("aten", "IMPL")
    third.impl("neg", lambda t: t + 2, "CPU", allow_override=False)
    assert (-x).item() == 3
    third._destroy()


def test_a_kernel_answers_on_every_thread():
    library = taeda.library.Library("aten", "IMPL")
    library.impl("neg", lambda t: t + 1, "CPU")
    found = []
    thread = threading.Thread(target=lambda: found.append((-taeda.ones(1)).item()))
    thread.start()
    thread.join()
    library._destroy()
    assert found == [2.0]


def test_errors_of_a_kernel_are_the_programs():
    library = taeda.library.Library("aten", "IMPL")

    def kernel(t):
        raise KeyError("mine")

    library.impl("neg", kernel, "CPU")
    with pytest.raises(KeyError, match="mine"):
        -taeda.ones(1)
    library.impl("neg", lambda t: "text", "CPU")
    with pytest.raises(RuntimeError, match="the kernel of aten::neg returned str"):
        -taeda.ones(1)
    library._destroy()


def test_a_warning_tells_of_the_first_replaced_kernel(monkeypatch):
    monkeypatch.setattr(taeda.library, "_warned", False)
    library = taeda.library.Library("aten", "IMPL")
    with pytest.warns(UserWarning, match="Overriding a previously registered kernel"):
        library.impl("neg", lambda t: t, "CPU")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        library.impl("abs", lambda t: t, "CPU")
    library._destroy()


def test_what_cannot_be_replaced_says_so():
    library = taeda.library.Library("aten", "IMPL")
    with pytest.raises(NotImplementedError, match="calls do not pass this overload but aten::add"):
        library.impl("add.Scalar", lambda a, b, alpha=1: a, "CPU")
    with pytest.raises(RuntimeError, match="We should not register a meta kernel directly"):
        library.impl("matmul", lambda a, b: a, "Meta")
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        library.impl("neg", lambda a: a, "Nonsense")
    with pytest.raises(RuntimeError, match="does not exist"):
        library.impl("no_such_operator", lambda a: a, "CPU")
    library._destroy()


# --- what a mode is shown: an override of it answers, or is refused ---

SHOWN = {
    "softmax": lambda t, x: x.softmax(1),
    "log_softmax": lambda t, x: x.log_softmax(0),
    "x ** 2": lambda t, x: x.square(),
    "selu": lambda t, x: t.nn.functional.selu(x),
    "logsigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "linear": lambda t, x: t.nn.functional.linear(x, t.ones(2, 3)),
    "linear with a bias": lambda t, x: t.nn.functional.linear(x, t.ones(2, 3), t.ones(2)),
    "where": lambda t, x: t.where(x > 0, x, -x),
    "clamp": lambda t, x: t.ops.aten.clamp(x, 0.0, 1.0),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1), mode="reflect"),
    "norm": lambda t, x: t.linalg.vector_norm(x, dim=1),
    "var": lambda t, x: x.var(1),
    "svd": lambda t, x: t.linalg.svdvals(x),
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x.view(1, 1, 2, 3), 2),
    "1 - x": lambda t, x: 1 - x,
}


class Seen(taeda.utils._python_dispatch.TorchDispatchMode):
    """Notes the operators that it is shown."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


class Answered(Exception):
    pass


@pytest.mark.parametrize("name", SHOWN)
def test_a_kernel_answers_what_a_mode_is_shown_or_is_refused(name):
    x = taeda.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
    with Seen() as seen:
        SHOWN[name](taeda, x)
    assert seen.ops

    def kernel(*args, **kwargs):
        raise Answered

    for op in seen.ops:
        library = taeda.library.Library("aten", "IMPL")
        try:
            library.impl(op.name().removeprefix("aten::"), kernel, "CPU")
        except NotImplementedError:
            continue
        else:
            with pytest.raises(Answered):
                SHOWN[name](taeda, x)
        finally:
            library._destroy()
        SHOWN[name](taeda, x)


@pytest.mark.parametrize("key", ["CPU", "Autograd"])
def test_a_kernel_of_a_shown_operator_gives_the_results(key):
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    g = x.clone().requires_grad_()
    library = taeda.library.Library("aten", "IMPL")
    try:
        library.impl("_softmax", lambda x, dim, half: x * 0 + dim + 7, key)
        library.impl("mm", lambda a, b: (a * 0).sum() + a.new_full((2, 5), 3.0), key)
        assert x.softmax(1).tolist() == [[8.0, 8.0], [8.0, 8.0]]
        assert taeda.nn.functional.linear(x, taeda.ones(5, 2)).tolist() == [[3.0] * 5] * 2
        results = g.softmax(1)
        assert results.tolist() == [[8.0, 8.0], [8.0, 8.0]] and results.requires_grad
        threads = []
        thread = threading.Thread(target=lambda: threads.append(x.softmax(0).tolist()))
        thread.start()
        thread.join()
        assert threads == [[[7.0, 7.0], [7.0, 7.0]]]
    finally:
        library._destroy()
    assert x.softmax(1).sum().item() == pytest.approx(2.0)


def test_a_kernel_that_no_call_would_reach_is_refused():
    library = taeda.library.Library("aten", "IMPL")
    try:
        for name, key in (("_softmax", "AutocastCPU"), ("where.self", "FuncTorchBatched")):
            with pytest.raises(NotImplementedError, match=key):
                library.impl(name, lambda *args: args[0], key)
        for name in ("addmv_", "matmul.out"):
            with pytest.raises(NotImplementedError, match=r"whose result is copied"):
                library.impl(name, lambda *args: args[0], "CPU")
    finally:
        library._destroy()
