"""Switches of libraries: set in a context, and by assignment until that is forbidden."""

from __future__ import annotations

import subprocess
import sys

import pytest

import taeda as torch

FROZEN = """
import taeda as torch

torch.backends.cudnn.enabled = False
torch.backends.disable_global_flags()
print(torch.backends.flags_frozen())
for name in "cudnn", "mkldnn":
    try:
        getattr(torch.backends, name).enabled = True
    except RuntimeError as error:
        print(error)
with torch.backends.cudnn.flags(enabled=True):
    print(torch.backends.cudnn.enabled)
print(torch.backends.cudnn.enabled)
torch.backends.cudnn.set_flags(True)
print(torch.backends.cudnn.enabled)
torch.backends.opt_einsum.enabled = True  # as PyTorch, which freezes no switch of it
print(torch.backends.opt_einsum.enabled)
"""


def test_frozen_switches_are_set_by_flags_alone():
    said = subprocess.run([sys.executable, "-c", FROZEN], capture_output=True, text=True)
    refusal = (
        "not allowed to set torch.backends.{} flags after disable_global_flags; "
        "please use flags() context manager instead"
    )
    assert said.stdout.splitlines() == [
        "True", refusal.format("cudnn"), refusal.format("mkldnn"), "True", "False", "True",
        "True",
    ], said.stderr  # fmt: skip


def test_the_precision_of_float32_is_put_back():
    assert torch.backends.set_flags(None) == ("none",)
    with torch.backends.flags(fp32_precision="ieee"):
        assert torch.backends.fp32_precision == "ieee"
    assert torch.backends.fp32_precision == "none"
    with pytest.raises(RuntimeError, match="Unknown precision: tf16"):
        torch.backends.set_flags("tf16")


def test_properties_of_modules_are_read_and_set_by_functions():
    values = [1]

    class Settings(torch.backends.PropModule):
        size = torch.backends.ContextProp(lambda: values[0], lambda value: values.insert(0, value))

    settings = Settings(torch.backends.cudnn, "settings")
    settings.size = 5
    assert settings.size == 5 and values == [5, 1]
    assert settings.is_available() is False  # the module's own


def test_backends_and_onnx_have_no_names_for_annotations():
    for module in (torch.backends, torch.onnx):
        assert not {"Callable", "Iterator", "TYPE_CHECKING"} & set(dir(module))
