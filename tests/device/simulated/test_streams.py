"""Streams and events, on devices whose work runs as late as it may."""

import subprocess
import sys
import threading

import pytest

import taeda as torch

RACE = 100_001  # the simulated driver's status for two pieces of work that nothing orders


@pytest.fixture
def block():
    """The address of 100 floats of device 0, on the default stream."""
    address = torch.cuda.caching_allocator_alloc(400, 0)
    yield address
    torch.cuda.synchronize(0)
    torch.cuda.caching_allocator_delete(address)


def test_devices():
    assert torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0
    assert torch.cuda.get_device_name() == "Simulated CUDA device"
    assert torch.cuda.get_device_capability("cuda:1") == (9, 0)
    properties = torch.cuda.get_device_properties(1)
    assert properties.multi_processor_count == 132
    assert properties.total_memory == torch.cuda.mem_get_info(1)[1]
    assert "name='Simulated CUDA device', major=9" in repr(properties)
    assert torch.cuda.can_device_access_peer(0, 1)
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.cuda.set_device(2)


@pytest.mark.parametrize("device", [2, -1, "cuda:7"])
def test_questions_about_devices_that_are_not_there(device):
    for ask in ("get_device_properties", "get_device_name", "get_device_capability"):
        with pytest.raises(AssertionError, match="Invalid device id"):
            getattr(torch.cuda, ask)(device)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.can_device_access_peer(device, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        torch.cuda.can_device_access_peer(0, device)


def test_only_blocks_that_are_there_are_given_back():
    address = torch.cuda.caching_allocator_alloc(400, 0)
    torch.cuda.caching_allocator_delete(address)
    for wrong in (address, address + 4, 1):
        with pytest.raises(RuntimeError, match="invalid device pointer"):
            torch.cuda.caching_allocator_delete(wrong)


def test_current_device_is_the_threads():
    torch.cuda.set_device("cuda:1")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert torch.cuda.current_device() == 1
    with torch.cuda.device(0):
        assert torch.cuda.current_device() == 0
    with torch.cuda.device(None):
        assert torch.cuda.current_device() == 1


def test_current_stream():
    default = torch.cuda.current_stream()
    assert default == torch.cuda.default_stream()
    assert (default.stream_id, default.cuda_stream) == (0, 0)
    other = torch.cuda.Stream(1)
    with torch.cuda.stream(other):
        assert torch.cuda.current_stream() == other
        assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream(0) == default
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    with other as entered:
        assert entered is other
        assert torch.cuda.current_stream() == other
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == default


def test_pool_has_32_streams_of_each_priority():
    streams = [torch.cuda.Stream() for _ in range(64)]
    assert len(set(streams)) == 32
    assert streams[0] == streams[32]
    assert torch.cuda.Stream(priority=-1).priority == -1
    assert torch.cuda.Stream(priority=-100).priority == torch.cuda.Stream.priority_range()[1]
    assert torch.cuda.Stream(priority=5).priority == 0
    assert torch.cuda.Stream(priority=-1) not in streams


def test_external_stream():
    stream = torch.cuda.Stream()
    other = torch.cuda.ExternalStream(stream.cuda_stream)
    assert other.cuda_stream == stream.cuda_stream
    assert other.query()


def test_external_stream_of_the_default_streams_other_handle():
    assert torch.cuda.ExternalStream(1) == torch.cuda.default_stream()
    assert torch.cuda.ExternalStream(1) != torch.cuda.Stream()


def test_event_orders_streams(simulator, block):
    side = torch.cuda.Stream()
    assert simulator.add(torch.cuda.current_stream(), block, 100) == 0
    assert simulator.add(side, block, 100) == RACE
    side.wait_stream(torch.cuda.current_stream())
    assert simulator.add(side, block, 100) == 0
    event = side.record_event()
    assert simulator.add(torch.cuda.current_stream(), block, 100) == RACE
    event.wait()
    assert simulator.add(torch.cuda.current_stream(), block, 100) == 0


def test_waiting_orders_streams(simulator, block):
    side = torch.cuda.Stream()
    for wait in (
        lambda: side.synchronize(),
        lambda: side.record_event().synchronize(),
        lambda: torch.cuda.synchronize(),
        lambda: torch.accelerator.synchronize(),
    ):
        assert simulator.add(side, block, 100) == 0
        wait()
        assert simulator.add(torch.cuda.default_stream(), block, 100) == 0
        torch.cuda.default_stream().synchronize()


def test_queries_see_work_that_is_left(simulator, block, late):
    stream = torch.cuda.current_stream()
    event = torch.cuda.Event()
    assert event.query()  # nothing recorded yet
    simulator.add(stream, block, 100)
    event.record()
    assert not event.query()
    event.synchronize()
    assert event.query()
    assert stream.query()


def test_elapsed_time(simulator, block, late):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(10):
        simulator.add(torch.cuda.current_stream(), block, 100)
    end.record()
    with pytest.raises(torch.AcceleratorError, match="device not ready"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.cuda.Event())
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(torch.cuda.Event(enable_timing=True))


def test_event_belongs_to_its_first_device():
    event = torch.cuda.Event()
    assert event.device is None
    event.record(torch.cuda.default_stream(1))
    assert event.device == torch.device("cuda", 1)
    with pytest.raises(RuntimeError, match="does not match recording stream's device"):
        event.record(torch.cuda.default_stream(0))


def test_accelerator():
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
        stream = torch.accelerator.current_stream()
        assert (stream.device, stream.stream_id) == (torch.device("cuda", 1), 0)
    assert torch.accelerator.current_device_index() == 0


def test_streams_of_any_device():
    stream = torch.Stream(device="cuda:1")
    assert isinstance(torch.cuda.Stream(), torch.Stream)
    assert (stream.device, stream.device_type) == (torch.device("cuda", 1), 1)
    assert torch.Stream().device == torch.Stream("cuda").device == torch.device("cuda", 0)
    assert torch.Stream(1).device == torch.device("cuda", 1)
    ids = {k: getattr(stream, k) for k in ("stream_id", "device_index", "device_type")}
    assert torch.Stream(**ids) == stream
    assert hash(torch.Stream(**ids)) == hash(stream)
    assert stream.native_handle == torch.cuda.Stream(**ids).cuda_stream != 0
    with stream as entered:
        assert entered is stream
        assert torch.accelerator.current_stream() == stream
        with torch.Stream(device="cuda:1") as inner:
            assert torch.accelerator.current_stream() == inner
        with torch.Stream("cpu"):
            assert torch.accelerator.current_stream() == stream
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream() == stream
    with pytest.raises(RuntimeError, match="the accelerator is cuda"):
        torch.accelerator.set_stream(torch.Stream("cpu"))


def test_events_of_any_device(simulator, block):
    side = torch.Stream()
    default = torch.accelerator.current_stream()
    event = torch.Event()
    assert (event.device, event.event_id) == (torch.device("cuda"), 0)
    assert simulator.add(torch.cuda.default_stream(), block, 100) == 0
    event.record()
    assert event.device == torch.device("cuda", 0)
    assert f"device_index=0, event_flag=0, event_id={event.event_id}" in repr(event)
    queue = torch.cuda.Stream(stream_id=side.stream_id, device_index=0, device_type=1)
    assert simulator.add(queue, block, 100) == RACE
    side.wait_event(event)
    assert simulator.add(queue, block, 100) == 0
    default.wait_stream(side)
    assert simulator.add(torch.cuda.default_stream(), block, 100) == 0
    with pytest.raises(
        RuntimeError, match="cuda does not match recording stream's device type cpu"
    ):
        event.record(torch.Stream("cpu"))
    with pytest.raises(RuntimeError, match="cuda does not match blocking stream's device type cpu"):
        event.wait(torch.Stream("cpu"))
    with pytest.raises(RuntimeError, match="does not match recording stream's device 1"):
        event.record(torch.Stream("cuda:1"))


def test_events_of_both_kinds_mix():
    stream, event = torch.cuda.Stream(), torch.Event()
    assert stream.record_event(event) is event
    torch.Stream().wait_event(torch.cuda.current_stream().record_event())
    stream.wait_stream(torch.Stream())
    torch.cuda.synchronize()
    assert event.query()


def test_elapsed_time_of_any_events(simulator, block, late):
    start, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    simulator.add(torch.cuda.current_stream(), block, 100)
    end.record()
    with pytest.raises(ValueError, match="must be completed"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.Event())


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.cuda.Event(interprocess=True),
        lambda: torch.cuda.Event(external=True),
        lambda: torch.cuda.Event().ipc_handle(),
        lambda: torch.cuda.Event.from_ipc_handle(0, b""),
        lambda: torch.Event().ipc_handle(),
        lambda: torch.Event.from_ipc_handle(0, b""),
        lambda: torch.cuda.MemPool(allocator=object()),
        lambda: torch.cuda.CUDAGraph().capture_begin(check_input_liveness=True),
        lambda: torch.cuda.CUDAPluggableAllocator("", "", ""),
    ],
)
def test_what_is_not_there_says_so(call):
    with pytest.raises(NotImplementedError, match="torch"):
        call()


