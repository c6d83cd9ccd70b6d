"""The allocator of device memory, as torch.cuda shows it."""

import itertools
import re
from contextlib import contextmanager

import pytest

import taeda as torch


@contextmanager
def settings(text):
    """The allocator's options, of an allocator without memory of its own."""
    torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings(text)
    try:
        yield
    finally:
        torch.cuda.memory._set_allocator_settings("")
        torch.cuda.empty_cache()


def counter(name, device=None):
    return torch.cuda.memory_stats(device)[name]


def test_statistics():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    address = torch.cuda.caching_allocator_alloc(1000)
    assert torch.cuda.memory_allocated() - before == 1024
    assert torch.cuda.memory_reserved() >= 2 << 20
    (segment,) = [
        s
        for s in torch.cuda.memory_snapshot()
        if s["address"] <= address < s["address"] + s["total_size"]
    ]
    assert (segment["device"], segment["segment_type"]) == (0, "small")
    torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 1024
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    stats = torch.cuda.memory_stats()
    assert (
        stats["allocation.all.allocated"] - stats["allocation.all.freed"]
        == (stats["allocation.all.current"])
    )
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0


def test_memory_of_each_device_is_counted_apart():
    before = torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1)
    address = torch.cuda.caching_allocator_alloc(512, device=1)
    assert torch.cuda.memory_allocated(0) == before[0]
    assert torch.cuda.memory_allocated("cuda:1") == before[1] + 512
    torch.cuda.caching_allocator_delete(address)


def test_cache_is_emptied_before_memory_runs_out(simulator):
    address = torch.cuda.caching_allocator_alloc(30 << 20)
    torch.cuda.caching_allocator_delete(address)
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    simulator.planned.allocation(1)
    address = torch.cuda.caching_allocator_alloc(40 << 20)
    assert torch.cuda.memory_stats()["num_alloc_retries"] == retries + 1
    torch.cuda.caching_allocator_delete(address)


def test_out_of_memory():
    with pytest.raises(torch.cuda.OutOfMemoryError) as error:
        torch.cuda.caching_allocator_alloc(1 << 40)
    text = str(error.value)
    assert text.startswith(
        "CUDA out of memory. Tried to allocate 1.00 TiB. GPU 0 has a total capacity of 4.00 GiB of "
        "which"
    )


def test_fraction_of_the_memory():
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01)
    assert torch.cuda.get_per_process_memory_fraction() == pytest.approx(0.01, rel=1e-6)
    with pytest.raises(torch.OutOfMemoryError, match=r"40\.96 MiB allowed; Of the allocated"):
        torch.cuda.caching_allocator_alloc(41 << 20)
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(41 << 20))


def test_a_block_goes_to_its_own_stream_first(simulator):
    side = torch.cuda.Stream()
    address = torch.cuda.caching_allocator_alloc(4000, stream=side)
    simulator.add(side, address, 1000)
    torch.cuda.caching_allocator_delete(address)
    other = torch.cuda.caching_allocator_alloc(4000)  # the default stream's
    assert other != address
    assert simulator.add(torch.cuda.default_stream(), other, 1000) == 0
    again = torch.cuda.caching_allocator_alloc(4000, stream=side)
    assert again == address
    assert simulator.add(side, again, 1000) == 0
    for block in (other, again):
        torch.cuda.caching_allocator_delete(block)


def test_generators():
    generator = torch.Generator(device="cuda")
    assert generator.device == torch.device("cuda", 0)
    assert repr(generator) == f"<torch.Generator device='cuda:0' seed={generator.initial_seed()}>"
    torch.cuda.manual_seed_all(7)
    assert [g.initial_seed() for g in torch.cuda.default_generators] == [7, 7]
    torch.manual_seed(9)
    assert torch.cuda.initial_seed() == 9
    state = torch.cuda.get_rng_state()
    assert state.tolist() == [9, *[0] * 15]
    generator.set_offset(8)
    torch.cuda.set_rng_state(generator.get_state(), 1)
    assert torch.cuda.default_generators[1].get_offset() == 8
    torch.cuda.set_rng_state_all([state, state])
    assert torch.cuda.default_generators[1].get_offset() == 0
    with pytest.raises(RuntimeError, match="does not use an offset"):
        torch.default_generator.get_offset()


