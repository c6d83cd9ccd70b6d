"""Tensors on devices: where they are made, how they move, and whose their memory is."""

import numpy as np
import pytest

import taeda as torch

pytestmark = pytest.mark.usefixtures("quiet_fallback")


def test_made_on_the_current_device():
    x = torch.ones(3, device="cuda")
    assert x.device == torch.device("cuda", 0)
    assert x.is_cuda
    with torch.cuda.device(1):
        y = torch.empty(2, device="cuda")
    assert y.get_device() == 1
    with torch.cuda.device_of(y):
        assert torch.cuda.current_device() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(3, device="cuda:2")


@pytest.mark.parametrize("schedule", range(6))
def test_there_and_back(simulator, schedule):
    simulator.schedule(schedule)
    values = np.random.default_rng(schedule).standard_normal((50, 40)).astype(np.float32)
    x = torch.from_numpy(values)
    y = x.cuda()
    z = y.to("cuda:1").T.contiguous().to("cuda:0").cpu()
    np.testing.assert_array_equal(z.numpy(), values.T)
    np.testing.assert_array_equal(y.cpu().numpy(), values)
    simulator.schedule(0)


def test_cuda_takes_a_device():
    x = torch.ones(2)
    assert x.cuda(1).device == torch.device("cuda", 1)
    assert x.cuda("cuda:1").cuda().device == torch.device("cuda", 0)  # the current one
    with pytest.raises(RuntimeError, match="must be cuda device"):
        x.cuda("cpu")


def test_pinned_memory():
    x = torch.arange(12.0).view(3, 4).T
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned[1].is_pinned()
    assert pinned.stride() == x.stride()
    assert pinned.tolist() == x.tolist()
    assert pinned.pin_memory() is pinned
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: torch.zeros((3, 4), dtype=torch.int16, **o),
        lambda **o: torch.full(size=(3, 4), fill_value=2, **o),
        lambda **o: torch.ones_like(torch.empty(4, 3).T, **o),
        lambda **o: torch.ones(2, device="cuda").new_zeros(3, 4, device="cpu", **o),
        lambda **o: torch.arange(12, **o).view(3, 4),
        lambda **o: torch.tensor([[1.0] * 4] * 3, **o),
    ],
)
def test_factories_of_pinned_memory(make):
    x, pinned = make(), make(pin_memory=True)
    assert pinned.is_pinned() and not x.is_pinned()
    assert (pinned.shape, pinned.dtype, pinned.stride()) == (x.shape, x.dtype, x.stride())
    assert torch.equal(pinned, x)


def test_factories_of_pinned_memory_take_the_other_options():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True, pin_memory=True)
    assert x.is_pinned() and x.is_leaf and x.requires_grad and x.dtype == torch.float64
    assert torch.empty(3, 4, pin_memory=True).is_pinned()
    assert not torch.ones(3, pin_memory=False).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(3, device="cuda", pin_memory=True)


def test_copies_from_pinned_memory_run_late(late):
    pinned = torch.zeros(10).pin_memory()
    y = pinned.to("cuda", non_blocking=True)
    pinned.numpy()[:] = 1  # too early: PyTorch's documentation warns of this
    assert y.tolist() == [1.0] * 10


def test_copies_to_pinned_memory_run_late(late):
    x = torch.ones(10, device="cuda")
    pinned = torch.zeros(10).pin_memory()
    pinned.copy_(x, non_blocking=True)
    assert pinned.tolist() == [0.0] * 10
    torch.cuda.synchronize()
    assert pinned.tolist() == [1.0] * 10


def test_pinned_blocks_are_not_handed_out_while_copies_use_them(late):
    pinned = torch.zeros(1000).pin_memory()
    address = pinned.data_ptr()
    kept = pinned.to("cuda", non_blocking=True)
    del pinned
    other = torch.ones(1000).pin_memory()
    assert other.data_ptr() != address
    assert kept.sum().item() == 0


def test_other_copies_have_ended():
    x = torch.zeros(10)
    y = x.to("cuda", non_blocking=True)
    x.fill_(1)
    assert y.tolist() == [0.0] * 10


def test_record_stream(simulator, late):
    side = torch.cuda.Stream()
    for recorded in (False, True):
        x = torch.zeros(1000, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        assert simulator.add(side, x.data_ptr(), 1000) == 0
        if recorded:
            x.record_stream(side)
        address = x.data_ptr()
        del x
        y = torch.empty(1000, device="cuda")
        assert (y.data_ptr() == address) != recorded
        status = simulator.add(torch.cuda.current_stream(), y.data_ptr(), 1000)
        assert (status == 0) == recorded
        torch.cuda.synchronize()


def test_record_stream_of_another_device(late):
    side = torch.cuda.Stream(device=1)
    x = torch.empty(3 << 20, device="cuda:0")
    with torch.cuda.stream(side):
        torch.ones(1 << 20, device="cuda:1").mul_(2)
    x.record_stream(side)
    address = x.data_ptr()
    del x
    y = torch.empty(3 << 20, device="cuda:0")
    assert side.query() or y.data_ptr() != address


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_copies_between_the_host_and_strided_tensors_carry_elements_alone(simulator, dtype):
    host = torch.arange(12.0).reshape(3, 4)
    x = torch.zeros(3, 8, device="cuda").to(getattr(torch, dtype))
    expected = torch.zeros(3, 8).to(x.dtype)
    x[:, ::2].copy_(torch.zeros(3, 4)).cpu()  # loads the kernels
    before = simulator.count("copies")
    x[:, ::2].copy_(host)
    assert simulator.count("copies") == before + 1
    expected[:, ::2] = host.to(x.dtype)
    assert x.cpu().equal(expected)
    before = simulator.count("copies")
    assert x[:, 1::2].t().cpu().equal(expected[:, 1::2].t())
    assert simulator.count("copies") == before + 1
    strided = torch.zeros(4, 6)[:, ::2]
    strided.copy_(x[:, ::2].t())
    assert strided.equal(expected[:, ::2].t().float())
    x[:, 0].copy_(torch.tensor([True, False, True]))
    assert x[:, 0].tolist() == [1, 0, 1]


def test_out_of_memory_of_a_tensor(simulator):
    torch.cuda.empty_cache()
    simulator.planned.allocation(1)
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 400\.00 TiB"):
        torch.empty(100 << 40, device="cuda")
    simulator.planned.allocation(0)
    assert torch.ones(3, device="cuda").sum().item() == 3


def test_random_numbers_follow_the_devices_generator():
    torch.cuda.manual_seed(5)
    a, b = torch.rand(10, device="cuda"), torch.rand(10, device="cuda")
    state = torch.cuda.get_rng_state()
    c = torch.rand(10, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.rand(10, device="cuda").tolist() == c.tolist()
    torch.cuda.manual_seed(5)
    assert torch.rand(10, device="cuda").tolist() == a.tolist() != b.tolist()
    generator = torch.Generator("cuda").manual_seed(5)
    assert torch.rand(10, device="cuda", generator=generator).tolist() == a.tolist()
    cpu_state = torch.get_rng_state()
    torch.randn(3, device="cuda")
    assert torch.get_rng_state().equal(cpu_state)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.rand(3, device="cuda", generator=torch.Generator())
