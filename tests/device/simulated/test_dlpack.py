"""DLPack between users of one device: streams are ordered, devices checked, memory shared."""

import pytest

import taeda as torch
from taeda.utils.dlpack import DLDeviceType

pytestmark = pytest.mark.usefixtures("quiet_fallback")
RACE = 100_001


class Producer:
    """Another library's array on a device, made on a stream of its own."""

    def __init__(self, tensor, stream, accepted=("stream", "max_version", "dl_device", "copy")):
        self.tensor, self.stream, self.accepted = tensor, stream, accepted
        self.asked = []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **kwargs):
        self.asked.append(kwargs)
        if not set(kwargs) <= set(self.accepted):
            raise TypeError(f"unknown argument among {sorted(kwargs)}")
        with torch.cuda.stream(self.stream):
            return self.tensor.__dlpack__(**kwargs)


def test_memory_is_shared():
    x = torch.arange(6.0, device="cuda").view(2, 3).t()
    y = torch.from_dlpack(x)
    assert (y.device, y.data_ptr(), y.stride()) == (x.device, x.data_ptr(), x.stride())
    y[0, 0] = 7
    assert x[0, 0].item() == 7
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).tolist() == x.tolist()


def test_devices():
    x = torch.ones(2, device="cuda")
    assert x.__dlpack_device__() == (DLDeviceType.kDLCUDA, 0)
    assert torch.ones(2, device="cuda:1").__dlpack_device__() == (2, 1)
    pinned = torch.ones(2).pin_memory()
    assert pinned.__dlpack_device__() == (DLDeviceType.kDLCUDAHost, 0)
    assert torch.from_dlpack(pinned).is_pinned()
    with torch.cuda.device(1):
        with pytest.raises(BufferError, match=r"different CUDA device index\. Expected: 0"):
            x.__dlpack__()
        assert torch.from_dlpack(torch.ones(2, device="cuda")).device == torch.device("cuda:1")


def test_copies_to_other_devices():
    x = torch.ones(2, device="cuda")
    for device in ("cpu", "cuda:1"):
        assert torch.from_dlpack(x, device=device).device == torch.device(device)
        with pytest.raises(ValueError, match="without copying"):
            torch.from_dlpack(x, device=device, copy=False)
    assert torch.from_dlpack(torch.ones(2), device="cuda").tolist() == [1, 1]
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0))).device == torch.device("cpu")
    with pytest.raises(ValueError, match=r"tensor from cuda:0 to cpu without copying"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cuda", copy=False).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("theirs", [None, 1, "handle"])
def test_the_consumers_stream_waits(simulator, late, theirs):
    x = torch.zeros(100, device="cuda")
    mine, other = torch.cuda.Stream(), torch.cuda.Stream()
    mine.wait_stream(torch.cuda.current_stream())
    consumer = other if theirs == "handle" else torch.cuda.default_stream()
    assert simulator.add(mine, x.data_ptr(), 100) == 0
    assert simulator.add(consumer, x.data_ptr(), 100) == RACE
    with torch.cuda.stream(mine):
        x.__dlpack__(stream=other.cuda_stream if theirs == "handle" else theirs)
    assert simulator.add(consumer, x.data_ptr(), 100) == 0


@pytest.mark.parametrize("arguments", [{}, {"stream": -1}])
def test_without_a_stream_nothing_waits(simulator, arguments):
    x = torch.zeros(100, device="cuda")
    mine = torch.cuda.Stream()
    mine.wait_stream(torch.cuda.current_stream())
    assert simulator.add(mine, x.data_ptr(), 100) == 0
    with torch.cuda.stream(mine):
        x.__dlpack__(**arguments)
    assert simulator.add(torch.cuda.default_stream(), x.data_ptr(), 100) == RACE


@pytest.mark.parametrize(
    "stream, error, message",
    [
        (2, BufferError, "per-thread default stream"),
        (0, AssertionError, "unsupported stream on CUDA: 0"),
        ("1", TypeError, "stream must be ``int`` or ``none``"),
        (True, TypeError, "stream must be ``int`` or ``none``"),
        (1 << 70, OverflowError, "int"),
    ],
)
def test_wrong_streams(stream, error, message):
    with pytest.raises(error, match=message):
        torch.ones(2, device="cuda").__dlpack__(stream=stream)


@pytest.mark.parametrize("side", [False, True])
def test_from_dlpack_hands_its_stream_over(simulator, late, side):
    x = torch.zeros(100, device="cuda")
    producer = Producer(x, torch.cuda.Stream())
    producer.stream.wait_stream(torch.cuda.current_stream())
    assert simulator.add(producer.stream, x.data_ptr(), 100) == 0
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    with torch.cuda.stream(stream):
        y = torch.from_dlpack(producer)
        assert producer.asked[0]["stream"] == (stream.cuda_stream if side else 1)
        assert simulator.add(stream, y.data_ptr(), 100) == 0
        assert y.tolist() == [2.0] * 100


@pytest.mark.parametrize("accepted, calls", [(("stream",), 4), (("stream", "dl_device"), 3),
                                             (("stream", "copy", "dl_device"), 2)])  # fmt: skip
def test_older_producers(accepted, calls):
    x = torch.ones(2, device="cuda")
    producer = Producer(x, torch.cuda.default_stream(), accepted)
    y = torch.from_dlpack(producer, device="cuda:0", copy=True)
    assert len(producer.asked) == calls
    assert y.tolist() == [1, 1] and y.data_ptr() != x.data_ptr()


def test_the_array_interface():
    x = torch.arange(6.0, device="cuda").view(2, 3)
    assert x.__cuda_array_interface__ == {
        "typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False),
        "version": 2,
    }  # fmt: skip
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    assert x.bool().__cuda_array_interface__["typestr"] == "|b1"
    assert torch.empty(0, device="cuda").bfloat16().__cuda_array_interface__["typestr"] == "<V2"
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = x.requires_grad_().__cuda_array_interface__
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")