# --- PyTorch's own code and documentation as the oracle of names and of the table ---


def documented_keys():
    """The names that PyTorch's docstring of memory_stats lists, its braces expanded."""
    pytorch = pytest.importorskip("torch")
    for name in re.findall(r'``"([^"]+)"``', pytorch.cuda.memory.memory_stats.__doc__):
        parts = [p.strip("{}").split(",") for p in re.findall(r"\{[^}]*\}|[^.{}]+", name)]
        yield from (".".join(key) for key in itertools.product(*parts))


def test_counters_have_the_names_that_pytorch_documents():
    torch.zeros(1, device="cuda")
    stats = torch.cuda.memory_stats()
    # The docstring says "allocated.", PyTorch's own memory_summary reads "allocation.".
    wanted = {k.replace("allocated.", "allocation.", 1) for k in documented_keys()}
    wanted -= {"reserved_bytes_by_private_pools", "reserved_bytes", "_", "0_1"}  # of its prose
    assert len(wanted) > 100
    assert wanted <= stats.keys()
    assert all(isinstance(v, int) for v in stats.values())


@pytest.mark.parametrize("abbreviated", [False, True])
def test_the_summary_is_the_table_that_pytorch_prints(monkeypatch, abbreviated):
    memory = pytest.importorskip("torch").cuda.memory
    held = [torch.cuda.caching_allocator_alloc(n) for n in (1, 700 << 10, 5 << 20, 900 << 20)]
    with pytest.raises(torch.OutOfMemoryError):
        torch.cuda.caching_allocator_alloc(1 << 40)
    monkeypatch.setattr(memory, "memory_stats", lambda device: torch.cuda.memory_stats(device))
    monkeypatch.setattr(memory, "_get_device_index", lambda device, optional: 0)
    assert torch.cuda.memory_summary(0, abbreviated) == memory.memory_summary(0, abbreviated)
    for address in held:
        torch.cuda.caching_allocator_delete(address)


@pytest.mark.parametrize(
    "text",
    [
        "max_split_size_mb:10", "max_split_size_mb:20", "max_split_size_mb:x", "",
        "garbage_collection_threshold:0.8", "garbage_collection_threshold:1.5",
        "garbage_collection_threshold:0", "roundup_power2_divisions:4",
        "roundup_power2_divisions:3", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "roundup_power2_divisions:[256:1,512:3]", "roundup_power2_divisions:[300:1]",
        "expandable_segments:True", "expandable_segments:true", "expandable_segments:1",
        "pinned_use_background_threads:no", "large_segment_size_mb:10",
        "max_split_size_mb:40,garbage_collection_threshold:0.6", "max_split_size_mb:40,",
        "max_split_size_mb:40,,expandable_segments:True", " max_split_size_mb : 40 ",
    ],
)  # fmt: skip
def test_options_are_refused_where_and_as_pytorch_refuses_them(text):
    pytorch = pytest.importorskip("torch")
    refused = None
    try:
        pytorch._C._accelerator_setAllocatorSettings(text)
    except ValueError as error:
        refused = str(error).split("\n")[0]
    if refused is None:
        with settings(text):
            pass
    else:
        with pytest.raises(ValueError) as error:
            torch.cuda.memory._set_allocator_settings(text)
        if refused != "stoull":  # the C++ function that found no number
            assert str(error.value) == refused


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="Unrecognized key 'split' in Accelerator allocator"):
        torch.cuda.memory._set_allocator_settings("split:1")
    with pytest.raises(NotImplementedError, match="cudaMallocAsync"):
        torch.cuda.memory._set_allocator_settings("backend:cudaMallocAsync")


