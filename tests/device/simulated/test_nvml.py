"""What NVML says of a device: by a stand-in for its library, which no test machine need have."""

import ctypes

import pytest

import taeda as torch
from taeda.cuda import _nvml


class StandIn:
    """The functions that are called, with answers that depend on the device."""

    def __init__(self):
        self.uuids = []

        def error_string(status):
            return {9: b"Driver Not Loaded", 3: b"Not Supported"}[status]

        self.nvmlErrorString = error_string
        self.started = 0

    def nvmlInit_v2(self):
        return self.started

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        if uuid not in self.uuids:
            self.uuids.append(uuid)
        handle._obj.value = 100 + self.uuids.index(uuid)
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, rates):
        rates._obj.gpu, rates._obj.memory = handle.value, 12
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        assert ctypes.sizeof(memory._obj) == 24
        memory._obj.used = 5 << 30
        return 0

    def nvmlDeviceGetTemperature(self, handle, sensor, result):
        result._obj.value = 45 + sensor
        return 0

    def nvmlDeviceGetPowerUsage(self, handle, result):
        result._obj.value = 250000
        return 0

    def nvmlDeviceGetClockInfo(self, handle, clock, result):
        result._obj.value = {1: 1980}[clock]
        return 0


@pytest.fixture
def library(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(_nvml, "_opened", lambda: stand_in)
    _nvml._library.cache_clear()
    yield stand_in
    _nvml._library.cache_clear()


def test_each_question_has_its_answer(library):
    assert torch.cuda.utilization() == 100
    assert (
        torch.cuda.utilization("cuda:1") == 101 == torch.cuda.utilization(torch.device("cuda", 1))
    )
    assert torch.cuda.memory_usage(0) == 12
    assert torch.cuda.device_memory_used() == 5 << 30
    assert torch.cuda.temperature() == 45
    assert torch.cuda.power_draw() == 250000
    assert torch.cuda.clock_rate() == 1980
    assert library.uuids[0] == f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
    assert len(library.uuids) == 2


def test_what_nvml_refuses_is_raised(library):
    library.nvmlDeviceGetPowerUsage = lambda handle, result: 3
    with pytest.raises(RuntimeError, match="NVML: Not Supported"):
        torch.cuda.power_draw()
    _nvml._library.cache_clear()
    library.started = 9
    with pytest.raises(RuntimeError, match="NVML: Driver Not Loaded"):
        torch.cuda.utilization()


def test_a_machine_without_the_library_says_so(monkeypatch):
    def absent():
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    monkeypatch.setattr(_nvml, "_opened", absent)
    _nvml._library.cache_clear()
    with pytest.raises(RuntimeError, match=r"NVML, which comes .* cannot be opened: libnvidia-ml"):
        torch.cuda.temperature()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.temperature(7)