def test_what_to_use_instead_is_named():
    with pytest.raises(NotImplementedError, match=r"record the event after CUDAGraph\.replay"):
        torch.cuda.Event(external=True)


def test_device_modules():
    assert torch.get_device_module() is torch.cuda
    assert torch.get_device_module("cuda:1") is torch.cuda


FORKED = """
import os, taeda as torch
torch.cuda.init()
kept = torch.cuda.Event(); kept.record()
child = os.fork()
if child == 0:
    assert torch.cuda._is_in_bad_fork()
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        assert "Cannot re-initialize CUDA in forked subprocess" in str(error), error
        del kept
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
torch.cuda.synchronize()
"""


def test_forked_child_raises():
    subprocess.run([sys.executable, "-c", FORKED], check=True)


LOST = """
import ctypes, sys, taeda as torch
torch.cuda.init()
library = ctypes.CDLL(sys.argv[1])
library.taeda_sim_fail_launch(ctypes.c_int64(1))
address = torch.cuda.caching_allocator_alloc(400)
library.taeda_sim_add(None, ctypes.c_void_p(address), ctypes.c_int64(1), ctypes.c_float(1))
for _ in range(2):
    try:
        torch.cuda.synchronize()
    except torch.AcceleratorError as error:
        assert str(error).startswith("CUDA error: unspecified launch failure"), error
    else:
        raise SystemExit("the device was not lost")
torch.cuda.caching_allocator_delete(address)
"""


def test_a_lost_device_stays_lost(simulator):
    subprocess.run([sys.executable, "-c", LOST, simulator.library._name], check=True)
