"""share_memory_, and tensors sent to other processes."""

import os
import pickle
import warnings

import numpy as np
import pytest

import taeda as torch
from taeda import _C, nn
from taeda import multiprocessing as mp
from taeda.multiprocessing import reductions


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


def pipe():
    ours, theirs = mp.Pipe()
    return ours.send, theirs.recv


def queue(kind):
    queue = getattr(mp, kind)()
    return queue.put, queue.get


@pytest.mark.parametrize(
    "channel",
    [pipe, *(lambda kind=kind: queue(kind) for kind in ("Queue", "JoinableQueue", "SimpleQueue"))],
    ids=["Pipe", "Queue", "JoinableQueue", "SimpleQueue"],
)
def test_a_copy_in_place_of_the_memory_is_told_where_it_was_sent(channel):
    put, get = channel()
    x = torch.zeros(3)
    array = x.numpy()
    with pytest.warns(UserWarning, match=r"share_memory_\(\) before \.numpy\(\)") as told:
        put(x)
    assert len(told) == 1 and told[0].filename == __file__
    x += 1
    assert array.tolist() == [1, 1, 1] and get().tolist() == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = torch.zeros(3).share_memory_()
        array = y.numpy()
        put(y)
        put(x.clone())
        put(torch.from_numpy(np.ones(3)))
    y += 1
    assert [get().tolist() for _ in range(3)] == [[1, 1, 1]] * 3
    other = torch.zeros(2)
    array = other.numpy()
    with pytest.warns(UserWarning, match="sends a copy") as told:
        put([other, other[1:]])
    assert len(told) == 1 and get()[0].tolist() == [0, 0]


def test_a_failure_to_share_is_no_reason_to_copy():
    """Whatever the error says."""

    class Failing:
        device = torch.device("cpu")

        def share_memory_(self):
            raise RuntimeError("this text says: cannot be moved")

        def resizable(self):
            return True

    with pytest.raises(RuntimeError, match="this text"):
        reductions._shared(Failing())


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


def test_storages_in_shared_memory_from_the_start():
    storage = torch.UntypedStorage(1)._new_shared(40)
    assert storage.is_shared() and storage.nbytes() == 40
    typed = torch.ones(3).storage()._new_shared(5)
    assert typed.is_shared() and len(typed) == 5 and typed.dtype == torch.float32


def test_shared_memory_cannot_shrink_under_its_readers():
    x = torch.ones(1 << 16).share_memory_()
    name = x.untyped_storage()._send()
    descriptor = _C._shared_descriptor(name)

    def shrink():
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)

    in_child(shrink)
    assert x.sum().item() == 1 << 16
    _C._drop_shared(name)


def test_a_file_that_is_no_segment_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 16))
    with pytest.raises(RuntimeError, match="expected a file of shared tensors"):
        _C._map_segment(os.open(path, os.O_RDWR))
    with pytest.raises(ValueError, match="expected a name of 48 bytes"):
        torch.UntypedStorage._receive(b"short")
    with pytest.raises(RuntimeError, match="not mapped here"):
        torch.UntypedStorage._receive(bytes(48))