# --- options in use ---


def test_expandable_segments_grow_in_place(simulator):
    with settings("expandable_segments:True"):
        first = torch.cuda.caching_allocator_alloc(30 << 20)
        second = torch.cuda.caching_allocator_alloc(30 << 20)
        assert second == first + (30 << 20)
        # Work reaches memory behind reserved addresses, across its granules.
        stream = torch.cuda.current_stream()
        assert simulator.add(stream, first + (19 << 20), 2 << 18) == 0
        (segment,) = [s for s in torch.cuda.memory_snapshot() if s["is_expandable"]]
        assert (segment["total_size"], segment["active_size"]) == (60 << 20, 60 << 20)
        torch.cuda.caching_allocator_delete(first)
        free = torch.cuda.mem_get_info()[0]
        torch.cuda.empty_cache()
        assert torch.cuda.mem_get_info()[0] == free + (20 << 20)
        torch.cuda.caching_allocator_delete(second)
    assert not [s for s in torch.cuda.memory_snapshot() if s["is_expandable"]]


def test_tensors_live_in_expandable_segments():
    with settings("expandable_segments:True"):
        x = torch.arange(1000.0).cuda()
        y = torch.empty(3 << 20, device="cuda").fill_(2)
        z = x.clone()
        assert z.tolist() == list(range(1000))
        assert y[-1].item() == 2
        del x, y, z


def test_requests_are_rounded_up():
    with settings("roundup_power2_divisions:4"):
        before = torch.cuda.memory_allocated()
        address = torch.cuda.caching_allocator_alloc(1200 << 10)
        assert torch.cuda.memory_allocated() - before == 1280 << 10
        torch.cuda.caching_allocator_delete(address)


def test_another_streams_memory_is_borrowed_before_memory_ends(simulator):
    torch.cuda.empty_cache()
    side = torch.cuda.Stream()
    held = [torch.cuda.caching_allocator_alloc(n << 20, stream=side) for n in (7, 8)]
    simulator.add(side, held[1], 100)
    torch.cuda.caching_allocator_delete(held[1])
    simulator.planned.allocation(1)
    first = torch.cuda.caching_allocator_alloc(9 << 20)  # a segment of its own
    torch.cuda.set_per_process_memory_fraction(0.0098)  # 40.1 MiB: no third segment
    second = torch.cuda.caching_allocator_alloc(9 << 20)
    with_third = torch.cuda.caching_allocator_alloc(8 << 20)
    assert with_third == held[1]
    # The side stream's work on it comes first: no race.
    assert simulator.add(torch.cuda.current_stream(), with_third, 100) == 0
    torch.cuda.set_per_process_memory_fraction(1.0)
    for address in (first, second, with_third, held[0]):
        torch.cuda.caching_allocator_delete(address)


def test_out_of_memory_names_the_lines_that_hold_the_most():
    large = torch.empty(3 << 20, device="cuda")
    also = torch.nn.Linear(1000, 1000, device="cuda")  # asked for inside the package
    with pytest.raises(torch.cuda.OutOfMemoryError) as error:
        torch.empty(1 << 40, device="cuda")
    lines = str(error.value).split("\n")
    assert lines[1] == "The most memory is held by what was allocated:"
    here = [line for line in lines[2:] if "test_out_of_memory_names_the_lines" in line]
    assert re.fullmatch(r"  12\.00 MiB at .*test_memory\.py:\d+ \(test_out_.*\)", here[0])
    assert re.fullmatch(r"  3\.82 MiB at .*test_memory\.py:\d+ \(test_out_.*\)", here[1])
    assert len(lines) <= 7
    del large, also


# --- pools ---


