// What storages take. The counter: bytes of CPU storages that the calling thread has allocated less
// those that it has released, as they were asked for, while anybody counts them. A thread may
// release what another allocated, or what was not counted: the number can be negative.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taeda {

// Of the memory that a storage and the data of a small one take together.
constexpr size_t kStorageBlockBytes = 128;

extern constinit thread_local int64_t live_storage_bytes __attribute__((tls_model("initial-exec")));

// How many profiles want them counted, of all threads.
inline constinit std::atomic<int> storage_bytes_counters{0};

}  // namespace taeda
