"""Fused steps of optimizers on simulated devices: the CPU's results, some launches, no waiting."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import TOLERANCE

import taeda as torch
from taeda import _C

KERNELS = hasattr(_C, "_cuda_has_kernels")
pytestmark = pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here")
SIZES = [(3,), (5, 7), (), (70, 129), (0,), (4096,), (4097,)]
KINDS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": (torch.optim.Adam, {"weight_decay": 0.1}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "rmsprop": (torch.optim.RMSprop, {"weight_decay": 0.1}),
    "centered": (torch.optim.RMSprop, {"centered": True, "momentum": 0.5}),
}


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def parameters(sizes, dtype, device, seed=0):
    random = np.random.default_rng(seed)
    values = [torch.tensor(random.normal(0, 1, s)) for s in sizes]
    return [v.to(dtype).to(device).requires_grad_() for v in values]


def trained(kind, dtype, device, sizes=SIZES, steps=3, **options):
    cls, own = KINDS[kind]
    params = parameters(sizes, dtype, device)
    optimizer = cls(params, lr=0.05, **own, **options)
    for i in range(steps):
        for p, g in zip(params, parameters(sizes, dtype, device, i + 1)):
            p.grad = g.detach()
        optimizer.step()
    return params, optimizer


def assert_same(found, expected, dtype):
    rtol, atol = TOLERANCE[str(dtype).removeprefix("torch.")]
    for a, b in zip(found, expected, strict=True):
        a, b = (t.detach().cpu().double().numpy() for t in (a, b))
        np.testing.assert_allclose(a, b, rtol=4 * rtol, atol=4 * atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_the_cpus(kind, dtype):
    found, optimizer = trained(kind, dtype, "cuda")
    expected, reference = trained(kind, dtype, "cpu")
    assert_same(found, expected, dtype)
    for a, b in zip(optimizer.state.values(), reference.state.values()):
        assert a.keys() == b.keys()
        assert_same(a.values(), b.values(), dtype)


def test_many_tensors_take_few_launches(simulator):
    sizes = [(i % 7 + 1,) for i in range(200)]
    params = parameters(sizes, torch.float32, "cuda")
    optimizer = torch.optim.Adam(params, lr=0.1)
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    before = simulator.count("launches")
    optimizer.step()
    assert simulator.count("launches") - before == 4
    expected, _ = trained("sgd", torch.float32, "cpu", sizes)
    assert_same(trained("sgd", torch.float32, "cuda", sizes)[0], expected, torch.float32)


def test_tensors_at_odd_addresses_and_in_other_layouts():
    memory = torch.zeros(100, device="cuda")
    for p in (memory[1:20], memory[32:56].view(4, 6).t(), memory[60:90:3]):
        g = torch.arange(1.0, p.numel() + 1, device="cuda").reshape(p.shape)
        torch._fused_sgd_(
            [p], [g], [], weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0, nesterov=False,
            maximize=False, is_first_step=False,
        )  # fmt: skip
        assert p.tolist() == (-0.5 * g).tolist()
    assert memory[0].item() == memory[20].item() == memory[61].item() == 0


def reads(work):
    before = _C._host_reads()
    work()
    return _C._host_reads() - before


@pytest.mark.parametrize("kind", ["adam", "adamw", "momentum"])
def test_a_step_with_a_scaler_waits_for_nothing(kind):
    _, optimizer = trained(kind, torch.float32, "cuda", fused=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    scaler.scale(torch.ones((), device="cuda"))

    def step():
        scaler.step(optimizer)
        scaler.update()

    assert reads(step) == 0
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam", "amsgrad", "adamw"])
def test_an_overflow_skips_the_step_on_the_device(kind):
    params, optimizer = trained(kind, torch.float32, "cuda", fused=True)
    before = [p.tolist() for p in params]
    counts = [s["step"].item() for s in optimizer.state.values() if "step" in s]
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0, growth_interval=2)
    for wrong, scale in ((True, 2.0), (False, 2.0), (False, 4.0), (True, 2.0)):
        scaler.scale(torch.ones((), device="cuda"))
        params[3].grad.fill_(1.0)
        if wrong:
            params[3].grad[5, 7] = float("inf")
        kept = [p.tolist() for p in params]
        scaler.step(optimizer)
        scaler.update()
        assert ([p.tolist() for p in params] == kept) == wrong
        assert scaler.get_scale() == scale
    assert [p.tolist() for p in params] != before
    steps = [s["step"].item() for s in optimizer.state.values() if "step" in s]
    assert steps == [n + 2 for n in counts]


BETAS = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": True}
FORMS = {  # function -> number of states of a parameter's shape, options
    "adam": (3, BETAS),
    "adamw": (3, BETAS),
    "adagrad": (1, {"lr_decay": 0.1, "eps": 1e-8}),
    "sgd": (1, {"momentum": 0.9, "dampening": 0.0, "nesterov": True}),
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_function_forms_leave_a_flag_of_the_device_there(simulator, form, first):
    """An overflow changes nothing, and later steps are the CPU's; nobody waits."""
    count, own = FORMS[form]
    function = getattr(torch.optim._functional, form)
    options = {"lr": 0.05, "weight_decay": 0.1, "maximize": False, "fused": True, **own}

    def stepped(device, flags):
        params = [p.detach() for p in parameters([(3,), (5, 7)], torch.float64, device)]
        steps = [torch.zeros((), device=device) for _ in params]
        states = [[torch.zeros_like(p) for p in params] for _ in range(count)]
        states = [[None, None]] if form == "sgd" else [*states, steps]
        scale = torch.tensor(4.0, device=device)
        for i, flag in enumerate(flags):
            grads = [4 * g.detach() for g in parameters([(3,), (5, 7)], torch.float64, device, i)]
            if flag:
                grads[0][0] = float("inf")
            flag = torch.tensor(float(flag), device=device)
            given = [g.clone() for g in grads]
            before = [_C._host_reads(), simulator.count("synchronizations")]
            function(params, grads, *states, grad_scale=scale, found_inf=flag, **options)
            waits = [_C._host_reads(), simulator.count("synchronizations")] != before
            assert not waits or device == "cpu" or i == 0  # which loads kernels
            if flag:
                assert all((a == b).all() for a, b in zip(grads, given))
        return [*params, *(x for row in states for x in row if x is not None)]

    flags = [1, 0, 0, 1, 0] if first else [0, 1, 0]
    found, expected = stepped("cuda", flags), stepped("cpu", flags)
    for a, b in zip(found, expected, strict=True):  # counters of the device are float32
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-5, atol=1e-8)


