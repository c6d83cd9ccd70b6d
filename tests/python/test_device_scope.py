"""with torch.device(...), and torch.set_default_device."""

import threading

import pytest

import taeda as torch
from taeda import nn


def test_factories_in_the_block_take_its_device():
    with torch.device("meta") as device:
        assert device == torch.device("meta")
        assert torch.ones(2).is_meta and torch.tensor([1.0]).is_meta
        assert not torch.range(0, 3).is_meta and not torch.normal(0.0, 1.0, (2,)).is_meta
        assert torch.arange(3).is_meta and torch.randn(2).is_meta and torch.full((2,), 1.0).is_meta
        assert not torch.ones(2, device="cpu").is_meta
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        assert all(p.is_meta for p in [*model.parameters(), *model.buffers()])
        with torch.device("cpu"):
            assert not torch.zeros(1).is_meta
            assert torch.get_default_device() == torch.device("cpu")
        assert torch.zeros(1).is_meta
        assert (torch.ones(2) + torch.ones(2)).is_meta
    assert not torch.ones(2).is_meta
    with pytest.raises(KeyError), torch.device("meta"):
        raise KeyError
    assert not torch.ones(2).is_meta


def test_default_device_holds_until_it_is_taken_back():
    try:
        torch.set_default_device("meta")
        assert torch.get_default_device() == torch.device("meta")
        assert torch.empty(2).is_meta and torch.tensor(1).is_meta
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).is_meta))
        thread.start()
        thread.join()
        assert seen == [False], "another thread's is its own"
    finally:
        torch.set_default_device(None)
    assert not torch.empty(2).is_meta and torch.get_default_device() == torch.device("cpu")
