"""Optimizers step by step against PyTorch's, and their state format both ways."""

import copy
import math
import os
import pickle

import pytest

import taeda
from taeda import nn, optim
from taeda.utils._python_dispatch import TorchDispatchMode

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-4}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"initial_accumulator_value": 0.5}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
]
START = [[1.0, -2.0, 3.0], [0.5, 0.25, -0.125]]
SCALE = [[1.0, 2.0, -1.0], [0.3, 4.0, 1.0]]


def _problem(torch, dtype="float64"):
    """Two parameters and a loss that is not symmetric in them."""
    a = torch.nn.Parameter(torch.tensor(START, dtype=getattr(torch, dtype)))
    b = torch.nn.Parameter(torch.tensor([0.7, -0.3], dtype=getattr(torch, dtype)))
    scale = torch.tensor(SCALE, dtype=getattr(torch, dtype))

    def loss():
        return ((a * scale - 1) ** 2).sum() + (b.sin() * a[:, :2].sum(0)).sum()

    return [a, b], loss


def _steps(optimizer, loss, count):
    for _ in range(count):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_equal_pytorchs(name, options, dtype):
    torch = pytest.importorskip("torch")
    their_params, their_loss = _problem(torch, dtype)
    theirs = getattr(torch.optim, name)(their_params, **options)
    params, loss = _problem(taeda, dtype)
    ours = getattr(optim, name)(params, **options)
    assert repr(ours) == repr(theirs)
    tolerance = 1e-9 if dtype == "float64" else 2e-4
    for _ in range(7):
        _steps(theirs, their_loss, 1)
        _steps(ours, loss, 1)
        for p, e in zip(params, their_params):
            assert p.detach().flatten().tolist() == pytest.approx(
                e.detach().flatten().tolist(), rel=tolerance, abs=tolerance
            )
    actual, expected = ours.state_dict(), theirs.state_dict()
    assert actual["param_groups"] == expected["param_groups"]
    assert actual["state"].keys() == expected["state"].keys()
    for key, entry in expected["state"].items():
        assert actual["state"][key].keys() == entry.keys()
        for field, value in entry.items():
            if value is None:
                assert actual["state"][key][field] is None
                continue
            mine = actual["state"][key][field]
            assert str(mine.dtype) == str(value.dtype)
            assert mine.flatten().tolist() == pytest.approx(
                value.flatten().tolist(), rel=max(tolerance, 1e-6), abs=max(tolerance, 1e-7)
            )


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v))
def test_state_dict_resumes_exactly(name, options):
    params, loss = _problem(taeda)
    first = getattr(optim, name)(params, **options)
    _steps(first, loss, 3)
    saved = copy.deepcopy(first.state_dict())
    middle = [p.detach().clone() for p in params]
    _steps(first, loss, 3)
    again, loss2 = _problem(taeda)
    with taeda.no_grad():
        for p, m in zip(again, middle):
            p.copy_(m)
    second = getattr(optim, name)(again, **options)
    second.load_state_dict(saved)
    _steps(second, loss2, 3)
    for p, e in zip(again, params):
        # Scalar state (mu_product, eta) is loaded in the parameter's type, as in PyTorch.
        assert p.flatten().tolist() == pytest.approx(e.flatten().tolist(), rel=1e-6)


def test_fused_and_plain_steps_agree():
    """The C++ step against the tensor implementation, which is its definition."""
    # Counters on a device, where a default device puts them, are float32.
    tolerance = 1e-9 if os.environ.get("TAEDA_TEST_DEVICE", "cpu") == "cpu" else 1e-6
    for name, options in CASES:
        if name not in ("SGD", "Adam", "AdamW", "RMSprop"):
            continue
        (fused_params, fused_loss), (plain_params, plain_loss) = _problem(taeda), _problem(taeda)
        fused = getattr(optim, name)(fused_params, **options)
        plain = getattr(optim, name)(plain_params, **options, foreach=True)
        for _ in range(4):
            _steps(fused, fused_loss, 1)
            _steps(plain, plain_loss, 1)
        for p, e in zip(fused_params, plain_params):
            assert p.flatten().tolist() == pytest.approx(e.flatten().tolist(), rel=tolerance)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_equals_pytorchs(line_search):
    torch = pytest.importorskip("torch")

    def run(torch):
        x = torch.nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
        lr = 0.001 if line_search is None else 1
        optimizer = torch.optim.LBFGS([x], lr=lr, line_search_fn=line_search)
        trace = []

        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(3):
            trace.append(float(optimizer.step(closure)))
            trace += x.tolist()
        return trace

    assert run(taeda) == pytest.approx(run(torch), rel=1e-6)


