"""Devices that PyTorch knows by name and this machine has not."""

import pickle

import pytest

import taeda

torch = pytest.importorskip("torch")
NAMES = "ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps hpu mtia".split()


@pytest.mark.parametrize("name", [*NAMES, "privateuseone"])
def test_a_device_is_named_and_compared_as_in_pytorch(name):
    for text in (name, f"{name}:1"):
        ours, theirs = taeda.device(text), torch.device(text)
        assert repr(ours) == repr(theirs) and str(ours) == str(theirs) == text
        assert (ours.type, ours.index) == (theirs.type, theirs.index)
        assert ours == taeda.device(text) and ours != taeda.device("cpu")
        assert pickle.loads(pickle.dumps(ours)) == ours


@pytest.mark.parametrize(
    "make",
    [
        lambda: taeda.ones(2, device="mps"),
        lambda: taeda.ones(2).to("xpu"),
        lambda: taeda.empty(2, device="meta").to("hpu"),
        lambda: taeda.nn.Linear(2, 2).to("mps"),
        lambda: taeda.randn(2, device="mtia:1"),
    ],
)
def test_there_is_no_memory_on_it(make):
    with pytest.raises(RuntimeError, match=r"taeda has no support for (mps|xpu|hpu|mtia) devices"):
        make()


def test_other_names_are_refused():
    for library in (taeda, torch):
        with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, ipu, xpu"):
            library.device("abacus")
