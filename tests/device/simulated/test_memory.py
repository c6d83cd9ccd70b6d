"""The allocator of device memory, as torch.cuda shows it."""

import pytest

import taeda as torch

RACE = 100_001


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
    assert "reserved_bytes" in torch.cuda.memory_summary()


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
    with pytest.raises(torch.OutOfMemoryError, match=r"the limit is 40\.96 MiB"):
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
