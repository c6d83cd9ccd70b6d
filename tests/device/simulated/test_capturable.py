"""Optimizers that a CUDA graph captures, on simulated devices: nothing waits, and replays make
PyTorch's steps."""

import numpy as np
import pytest

import taeda as torch
from taeda import _C

oracle = pytest.importorskip("torch")
KERNELS = hasattr(_C, "_cuda_has_kernels")
pytestmark = [
    pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here"),
    pytest.mark.filterwarnings("ignore:This instance was constructed with capturable=True"),
]
SIZES = [(3,), (5, 7), (), (4, 6), (4097,)]
# Names of classes, options of both, options of those on the device.
ON_DEVICE = {"capturable": True}
KINDS = {
    "adam": ("Adam", {"weight_decay": 0.1}, ON_DEVICE),
    "amsgrad": ("Adam", {"amsgrad": True, "maximize": True}, ON_DEVICE),
    "adamw": ("AdamW", {"weight_decay": 0.1}, ON_DEVICE),
    "nadam": ("NAdam", {"weight_decay": 0.1}, ON_DEVICE),
    "nadamw": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, ON_DEVICE),
    "radam": ("RAdam", {"betas": (0.9, 0.99)}, ON_DEVICE),
    "asgd": ("ASGD", {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}, ON_DEVICE),
    "adamax": ("Adamax", {"weight_decay": 0.1}, ON_DEVICE),
    "rprop": ("Rprop", {"maximize": True}, ON_DEVICE),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}, ON_DEVICE),
    "rmsprop": ("RMSprop", {"centered": True, "momentum": 0.5}, ON_DEVICE),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}, {"fused": True}),
    "sgd": ("SGD", {"momentum": 0.9, "nesterov": True}, {}),
}
LISTS = {"default": {}, "lists": {"foreach": True}, "one by one": {"foreach": False}}


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def waits(simulator, work):
    """How often the host has read of the device, and waited for it."""

    def counts():
        return [_C._host_reads(), simulator.count("synchronizations")]

    before = counts()
    work()
    return [b - a for a, b in zip(before, counts())]


def arrays(seed):
    random = np.random.default_rng(seed)
    return [random.normal(0, 1, size).astype(np.float32) for size in SIZES]


def parameters(lib, device):
    return [lib.tensor(a, device=device).requires_grad_() for a in arrays(0)]


def set_gradients(lib, params, seed):
    """New values where the gradients are, as a graph wants them."""
    for p, a in zip(params, arrays(seed)):
        gradient = lib.tensor(a).to(p.device)
        if p.grad is None:
            p.grad = gradient
        else:
            p.grad.copy_(gradient)


def stepped(kind, steps, **options):
    """The parameters after some steps of PyTorch's on the CPU."""
    name, own, _ = KINDS[kind]
    params = parameters(oracle, "cpu")
    optimizer = getattr(oracle.optim, name)(params, **({"lr": 0.05} | own | options))
    for i in range(steps):
        set_gradients(oracle, params, i + 1)
        optimizer.step()
    return params


def started(kind, **options):
    """Parameters on the device after one step, and the optimizer."""
    name, own, there = KINDS[kind]
    params = parameters(torch, "cuda")
    optimizer = getattr(torch.optim, name)(params, **({"lr": 0.05} | own | there | options))
    set_gradients(torch, params, 1)
    optimizer.step()
    return params, optimizer


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        a, b = a.detach().cpu().numpy(), b.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def options_of(kind, how):
    """What an optimizer takes: those that are fused are so by one kernel."""
    chosen = dict(LISTS[how])
    if KINDS[kind][2].get("fused") and chosen:
        chosen["fused"] = None
    return chosen


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_waits_for_nothing(simulator, kind, how):
    params, optimizer = started(kind, **options_of(kind, how))
    for i in (2, 3):
        set_gradients(torch, params, i)
        assert waits(simulator, optimizer.step) == [0, 0]
    assert_same(params, stepped(kind, 3))


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_repeats_pytorchs_steps(kind, how):
    if KINDS[kind][2].get("fused") and how != "default":
        pytest.skip("counts on the host, so a graph would repeat a number")
    params, optimizer = started(kind, **options_of(kind, how))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    for i in range(2, 9):
        set_gradients(torch, params, i)
        graph.replay()
    assert_same(params, stepped(kind, 8))


TAKE_TENSORS = [k for k in KINDS if k != "rprop"]


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("kind", TAKE_TENSORS)
def test_a_learning_rate_on_the_device_is_read_there(simulator, kind, how):
    lr = torch.tensor(0.05, device="cuda")
    params, optimizer = started(kind, lr=lr, **options_of(kind, how))
    set_gradients(torch, params, 2)
    assert waits(simulator, optimizer.step) == [0, 0]
    assert_same(params, stepped(kind, 2))


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("kind", ["adam", "adamw", "radam", "sgd"])
def test_a_graph_takes_the_learning_rate_of_its_replay(kind, how):
    lr = torch.tensor(0.05, device="cuda")
    params, optimizer = started(kind, lr=lr, **options_of(kind, how))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    name, own, _ = KINDS[kind]
    expected = parameters(oracle, "cpu")
    reference = getattr(oracle.optim, name)(expected, **({"lr": 0.05} | own))
    for i, rate in enumerate((0.05, 0.02, 0.5)):
        set_gradients(oracle, expected, i + 1)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        if i > 0:
            set_gradients(torch, params, i + 1)
            lr.fill_(rate)
            graph.replay()
    assert_same(params, expected)


