"""torch.Stream, torch.Event and get_device_module where there is no accelerator, as in PyTorch."""

import copy
import pickle

import pytest

import taeda

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(taeda.cuda.is_available(), reason="there is a CUDA device")

EXPRESSIONS = """
S.device
S.device_index, S.device_type, S.stream_id
S.native_handle
S.query(), S.synchronize(), S.is_capturing()
S.record_event()
S.record_event(E)
S.wait_event(E), S.wait_event(None)
S.wait_stream(S)
S.wait_stream(None)
S == torch.Stream(), S != torch.Stream(), S == 3, S == torch.Stream("meta")
hash(S) == hash(torch.Stream())
E.device, E.event_id, E.query(), E.synchronize(), E.wait(), E.wait(S)
E.record()
E.record(S)
E.elapsed_time(E)
T.elapsed_time(E)
T.elapsed_time(T)
E == E, E == torch.Event()
torch.Event("cpu", enable_timing=True), torch.Event(interprocess=True), torch.Event(blocking=True)
torch.Event(device=torch.device("cpu", 1)), torch.Event(None)
torch.Event("meta").record()
torch.Event(device=3)
torch.Event("cuda")
torch.Event("cpu", True)
E.ipc_handle()
torch.Event.from_ipc_handle(torch.device("cpu"), b"")
torch.Stream(None), torch.Stream(device="cpu", priority=-1), torch.Stream(device="cpu:2")
torch.Stream("meta").query()
torch.Stream(3)
torch.Stream("cuda:0")
torch.Stream("")
torch.Stream("cpu", 0)
torch.Stream(stream_id=5, device_index=0, device_type=1)
torch.Stream(stream_id=5)
S.__enter__(), S.__exit__(None, None, None)
type("Mine", (torch.Stream,), {})()
type("Mine", (torch.Event,), {})()
copy.copy(S)
pickle.dumps(E)
torch.accelerator.current_stream()
torch.get_device_module().__name__.split(".")[-1]
torch.get_device_module("cuda:1").__name__.split(".")[-1]
torch.get_device_module(torch.device("cpu")).__name__.split(".")[-1]
torch.get_device_module("meta")
torch.get_device_module(3)
torch.cpu.current_stream() is torch.cpu.current_stream()
torch.cpu.Stream().record_event(), torch.cpu.Event().query()
""".strip().splitlines()


def outcome(torch, expression):
    names = {"torch": torch, "copy": copy, "pickle": pickle, "S": torch.Stream()}
    names |= {"E": torch.Event(), "T": torch.Event(enable_timing=True)}
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_in_pytorch(expression):
    assert outcome(taeda, expression) == outcome(oracle, expression)


def test_a_stream_of_the_cpu():
    outer = taeda.cpu.current_stream()
    inner = taeda.cpu.Stream()
    with taeda.cpu.stream(inner):
        assert taeda.cpu.current_stream() is inner
    assert taeda.cpu.current_stream() is outer


@pytest.mark.parametrize("call", [lambda: taeda.Stream("cpu").wait_event(3),
                                  lambda: taeda.Event("cpu").elapsed_time(3)])  # fmt: skip
def test_wrong_kinds(call):
    with pytest.raises(TypeError, match=r"must be torch\.Event, not int"):
        call()