def test_minimum_of_a_quadratic():
    """Golden: one SGD step on x^2 from 1 with lr 0.1 gives 0.8; Adam's first step is lr."""
    for make, expected in (
        (lambda p: optim.SGD(p, lr=0.1), 0.8),
        (lambda p: optim.Adam(p, lr=0.1), 0.9),
        (lambda p: optim.RMSprop(p, lr=0.1, alpha=0.75), 0.8),
    ):
        x = nn.Parameter(taeda.tensor([1.0], dtype=taeda.float64))
        optimizer = make([x])
        (x**2).sum().backward()
        optimizer.step()
        assert x.item() == pytest.approx(expected, rel=1e-6)


def test_parameters_without_gradient_are_left_alone():
    a, b = nn.Parameter(taeda.ones(1)), nn.Parameter(taeda.ones(1))
    optimizer = optim.SGD([a, b], lr=1.0, momentum=0.9)
    a.sum().backward()
    optimizer.step()
    assert a.tolist() == [0.0] and b.tolist() == [1.0]
    assert b not in optimizer.state


def test_groups():
    a, b, c = (nn.Parameter(taeda.ones(1)) for _ in range(3))
    optimizer = optim.SGD([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.1)
    optimizer.add_param_group({"params": [c], "lr": 0.25})
    (a + b + c).sum().backward()
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == pytest.approx([0.5, 0.9, 0.75])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [a]})


