// Memory of CUDA devices and pinned memory of the host.
//
// Each device has a caching allocator (core/caching_allocator.h), whose blocks belong to the stream
// that was current when they were allocated. Pinned memory comes from one cache for all devices, in
// powers of two; a block that copies still use is handed out again when they have ended. Storages
// of device "cuda" come here through core's table (core/device_memory.h).
#pragma once

#include <cstdint>
#include <vector>

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
// At most this many bytes are reserved; 0: no limit but the device's.
void set_memory_limit(int device, int64_t bytes);
int64_t memory_limit(int device);

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
  int64_t allocated_bytes = 0, reserved_bytes = 0;
  int64_t allocations = 0, driver_allocations = 0;
};
PinnedStats pinned_stats();

}  // namespace taeda::cuda
