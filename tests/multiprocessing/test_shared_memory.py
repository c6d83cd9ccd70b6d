"""share_memory_, and tensors sent to other processes."""

import os
import pickle

import numpy as np
import pytest

import taeda as torch
from taeda import multiprocessing as mp
from taeda import nn


def test_views_move_along():
    x = torch.arange(1000.0)
    row = x[2:5]
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared() and row.is_shared() and x.untyped_storage().is_shared()
    row[0] = 7
    assert x[2].item() == 7 and x[999].item() == 999
    assert torch.ones(0).share_memory_().is_shared()
    assert torch.ones(2, device="meta").share_memory_().is_meta
    known = torch.ones(100)
    array = known.numpy()
    with pytest.raises(RuntimeError, match="cannot be moved"):
        known.share_memory_()
    assert array.sum() == 100


def test_shared_memory_can_be_resized_which_ends_the_sharing():
    x = torch.ones(10).share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(1000)


def in_child(call):
    """Runs `call` in a forked process, which must end well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_writes_what_its_parent_reads():
    shared, private = torch.zeros(1000).share_memory_(), torch.zeros(1000)
    in_child(lambda: (shared.add_(1), private.add_(1)))
    assert shared.sum().item() == 1000 and private.sum().item() == 0
    model = nn.Linear(3, 2)
    model.share_memory()
    assert all(p.is_shared() for p in model.parameters())

    def change():
        with torch.no_grad():
            model.weight.fill_(2)

    in_child(change)
    assert model.weight.eq(2).all()


def square(source, target):
    x, rows, parameter = source.get(timeout=60)
    assert rows.data_ptr() == x.data_ptr() + 4 * 4, "views of one storage stay views"
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad
    x.mul_(x)
    target.put(("done", torch.ones(2, dtype=torch.bfloat16), rows))
    source.get(timeout=60)  # what was sent must be open until it is received


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queues_send_handles(method):
    context = mp.get_context(method)
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=square, args=(there, back), daemon=True)
    process.start()
    x = torch.arange(8.0)
    there.put((x, x[4:], nn.Parameter(torch.ones(1))))
    word, ones, rows = back.get(timeout=60)
    assert word == "done" and ones.tolist() == [1, 1]
    assert x.tolist() == [0, 1, 4, 9, 16, 25, 36, 49]
    rows[0] = -1
    assert x[4].item() == -1, "the same memory there and back again"
    there.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_what_cannot_be_sent():
    from multiprocessing.reduction import ForkingPickler

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        ForkingPickler.dumps(x * 2)
    ordinary = torch.ones(3)
    copied = pickle.loads(pickle.dumps(ordinary))
    copied[0] = 5
    assert ordinary[0].item() == 1 and not ordinary.is_shared()
    assert np.array(copied).tolist() == [5, 1, 1]


def fails(i, text):
    if i == 1:
        raise ValueError(text)


def fills(i, x):
    x[i] = i + 1


def test_spawn():
    x = torch.zeros(3).share_memory_()
    mp.spawn(fills, (x,), nprocs=3, start_method="fork")
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(mp.ProcessRaisedException, match="no luck"):
        mp.start_processes(fails, ("no luck",), nprocs=2, start_method="fork")


def test_shared_memory_cannot_shrink_under_its_readers():
    x = torch.ones(1 << 16).share_memory_()
    handle = x.untyped_storage()._shared_handle()

    def shrink():
        with pytest.raises(PermissionError):
            os.ftruncate(handle, 0)

    in_child(shrink)
    assert x.sum().item() == 1 << 16


@pytest.mark.parametrize("sealable", [False, True])
def test_a_file_that_can_shrink_is_no_shared_memory(tmp_path, sealable):
    """Sealed where that can still be done, refused where not."""
    storage = torch.UntypedStorage
    if sealable:
        handle = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    else:
        handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.ftruncate(handle, 4096)
    if not sealable:
        with pytest.raises(RuntimeError, match="whose size is sealed"):
            storage._from_shared(handle, 4096)
        return
    assert len(storage._from_shared(handle, 4096)) == 4096
    with pytest.raises(PermissionError):
        os.ftruncate(handle, 0)
    with pytest.raises(RuntimeError, match="expected 8192"):
        storage._from_shared(handle, 8192)
