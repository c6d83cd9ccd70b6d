"""Snapshots and histories of device memory, as PyTorch's memory_viz reads them."""

import pickle

import pytest

import taeda as torch

KEYS = {
    "segment": {
        "device", "address", "total_size", "stream", "segment_type", "segment_pool_id",
        "allocated_size", "active_size", "requested_size", "is_expandable", "frames", "blocks",
    },
    "block": {"address", "size", "requested_size", "state", "frames"},
    "event": {"action", "addr", "size", "stream", "time_us", "frames"},
}  # fmt: skip


@pytest.fixture
def recorded(tmp_path):
    """The snapshot of a file, with blocks of each state, from an allocator that was recorded."""
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(clear_history=True)
    side = torch.cuda.Stream()
    held = torch.empty(6 << 20, device="cuda")
    small = torch.empty(100, device="cuda")
    pending = torch.empty(500, device="cuda")
    pending.record_stream(side)
    side.record_event()
    freed = torch.empty(300, device="cuda")
    del pending, freed
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda")
    path = tmp_path / "snapshot.pickle"
    torch.cuda.memory._dump_snapshot(path)
    torch.cuda.memory._record_memory_history(None, clear_history=True)
    del held, small
    with path.open("rb") as file:
        return pickle.load(file)


def test_a_snapshot_has_what_pytorchs_has(recorded):
    assert {"segments", "device_traces", "allocator_settings"} <= recorded.keys()
    assert len(recorded["device_traces"]) == 2
    for segment in recorded["segments"]:
        assert KEYS["segment"] <= segment.keys()
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        for block in segment["blocks"]:
            assert KEYS["block"] <= block.keys()
    events = recorded["device_traces"][0]
    for event in events:
        wanted = KEYS["event"] - {"addr"} if event["action"] == "oom" else KEYS["event"]
        assert wanted <= event.keys()
    actions = [e["action"] for e in events]
    for action in ("segment_alloc", "alloc", "free_requested", "free_completed", "oom"):
        assert action in actions
    (oom,) = [e for e in events if e["action"] == "oom"]
    assert oom["size"] == 4 << 40 and 0 < oom["device_free"] <= 4 << 30


def test_events_know_the_whole_stack(recorded):
    event = next(
        e for e in recorded["device_traces"][0] if e["action"] == "alloc" and e["size"] == 24 << 20
    )
    names = [f["name"] for f in event["frames"]]
    assert names[0] == "recorded" and len(names) > 3
    assert event["frames"][0]["filename"] == __file__
    line = open(__file__).read().split("\n")[event["frames"][0]["line"] - 1]
    assert "torch.empty(6 << 20" in line


def test_pytorchs_viewer_opens_it(recorded):
    viz = pytest.importorskip("torch").cuda._memory_viz
    assert "segments: " in viz.segsum(recorded)
    text = viz.trace(recorded)
    assert "cudaMalloc" in text and "OutOfMemoryError" in text and "del " in text
    lines = viz.segments(recorded, format_flamegraph=lambda text: text).strip().split("\n")
    assert len(lines) >= 4
    assert any("active_allocated" in x and "test_memory_history.py" in x for x in lines)
    assert viz.memory(recorded, format_flamegraph=lambda text: text)
    for plot in (viz.trace_plot, viz.segment_plot):
        assert "MemoryViz.js" in plot(recorded)
    assert viz.trace_plot(recorded, filter_freed=True)


def test_the_history_is_bounded_and_filtered():
    record = torch.cuda.memory._record_memory_history
    record(max_entries=5, clear_history=True, skip_actions=["free_requested"])
    for _ in range(4):
        torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(100))
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    assert [e["action"] for e in events] == ["free_completed", "alloc", "free_completed"]
    assert [e["time_us"] for e in events] == sorted(e["time_us"] for e in events)
    record(None, clear_history=True)
    torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(100))
    assert torch.cuda.memory._snapshot()["device_traces"] == [[], []]


def test_wrong_arguments_are_refused():
    record = torch.cuda.memory._record_memory_history
    for wrong in ({"enabled": "most"}, {"context": "x"}, {"stacks": "c"}, {"skip_actions": ["no"]}):
        with pytest.raises(RuntimeError):
            record(**wrong)


def test_the_stack_of_a_tensor():
    torch.cuda.memory._record_memory_history("state", clear_history=True)
    x = torch.empty(10, device="cuda")
    frames = torch.cuda.memory._allocation_traceback(x.untyped_storage().data_ptr())
    assert frames[0]["name"] == "test_the_stack_of_a_tensor"
    assert torch.cuda.memory._allocation_traceback(12345) is None
    torch.cuda.memory._record_memory_history(None)
