"""nn.parallel.comm on the CPU: what is sent, split, added and put together."""

import pytest

import taeda
from taeda.nn.parallel import comm

CPUS = ["cpu", "cpu"]


def test_a_tensor_is_sent_to_each_device():
    x = taeda.arange(3.0)
    assert [t.tolist() for t in comm.broadcast(x, CPUS)] == [[0, 1, 2]] * 2
    out = [taeda.zeros(3), taeda.zeros(3)]
    assert comm.broadcast(x, out=out)[1] is out[1]
    assert out[1].tolist() == [0, 1, 2]
    assert len(comm.broadcast_coalesced([x, x], CPUS)) == 2
    with pytest.raises(RuntimeError, match="Exactly one of"):
        comm.broadcast(x)


def test_tensors_are_added():
    x = taeda.arange(3.0)
    assert comm.reduce_add([x, x, x]).tolist() == [0, 3, 6]
    assert x.tolist() == [0, 1, 2]
    sums = comm.reduce_add_coalesced([[x, 2 * x], [x, x]])
    assert [t.tolist() for t in sums] == [[0, 2, 4], [0, 3, 6]]
    with pytest.raises(ValueError, match="one shape"):
        comm.reduce_add([x, x[:2]])


def test_parts_come_together_again():
    x = taeda.arange(10.0).reshape(5, 2)
    parts = comm.scatter(x, CPUS, [2, 3])
    assert [len(p) for p in parts] == [2, 3]
    assert comm.gather(parts).tolist() == x.tolist()
    assert [p.shape[1] for p in comm.scatter(x, CPUS, dim=1)] == [1, 1]
    out = taeda.zeros(5, 2)
    assert comm.gather(parts, out=out) is out
