"""Backward passes run a node on the stream of its forward and wait where streams meet."""

import pytest

import taeda as torch

pytestmark = pytest.mark.usefixtures("quiet_fallback")


class AddOnDevice(torch.autograd.Function):
    """x + 1, and in backward the gradient + 1, by kernels that run late on the current stream."""

    simulator = None

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return AddOnDevice.added(x)

    @staticmethod
    def backward(ctx, gy):
        ctx.seen.append(torch.cuda.current_stream(gy.device))
        return AddOnDevice.added(gy), None

    @staticmethod
    def added(x):
        y = x.clone()
        status = AddOnDevice.simulator.add(
            torch.cuda.current_stream(y.device), y.data_ptr(), y.numel()
        )
        assert status == 0
        return y


@pytest.fixture
def add(simulator):
    AddOnDevice.simulator = simulator
    return AddOnDevice.apply


def test_node_runs_on_the_stream_of_its_forward(add):
    x = torch.ones(100, device="cuda", requires_grad=True)
    side, seen = torch.cuda.Stream(), []
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = add(x, seen).sum()
    loss.backward()
    assert seen == [side]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert x.grad.tolist() == [2.0] * 100


@pytest.mark.parametrize("schedule", range(6))
def test_what_backward_leaves_is_ordered_with_the_callers_stream(add, simulator, schedule):
    simulator.schedule(schedule)
    x = torch.ones(100, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = add(x, [])
    torch.cuda.current_stream().wait_stream(side)
    # Backward's kernel on the side stream still runs, or waits, when the next one is queued here.
    (gx,) = torch.autograd.grad(y, x, torch.ones(100, device="cuda"))
    assert simulator.add(torch.cuda.current_stream(), gx.data_ptr(), 100) == 0
    assert gx.tolist() == [3.0] * 100
    simulator.schedule(0)


@pytest.mark.parametrize("schedule", range(6))
def test_gradients_of_several_streams_meet(add, simulator, schedule):
    simulator.schedule(schedule)
    x = torch.ones(100, device="cuda", requires_grad=True)
    streams = [torch.cuda.Stream() for _ in range(3)]
    branches = []
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            branches.append(add(add(x, []), []))
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    sum(branches).sum().backward()
    assert x.grad.tolist() == [9.0] * 100
    simulator.schedule(0)


def test_devices(add):
    x = torch.ones(10, device="cuda:1", requires_grad=True)
    seen = []
    y = add(x.to("cuda:0"), seen)
    y.backward(torch.ones(10, device="cuda:0"))
    assert seen == [torch.cuda.default_stream(0)]
    assert x.grad.device == torch.device("cuda", 1)
    assert x.grad.tolist() == [2.0] * 10
    assert torch.cuda.current_device() == 0


NUMBERS = {
    "mul": lambda x, v: x * v,
    "rsub": lambda x, v: v - x,
    "pow": lambda x, v: x**v,
    "lerp": lambda x, v: x.lerp(x * 2, v),
    "where": lambda x, v: torch.where(x > 1, v, x),
    "masked_fill": lambda x, v: x.masked_fill(x > 1, v),
    "fill_": lambda x, v: x.clone().fill_(v),
    "x[mask]": lambda x, v: torch.Tensor.index_put(x, (x > 1,), v),
    "x[indices]": lambda x, v: torch.Tensor.index_put(x, (torch.tensor([2, 0]),), v),
}


@pytest.mark.parametrize("call", NUMBERS.values(), ids=NUMBERS)
def test_a_number_of_the_host_gets_its_gradient_there(call):
    expected, found = [], []
    for device, gradients in (("cpu", expected), ("cuda", found)):
        x = torch.arange(1.0, 5.0, device=device, requires_grad=True)
        v = torch.tensor(1.5, requires_grad=True)
        call(x, v).square().sum().backward()
        assert v.grad.device.type == "cpu" and x.grad.device.type == device
        gradients += [v.grad, x.grad.cpu()]
    torch.testing.assert_close(found, expected)


def test_gradients_of_other_tensors_stay_on_their_device():
    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gy):
            return gy.cpu()

    x = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0"):
        Elsewhere.apply(x).sum().backward()