def test_gradients_are_divided_by_a_scale_of_the_device():
    p, g = torch.ones(5, device="cuda"), torch.full((5,), 8.0, device="cuda")
    options = {
        "weight_decay": 0.0, "momentum": 0.0, "lr": 1.0, "dampening": 0.0, "nesterov": False,
        "maximize": False, "is_first_step": False,
    }  # fmt: skip
    scale = torch.full((), 4.0, device="cuda", dtype=torch.float64)

    def step():
        assert torch._fused_sgd_([p], [g], [], grad_scale=scale, **options)

    assert reads(step) == 0
    assert p.tolist() == [-1.0] * 5
    assert torch._fused_sgd_([p], [g], [], grad_scale=torch.tensor(8.0), **options)
    assert p.tolist() == [-2.0] * 5
    assert not torch._fused_sgd_([p], [g], [], found_inf=torch.tensor(1.0), **options)


def test_counters_of_the_device_and_of_the_host():
    steps = [torch.tensor(float(i), device="cuda") for i in range(300)]
    steps.append(torch.tensor(7.0, device="cuda", dtype=torch.float64))
    assert torch._add_one_(steps)
    assert [s.item() for s in steps] == [*range(1, 301), 8]
    torch._add_one_(steps[:2], found_inf=torch.ones((), device="cuda"))
    assert steps[0].item() == 1
    with pytest.raises(RuntimeError, match="one-element tensors of one device"):
        torch._add_one_([steps[0], torch.tensor(1.0)])
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch._add_one_([torch.tensor(1, device="cuda")])


def test_a_whole_step_can_be_captured():
    params, optimizer = trained("adamw", torch.float32, "cuda", fused=True)
    reference, other = trained("adamw", torch.float32, "cuda", fused=True)
    for a, b in zip(params, reference):
        b.grad = a.grad.clone()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    for _ in range(3):
        graph.replay()
        other.step()
    assert_same(params, reference, torch.float32)


def test_a_step_that_counts_on_the_host_is_not_captured():
    params, optimizer = trained("adamw", torch.float32, "cuda")
    before = [p.tolist() for p in params]
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"instance of AdamW .* capturable is False"):
        with torch.cuda.graph(graph):
            optimizer.step()
    assert [p.tolist() for p in params] == before


def test_fused_steps_take_parameters_of_one_device():
    p, q = torch.ones(2, device="cuda"), torch.ones(2)
    options = dict(weight_decay=0.0, momentum=0.0, lr=1.0, dampening=0.0, nesterov=False)
    with pytest.raises(RuntimeError, match="parameters of one device, got cuda:0 and cpu"):
        torch._fused_sgd_([p, q], [p, q], [], maximize=False, is_first_step=False, **options)
