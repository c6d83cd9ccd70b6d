// CPU memory for storages: 64-byte aligned, uninitialised, cached.
//
// Up to 1 MiB a block comes from the calling thread's own lists, by size class, without a lock.
// Behind them stands the C library for blocks up to 32 KiB and the caching allocator above, whose
// segments are memory maps on huge pages where the kernel gives them: large blocks are handed out
// again without being faulted in again. Segments that were not used for ten seconds go back to the
// system, and all cached ones do before memory runs out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory_stats.h"

namespace taeda {

// OutOfMemoryError when the system has none. Zero bytes give null.
void* allocate_cpu(int64_t nbytes);
// `nbytes` as it was asked for.
void release_cpu(void* memory, int64_t nbytes);

// Bytes of the block above 32 KiB that begins at this address, whole pages that it has to itself;
// 0 where none does.
int64_t cpu_block_bytes(const void* memory);
// From now on each block above 32 KiB that is released is asked about first; what is not to be used
// again stays as it is.
void ask_before_release(bool (*may_be_used_again)(void*));

// Gives cached memory back to the system: the caching allocator's and the calling thread's.
void empty_cpu_cache();

// Statistics of the caching allocator: blocks above 32 KiB, including those kept in threads' lists.
MemoryStats cpu_memory_stats();
void reset_cpu_peak_stats();
std::vector<SegmentInfo> cpu_memory_snapshot();
// Bytes of all CPU storages above 64 bytes that are alive, in rounded sizes.
int64_t cpu_live_bytes();
// At most this much is reserved by the caching allocator; 0: the machine's memory, or the least
// that this process's cgroups allow. Under a cgroup's limit nothing is reserved either that would
// not fit beside what the cgroup's processes use already.
void set_cpu_memory_limit(int64_t bytes);
int64_t cpu_memory_limit();

}  // namespace taeda
