"""GradScaler and limits on gradients on simulated devices: launches for lists, no more waiting than
PyTorch's."""

import numpy as np
import pytest
from tests.device.simulated.test_capturable import waits

import taeda as torch
from taeda import _C
from taeda.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

KERNELS = hasattr(_C, "_cuda_has_kernels")
pytestmark = pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here")
SIZES = [(3,), (5, 7), (), (4097,), (0,)]


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def parameters(count=1, dtype=torch.float32, device="cuda"):
    random = np.random.default_rng(5)
    params = []
    for size in SIZES * count:
        p = torch.zeros(size, dtype=dtype, device=device, requires_grad=True)
        p.grad = torch.tensor(random.normal(0, 1, size)).to(dtype).to(device)
        params.append(p)
    return params


def launches(simulator, work):
    before = simulator.count("launches")
    work()
    return simulator.count("launches") - before


def unscaled(params, scale=4.0):
    scaler = torch.amp.GradScaler("cuda", init_scale=scale)
    scaler.scale(torch.ones((), device="cuda"))
    optimizer = torch.optim.SGD(params, lr=1.0)
    scaler.unscale_(optimizer)
    return scaler, optimizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_unscaling_divides_all_gradients(simulator, dtype):
    few, many = parameters(dtype=dtype), parameters(8, dtype=dtype)
    before = [p.grad.cpu() for p in many]
    unscaled(few)
    count = launches(simulator, lambda: unscaled(few))
    assert launches(simulator, lambda: unscaled(many)) == count < 20
    assert waits(simulator, lambda: unscaled(few)) == [0, 0]
    for p, g in zip(many, before):
        assert p.grad.tolist() == (g * 0.25).tolist()


@pytest.mark.parametrize("wrong", [float("inf"), -float("inf"), float("nan")])
@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_unscaling_finds_what_is_not_finite(where, wrong):
    params = parameters()
    assert [f.item() for f in unscaled(params)[0]._per_optimizer_states.popitem()[1][
        "found_inf_per_device"].values()] == [0.0]  # fmt: skip
    params[where].grad.view(-1)[-1] = wrong
    scaler, optimizer = unscaled(params)
    assert [f.item() for f in scaler._found_inf_per_device(optimizer).values()] == [1.0]
    scaler.step(optimizer)
    assert all((p == 0).all() for p in params)
    scaler.update()
    assert scaler.get_scale() == 2.0


def test_a_step_of_an_optimizer_that_is_not_fused_waits_once(simulator):
    params = parameters()
    scaler, optimizer = unscaled(params)
    scaler.step(optimizer), scaler.update()
    scaler.unscale_(optimizer)
    assert waits(simulator, lambda: scaler.step(optimizer))[0] == 1
    assert waits(simulator, scaler.update) == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_functions_that_libraries_call(simulator, dtype):
    params = parameters(dtype=dtype)
    grads = [p.grad for p in params]
    before = [g.cpu() for g in grads]
    found, inverse = torch.zeros((), device="cuda"), torch.tensor(0.5, device="cuda")
    call = torch._amp_foreach_non_finite_check_and_unscale_
    call([torch.zeros(1, dtype=dtype, device="cuda")], found, inverse)  # loads its kernel
    assert waits(simulator, lambda: call(grads, found, inverse)) == [0, 0]
    assert found.item() == 0
    assert [g.tolist() for g in grads] == [(g * 0.5).tolist() for g in before]
    scale, tracker = torch.tensor(8.0, device="cuda"), torch.tensor(0, device="cuda").int()
    update = torch._amp_update_scale_
    assert waits(simulator, lambda: update(scale, tracker, found, 2.0, 0.5, 2)) == [0, 0]
    assert (scale.item(), tracker.item()) == (8.0, 1)
    update(scale, tracker, found, 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (16.0, 0)
    grads[1][2, 3] = float("nan")
    call(grads, found, inverse)
    assert found.item() == 1
    update(scale, tracker, found, 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (8.0, 0)


def test_unscaling_refuses_what_its_kernel_does_not_take():
    g = [torch.ones(2, device="cuda")]
    there, here = torch.zeros((), device="cuda"), torch.zeros(())
    for found, inverse in ((here, there), (there, here), (there.double(), there), (there, g[0])):
        with pytest.raises(RuntimeError, match="_unscale_: expected float32 tensors of one"):
            torch._unscale_(g, found, inverse)


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf"), 3.0])
def test_limits_on_norms_wait_for_nothing(simulator, norm_type, foreach):
    first, params, reference = (
        [p for p in parameters(device=device) if p.numel()] for device in ("cuda", "cuda", "cpu")
    )
    limit = {"norm_type": norm_type, "foreach": foreach}
    clip_grad_norm_(first, 0.5, **limit)  # loads kernels
    norms = []
    assert waits(
        simulator, lambda: norms.append(clip_grad_norm_(params, 0.5, **limit))
    ) == [0, 0]  # fmt: skip
    expected = clip_grad_norm_(reference, 0.5, norm_type=norm_type)
    np.testing.assert_allclose(norms[0].item(), expected.item(), rtol=1e-5)
    for p, q in zip(params, reference):
        np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-5, atol=1e-7)
    grads = [p.grad for p in params]
    assert waits(simulator, lambda: get_total_norm(grads, **limit)) == [0, 0]


def test_limits_on_values_are_launches_for_lists(simulator):
    params, many = parameters(), parameters(8)
    clip_grad_value_(params, 0.5)
    assert waits(simulator, lambda: clip_grad_value_(params, 0.25)) == [0, 0]
    assert launches(simulator, lambda: clip_grad_value_(many, 0.25)) == 2
    for p, q in zip(params, parameters(device="cpu")):
        assert p.grad.tolist() == q.grad.clamp(-0.25, 0.25).tolist()
    clip_grad_value_(many, 0.125, foreach=False)
    assert max(p.grad.abs().max().item() for p in many if p.numel()) == 0.125


def test_an_error_for_a_norm_that_is_not_finite():
    params = parameters()
    params[1].grad[0, 0] = float("nan")
    with pytest.raises(RuntimeError, match=r"The total norm of order 2.0 .* is non-finite"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_a_whole_step_with_scaler_and_limit_is_captured():
    params, expected = parameters(), parameters(device="cpu")
    optimizer = torch.optim.AdamW(params, lr=0.1, capturable=True, fused=True)
    reference = torch.optim.AdamW(expected, lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0, growth_interval=100)
    scaler.scale(torch.ones((), device="cuda"))

    def step():
        scaler.unscale_(optimizer)
        clip_grad_norm_(params, 0.5)
        scaler.step(optimizer)
        scaler.update()

    start = [p.grad.clone() for p in params]
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        for p, g in zip(params, start):
            p.grad.copy_(g)
        graph.replay()
    for _ in range(3):
        for p, g in zip(expected, start):
            p.grad.copy_(g.cpu() / 4)
        clip_grad_norm_(expected, 0.5)
        reference.step()
    for p, q in zip(params, expected):
        a, b = p.detach().cpu().numpy(), q.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