def test_named_parameters():
    layer = nn.Linear(2, 1)
    optimizer = optim.Adam(layer.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_bad_arguments():
    p = nn.Parameter(taeda.ones(1))
    for make, error, text in (
        (lambda: optim.SGD(p), TypeError, "should be an iterable of Tensors"),
        (lambda: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda: optim.SGD([1]), TypeError, "can only optimize Tensors"),
        (lambda: optim.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": {p}}]), TypeError, "ordered collections"),
        (lambda: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam([p], betas=(1, 0.9)), ValueError, "beta parameter at index 0: 1"),
        (lambda: optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Rprop([p], etas=(1, 2)), ValueError, "Invalid eta values: 1, 2"),
    ):
        with pytest.raises(error, match=text):
            make()


def test_load_state_dict_checks():
    a, b = nn.Parameter(taeda.ones(1)), nn.Parameter(taeda.ones(1))
    two = optim.SGD([a, b], lr=0.1).state_dict()
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.SGD([a], lr=0.1).load_state_dict(two)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1).load_state_dict(two)


def test_hooks():
    p = nn.Parameter(taeda.ones(1))
    optimizer = optim.SGD([p], lr=0.1)
    log = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    optimizer.register_state_dict_post_hook(lambda o, state: log.append("saved"))
    optimizer.register_load_state_dict_pre_hook(lambda o, state: log.append("loading"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert log == ["pre", "post", "pre", "saved", "loading"]


def test_closure_and_zero_grad():
    p = nn.Parameter(taeda.ones(1))
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * 2).sum()
        loss.backward()
        return loss

    with taeda.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert p.item() == pytest.approx(0.8)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_tensor_lr_and_complex_parameters():
    p = nn.Parameter(taeda.ones(1))
    lr = taeda.tensor(0.5)
    optimizer = optim.SGD([p], lr=lr)
    p.sum().backward()
    optimizer.step()
    assert p.item() == 0.5
    torch = pytest.importorskip("torch")

    def run(torch, name):
        z = torch.nn.Parameter(torch.tensor([1 + 2j, -1j], dtype=torch.complex128))
        o = getattr(torch.optim, name)([z], lr=0.1)
        for _ in range(3):
            o.zero_grad()
            (z * z.conj()).real.sum().backward()
            o.step()
        return z.tolist()

    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        assert run(taeda, name) == pytest.approx(run(torch, name), rel=1e-9)


@pytest.mark.parametrize("foreach", [False, True])
def test_adagrad_starts_both_parts_of_complex_sums(foreach):
    generator = taeda.Generator().manual_seed(3)
    z = taeda.randn(5, dtype=taeda.complex64, generator=generator).requires_grad_()
    parts = taeda.view_as_real(z).detach().clone().requires_grad_()
    options = {"lr": 0.1, "initial_accumulator_value": 0.1, "foreach": foreach}
    optimizers = [taeda.optim.Adagrad([p], **options) for p in (z, parts)]
    for _ in range(3):
        z.grad = taeda.randn(5, dtype=taeda.complex64, generator=generator)
        parts.grad = taeda.view_as_real(z.grad)
        for optimizer in optimizers:
            optimizer.step()
        taeda.testing.assert_close(taeda.view_as_real(z), parts)


def test_lbfgs_steps_without_a_gradient():
    p = taeda.ones(3, requires_grad=True)
    optimizer = taeda.optim.LBFGS([p], tolerance_grad=-math.inf)
    assert optimizer.step(lambda: taeda.tensor([10.0])).item() == 10
    assert p.tolist() == [1, 1, 1]


def test_pickle_keeps_the_state():
    p = nn.Parameter(taeda.ones(1))
    optimizer = optim.Adam([p], lr=0.1)
    p.sum().backward()
    optimizer.step()
    twin = pickle.loads(pickle.dumps(optimizer))
    assert twin.param_groups[0]["lr"] == 0.1 and len(twin.state) == 1
    twin.step()


@pytest.mark.parametrize("name, options", CASES, ids=lambda v: str(v))
def test_a_differentiable_step_has_gradients(name, options):
    torch = pytest.importorskip("torch")
    found = []
    for framework in (taeda, torch):
        start = framework.tensor(START, dtype=framework.float64, requires_grad=True)
        gradient = framework.tensor(SCALE, dtype=framework.float64, requires_grad=True)
        p = start.clone()
        optimizer = getattr(framework.optim, name)([p], **options, differentiable=True)
        p.grad = gradient * gradient
        optimizer.step()
        loss = (p * gradient).sum()
        found.append([loss, *framework.autograd.grad(loss, (start, gradient))])
    for ours, theirs in zip(*found):
        # PyTorch computes with the number of steps in float32 here
        assert torch.allclose(torch.tensor(ours.tolist(), dtype=theirs.dtype), theirs, atol=2e-6)


def test_a_learning_rate_has_no_gradients_yet():
    p, lr = taeda.ones(2).clone(), taeda.tensor(0.1, requires_grad=True)
    p.grad = taeda.ones(2)
    with pytest.raises(NotImplementedError, match="gradients of options"):
        optim.SGD([p], lr=lr, differentiable=True).step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_flags_that_exclude_each_other(name):
    torch = pytest.importorskip("torch")
    for framework in (taeda, torch):
        for other in ("foreach", "differentiable"):
            parameter = framework.nn.Parameter(framework.ones(2))
            with pytest.raises(RuntimeError, match=f"`fused`.*`{other}`"):
                getattr(framework.optim, name)([parameter], lr=0.1, fused=True, **{other: True})


class Called(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["NAdam", "RAdam", "Adagrad", "RMSprop"])
def test_what_is_not_recorded_is_written_in_place(name):
    p = nn.Parameter(taeda.tensor([1.0, -2.0]))
    optimizer = getattr(optim, name)([p], lr=0.1, foreach=False)
    for _ in range(7):  # RAdam trusts the second moment from then on
        p.grad = taeda.tensor([0.5, 0.25])
        with Called() as called:
            optimizer.step()
    assert "aten.add_.Tensor" in called.names
    assert "aten.add.Tensor" not in called.names


@pytest.mark.parametrize("recorded", [False, True])
def test_a_step_puts_the_grad_mode_back(recorded):
    p = nn.Parameter(taeda.ones(2))
    p.grad = taeda.ones(2).to_sparse()
    with taeda.set_grad_enabled(recorded):
        with pytest.raises(RuntimeError, match="sparse"):
            optim.NAdam([p]).step()
        assert taeda.is_grad_enabled() is recorded


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam"])
def test_betas_of_a_list_are_kept_as_in_pytorch(kind):
    torch = pytest.importorskip("torch")
    kept = [
        getattr(lib.optim, kind)([lib.ones(2).requires_grad_()], betas=[0.8, 0.9]).defaults["betas"]
        for lib in (taeda, torch)
    ]
    assert kept[0] == kept[1] and type(kept[0]) is type(kept[1])


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_betas_are_both_floats_or_both_tensors(kind):
    parameter = nn.Parameter(taeda.ones(2))
    beta = taeda.tensor(0.9)
    for betas in ((beta, 0.999), (0.9, beta), (0, 0)):
        with pytest.raises(ValueError, match="betas must be either both floats or both Tensors"):
            getattr(optim, kind)([parameter], betas=betas)
    with pytest.raises(ValueError, match="not supported for capturable=False and foreach=True"):
        getattr(optim, kind)([parameter], betas=(beta, beta), foreach=True)
    getattr(optim, kind)([parameter], betas=(beta, beta)).step()


def test_lbfgs_keeps_the_keys_that_pytorch_keeps():
    oracle = pytest.importorskip("torch")
    keys = []
    for library in (taeda, oracle):
        p = library.nn.Parameter(library.tensor([1.0, -2.0]))
        optimizer = library.optim.LBFGS([p], max_iter=4)

        def closure(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (p**4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        state = optimizer.state_dict()["state"][0]
        keys.append([(name, type(value).__name__) for name, value in state.items()])
        assert len(state["al"]) == 100
    assert keys[0] == keys[1]


@pytest.mark.parametrize("kind", ["RAdam", "NAdam", "Adamax"])
def test_betas_of_other_algorithms_may_be_a_number_and_a_tensor(kind):
    torch = pytest.importorskip("torch")
    results = []
    for t in (torch, taeda):
        p = t.nn.Parameter(t.tensor([1.0, -2.0]))
        optimizer = getattr(t.optim, kind)(
            [p], betas=(t.tensor(0.9, device="cpu"), 0.99), foreach=False
        )
        for _ in range(7):
            p.grad = p.detach() * 2
            optimizer.step()
        results.append(p.tolist())
    assert results[1] == pytest.approx(results[0], rel=1e-5)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_parameters_of_a_class_and_under_a_function_mode_step_as_pytorch_does(kind):
    torch = pytest.importorskip("torch")
    results, seen = [], []
    for t in (torch, taeda):

        class Own(t.Tensor):
            pass

        class Watch(t.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(getattr(function, "__name__", ""))
                return function(*args, **(kwargs or {}))

        plain = t.tensor([1.0, -2.0, 3.0], requires_grad=True)
        own = t.tensor([1.0, -2.0, 3.0]).as_subclass(Own).requires_grad_()
        optimizer = getattr(t.optim, kind)([plain, own], lr=0.1)
        for _ in range(2):
            for p in (plain, own):
                p.grad = t.tensor([0.5, 0.25, -1.0])
            optimizer.step()
        plain.grad, own.grad = t.tensor([1.0, 1.0, 1.0]), None
        seen.clear()
        with Watch():
            optimizer.step()
        assert seen
        results.append(plain.tolist() + own.tolist())
    assert results[1] == pytest.approx(results[0], rel=1e-5)