def test_a_storage_without_bytes_gives_its_block_back():
    before = torch.cuda.memory_allocated()
    x = torch.arange(1 << 20, device="cuda")
    storage = x.untyped_storage()
    storage.resize_(0)
    assert storage.nbytes() == 0 and storage.data_ptr() == 0
    assert torch.cuda.memory_allocated() == before
    storage.resize_(8 << 20)
    assert torch.cuda.memory_allocated() - before == 8 << 20
    x.copy_(torch.arange(1 << 20))
    assert x[-1].item() == (1 << 20) - 1


def test_a_pool_of_ones_own():
    pool = torch.cuda.MemPool()
    assert pool.id[0] == 0 and pool.use_count() == 1
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        x = torch.empty(1000, device="cuda")
    y = torch.empty(1000, device="cuda")
    (segment,) = pool.snapshot()
    assert segment["segment_pool_id"] == pool.id
    assert segment["address"] <= x.data_ptr() < segment["address"] + segment["total_size"]
    assert not segment["address"] <= y.data_ptr() < segment["address"] + segment["total_size"]
    key = f"reserved_bytes_by_private_pools.0_{pool.id[1]}.all.current"
    assert counter(key) == 2 << 20
    name = pool.id
    del x, pool
    torch.cuda.empty_cache()
    assert not torch.cuda.memory_snapshot(name)
    assert key not in torch.cuda.memory_stats()


def test_pools_are_the_threads_own_and_may_be_nested():
    import threading

    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool(no_split=True)
    made = {}
    with torch.cuda.use_mem_pool(outer):
        with torch.cuda.use_mem_pool(inner):
            made["inner"] = torch.empty(10, device="cuda")
        made["outer"] = torch.empty(10, device="cuda")
        thread = threading.Thread(target=lambda: made.update(none=torch.empty(10, device="cuda")))
        thread.start()
        thread.join()
    pools = {}
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            pools[block["address"]] = segment["segment_pool_id"]
    assert pools[made["inner"].data_ptr()] == inner.id
    assert pools[made["outer"].data_ptr()] == outer.id
    assert pools[made["none"].data_ptr()] == (0, 0)


# --- pinned memory ---


def test_pinned_memory_is_counted():
    stats = torch.cuda.host_memory_stats
    x = torch.empty(3000).pin_memory()  # 12,000 bytes
    before = stats()
    y = torch.empty(3000).pin_memory()
    now = stats()
    assert now["active_requests.current"] == before["active_requests.current"] + 1
    assert now["active_bytes.current"] == before["active_bytes.current"] + 16384
    assert now["num_host_alloc"] - now["num_host_free"] == now["allocations.current"]
    assert now["host_alloc_time.count"] == now["num_host_alloc"]
    address = y.data_ptr()
    del y
    assert torch.empty(2500).pin_memory().data_ptr() == address
    del x
    torch.cuda.reset_peak_host_memory_stats()
    assert stats()["active_bytes.peak"] == stats()["active_bytes.current"]
    torch.cuda.reset_accumulated_host_memory_stats()
    assert stats()["num_host_alloc"] == 0


def test_pinned_memory_of_the_systems():
    from taeda import _C

    _C._cuda_empty_pinned_cache()
    with settings("pinned_use_cuda_host_register:True,pinned_max_round_threshold_mb:1"):
        active = torch.cuda.host_memory_stats()["active_bytes.current"]
        x = torch.full((3 << 18,), 3.0).pin_memory()  # 3 MiB, which is not rounded to 4
        assert x.is_pinned()
        assert torch.cuda.host_memory_stats()["active_bytes.current"] - active == 3 << 20
        assert x.to("cuda", non_blocking=True).sum().item() == 3 * (3 << 18)
        del x
        freed = torch.cuda.host_memory_stats()["num_host_free"]
        torch.cuda.synchronize()
        _C._cuda_empty_pinned_cache()
        assert torch.cuda.host_memory_stats()["num_host_free"] == freed + 1