def test_betas_on_the_device_are_read_there(simulator):
    for how in LISTS.values():
        betas = tuple(torch.tensor(b, device="cuda") for b in (0.9, 0.99))
        params, optimizer = started("adam", betas=betas, **how)
        set_gradients(torch, params, 2)
        assert waits(simulator, optimizer.step) == [0, 0]
        assert_same(params, stepped("adam", 2, betas=(0.9, 0.99)))


@pytest.mark.parametrize("foreach", [None, True])
def test_adafactor_waits_for_nothing(simulator, foreach):
    found = parameters(torch, "cuda")
    optimizer = torch.optim.Adafactor(found, lr=0.05, weight_decay=0.1, foreach=foreach)
    expected = parameters(oracle, "cpu")
    reference = oracle.optim.Adafactor(expected, lr=0.05, weight_decay=0.1)
    for i in range(4):
        set_gradients(torch, found, i + 1)
        set_gradients(oracle, expected, i + 1)
        counts = waits(simulator, optimizer.step)
        assert i == 0 or counts == [0, 0]
        reference.step()
    assert_same(found, expected)
    with pytest.raises(RuntimeError, match=r"instance of Adafactor .* capturable is False"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            optimizer.step()


def launches(simulator, kind, count, **options):
    name, own, _ = KINDS[kind]
    params = [torch.ones(5, device="cuda", requires_grad=True) for _ in range(count)]
    optimizer = getattr(torch.optim, name)(params, **({"lr": 0.05} | own | options))
    for p in params:
        p.grad = torch.full_like(p, 0.5)
    optimizer.step()
    before = simulator.count("launches")
    optimizer.step()
    return simulator.count("launches") - before


@pytest.mark.parametrize("how", ["default", "lists"])
@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_launches_are_for_lists(simulator, kind, capturable, how):
    """As many for forty parameters as for four; one by one, as many for each."""
    options = (KINDS[kind][2] if capturable else {}) | options_of(kind, how)
    few, many = (launches(simulator, kind, n, **options) for n in (4, 40))
    assert few == many < 60
    options |= options_of(kind, "one by one") | {"foreach": False}
    if kind not in ("rmsprop", "sgd", "adam", "adamw", "amsgrad") and not options.get("fused"):
        one, four = (launches(simulator, kind, n, **options) for n in (1, 4))
        assert four >= 3 * one


def test_states_are_where_pytorch_has_them():
    for kind, (_, _, there) in KINDS.items():
        if there != ON_DEVICE:
            continue
        _, optimizer = started(kind)
        name, own, _ = KINDS[kind]
        p = torch.ones(2, requires_grad=True, device="cuda")
        p.grad = torch.ones_like(p)
        counted = getattr(torch.optim, name)([p], **own)
        counted.step()
        on_host = {k for k, v in counted.state[p].items() if not v.is_cuda}
        assert on_host == {"step"} | ({"mu_product"} if name == "NAdam" else set())
        assert all(v.is_cuda for s in optimizer.state.values() for v in s.values())


def test_counters_are_loaded_to_the_device_where_they_are_counted_there():
    source = parameters(torch, "cpu")
    saved = torch.optim.Adam(source, lr=0.05)
    set_gradients(torch, source, 1)
    saved.step()
    params = parameters(torch, "cuda")
    optimizer = torch.optim.Adam(params, lr=0.05, capturable=True)
    state = saved.state_dict()
    state["param_groups"][0]["capturable"] = True
    optimizer.load_state_dict(state)
    assert all(s["step"].is_cuda for s in optimizer.state.values())
    state["param_groups"][0]["capturable"] = False
    optimizer.load_state_dict(state)
    assert not any(s["step"].is_cuda for s in optimizer.state.values())


@pytest.mark.parametrize("kind", [k for k in KINDS if KINDS[k][2] == ON_DEVICE])
def test_what_is_not_on_the_device_is_refused_with_pytorchs_words(kind):
    name, own, _ = KINDS[kind]
    messages = []
    for lib in (torch, oracle):
        p = lib.ones(2, requires_grad=True)
        p.grad = lib.ones(2)
        optimizer = getattr(lib.optim, name)([p], capturable=True, **own)
        with pytest.raises(AssertionError) as error:
            optimizer.step()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_counter_of_the_host_is_refused():
    _, optimizer = started("adam", capturable=False)
    optimizer.param_groups[0]["capturable"] = True
    with pytest.raises(AssertionError, match="params and state_steps must be on supported devices"):
        optimizer.step()


def test_a_step_that_nobody_captures_is_warned_of_once():
    p = torch.ones(2, device="cuda", requires_grad=True)
    p.grad = torch.ones_like(p)
    optimizer = torch.optim.Adam([p], capturable=True)
    with pytest.warns(UserWarning, match="step\\(\\) is running without CUDA graph capture"):
        optimizer.step()
    optimizer.step()  # a second warning would fail the test


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "radam"])
def test_other_types(kind, dtype):
    """Counters are float32 whatever the parameters are."""
    name, own, there = KINDS[kind]
    results = []
    for device, options in (("cuda", there), ("cpu", {})):
        p = torch.tensor([0.5, -1.0, 2.0], dtype=dtype, device=device, requires_grad=True)
        optimizer = getattr(torch.optim, name)([p], **({"lr": 0.05} | own | options))
        for i in range(3):
            p.grad = torch.tensor([0.5, -1.0, 0.25 * i], dtype=dtype, device=device)
            optimizer.step()
        results.append(p.detach().cpu().double().numpy())
    tolerance = 1e-5 if dtype is torch.float64 else 0.03
    np.testing.assert_allclose(*results, rtol=tolerance, atol=tolerance)
