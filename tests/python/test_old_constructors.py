"""Tensor(...), FloatTensor(...) and Tensor.new(...), the constructors of old, against PyTorch's."""

from __future__ import annotations

import pytest

import taeda

torch = pytest.importorskip("torch")

CALLS = {
    "a tensor keeps its dtype": lambda t: t.Tensor(t.tensor([1, 2])),
    "a kind refuses another dtype": lambda t: t.FloatTensor(t.tensor([1, 2])),
    "a kind takes its own dtype": lambda t: t.LongTensor(t.tensor([1, 2])),
    "new refuses another dtype": lambda t: t.ones(1).new(t.tensor([1, 2])),
    "new takes its own dtype": lambda t: t.ones(1).new(t.tensor([1.0, 2.0])),
    "new of values": lambda t: t.ones(1, dtype=t.int64).new([1, 2]),
    "new of sizes": lambda t: t.ones(1).new(2, 3).shape,
    "new of sizes elsewhere": lambda t: t.empty(1, device="meta").new(2, 3),
    "new of values elsewhere": lambda t: t.empty(1, device="meta").new([1.0, 2.0]),
    "new of a size elsewhere": lambda t: t.empty(1, device="meta").new(t.Size([2])),
    "new of nothing elsewhere": lambda t: t.empty(1, device="meta").new(),
    "new on its device": lambda t: t.ones(1).new([1, 2], device="cpu"),
    "new on another device": lambda t: t.ones(1).new(2, device="meta"),
    "new of a tensor on a device": lambda t: t.ones(1).new(t.ones(2), device="cpu"),
    "new on another device of meta": lambda t: t.empty(1, device="meta").new(2, device="cpu"),
}


def outcome(t, call):
    try:
        found = call(t)
    except (TypeError, RuntimeError) as error:
        return type(error).__name__
    if not isinstance(found, t.Tensor):
        return found
    values = None if found.is_meta else found.tolist()
    return str(found.dtype).partition(".")[2], str(found.device), tuple(found.shape), values


@pytest.mark.parametrize("name", CALLS)
def test_constructors_of_old_give_pytorchs_tensors(name):
    assert outcome(taeda, CALLS[name]) == outcome(torch, CALLS[name])


def test_a_tensor_of_another_dtype_is_named():
    message = "expected a tensor of dtype float32, got one of int64"
    with pytest.raises(TypeError, match=message):
        taeda.ones(1).new(taeda.tensor([1]))


def test_kinds_of_tensors_have_no_subclasses():
    for t in (taeda, torch):
        with pytest.raises(TypeError, match=r"type 'torch\.FloatTensor' is not an acceptable base"):

            class Kind(t.FloatTensor):
                pass
