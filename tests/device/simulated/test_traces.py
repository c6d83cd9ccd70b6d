"""Allocations of three programs, replayed on a simulated device: no more memory is reserved than by
PyTorch's algorithm, of which tests/gpu/traces.py has a model (its allocator does not run here)."""

import pytest
from tests.gpu import traces
from tests.gpu.traces import MIB, Model, Trace

import taeda


@pytest.mark.parametrize("name", traces.TRACES)
def test_no_more_is_reserved_than_by_pytorchs_algorithm(name):
    trace = traces.TRACES[name]()
    assert len(trace.events) > 1500
    assert "the model of PyTorch's algorithm" in traces.compare(trace, None)


@pytest.mark.parametrize("name", traces.TRACES)
def test_traces_are_the_same_each_time_and_fit_a_small_card(name):
    trace = traces.TRACES[name]()
    assert trace.events == traces.TRACES[name]().events
    used = most = 0
    sizes = {}
    for block, bytes, _ in trace.events:
        sizes[block] = bytes or sizes[block]
        used += bytes or -sizes[block]
        most = max(most, used)
    assert used == sum(trace.sizes.values())
    assert 50 * MIB < most < 3000 * MIB


def test_an_allocator_that_reserves_more_is_found(monkeypatch):
    trace = traces.language_model()
    reserved = traces.reserved_by(taeda, trace)
    monkeypatch.setattr(traces, "reserved_by_model", lambda trace: reserved - 2 * MIB)
    with pytest.raises(AssertionError, match=r"MiB, the model of PyTorch's algorithm \d+ MiB"):
        traces.compare(trace, None)


def reserved(*requests: int) -> int:
    model = Model()
    for block, bytes in enumerate(requests):
        model.allocate(block, bytes, 0)
    return model.reserved // MIB


def test_the_model_reserves_what_pytorch_documents():
    assert reserved(1) == reserved(MIB) == 2
    assert reserved(*[512] * 4096) == 2 and reserved(*[512] * 4097) == 4
    assert reserved(MIB + 1) == reserved(10 * MIB - 512) == 20
    assert reserved(10 * MIB) == 10 and reserved(11 * MIB + 1) == 12
    assert reserved(19 * MIB, MIB + 512) == 40  # a rest of up to 1 MiB is not cut off
    assert reserved(9 * MIB, 9 * MIB) == 20 and reserved(9 * MIB, 9 * MIB, 3 * MIB) == 40


def test_the_model_merges_neighbours_and_keeps_streams_apart():
    model = Model()
    for block in range(10):
        model.allocate(block, 2 * MIB, 0)
    assert model.reserved == 20 * MIB
    for block in (3, 5, 4):
        model.release(block)
    model.allocate(20, 6 * MIB, 0)
    assert model.reserved == 20 * MIB
    model.release(0)
    model.allocate(21, 2 * MIB, 1)
    assert model.reserved == 40 * MIB
    model.allocate(22, 2 * MIB, 0)
    assert model.reserved == 40 * MIB


def test_a_trace_knows_what_is_in_use():
    trace = Trace()
    first = trace.take(100)
    trace.brief(50, 1)
    assert trace.sizes == {first: 100}
    assert trace.events == [(1, 100, 0), (2, 50, 1), (2, 0, 0)]
