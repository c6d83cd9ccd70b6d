// Memory of CUDA devices and pinned memory of the host.
//
// Each device has a caching allocator (core/caching_allocator.h), whose blocks belong to the stream
// that was current when they were allocated. Pinned memory comes from one cache for all devices, in
// powers of two; a block that copies still use is handed out again when they have ended. Storages
// of device "cuda" come here through core's table (core/device_memory.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/allocator_options.h"
#include "core/memory_stats.h"
#include "device/stream.h"

namespace taeda::cuda {

// On the thread's current stream of the device; OutOfMemoryError when there is none. Zero bytes
// give null.
void* allocate(int64_t nbytes, int device);
// May run in destructors: raises nothing.
void release(void* memory, int device) noexcept;
// `stream` uses the block besides the stream that it was allocated on.
void record_stream(void* memory, int device, Stream stream);

void empty_cache(int device);
MemoryStats memory_stats(int device);
void reset_peak_stats(int device);
void reset_accumulated_stats(int device);
std::vector<SegmentInfo> memory_snapshot(int device);
// Where the block at an address was asked for; null where that is not known.
MemoryContextRef memory_context(int device, const void* address);
// At most this many bytes are reserved; 0: no limit but the device's.
void set_memory_limit(int device, int64_t bytes);
int64_t memory_limit(int device);

// --- options: TAEDA_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, the first that
// is set; ValueError for what PyTorch would refuse ---
AllocatorOptions allocator_options();
void set_allocator_options(const std::string& text);

// --- private pools (core/caching_allocator.h) ---
void retain_pool(int device, const PoolName& name, bool use_on_oom = false, bool no_split = false);
void release_pool(int device, const PoolName& name);
int pool_uses(int device, const PoolName& name);
std::map<PoolName, MemoryStats::Levels> private_reserved_bytes(int device);
void begin_capture(int device);
void end_capture(int device);

// --- history ---
// Asked at each allocation where in the program it is; null asks nobody.
using MemoryContextHook = MemoryContextRef (*)();
void set_memory_context_hook(MemoryContextHook hook);
void record_memory_history(int device, bool on, size_t max_events, bool clear);
std::vector<MemoryEvent> memory_history(int device);

// Copies between any two of the host and the devices, on the current stream of the target's device,
// or of the source's where the target is the host (-1). Between devices the current streams of both
// wait for the copy. A copy from or to the host has ended when the call returns, unless it is
// non-blocking and the host's memory is pinned.
void copy(void* to, int to_device, const void* from, int from_device, int64_t nbytes,
          bool non_blocking);

// --- pinned memory ---
void* allocate_pinned(int64_t nbytes);
void release_pinned(void* memory) noexcept;
// Whether the address lies in pinned memory that is allocated.
bool is_pinned(const void* address);
void empty_pinned_cache();
struct PinnedStats {
  struct Times {
    int64_t total_us = 0, max_us = 0, min_us = 0, count = 0;
    void add(int64_t us);
  };
  MemoryStats::Level blocks, bytes;                // taken from the driver
  MemoryStats::Level active_blocks, active_bytes;  // in use by the program or by copies
  Times allocate_times, release_times;             // of the driver's calls
};
PinnedStats pinned_stats();
void reset_peak_pinned_stats();
void reset_accumulated_pinned_stats();

}  // namespace taeda::cuda
