// What an allocator says about itself: counters, and a list of its segments and blocks.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda {

struct MemoryStats {
  struct Level {
    int64_t current = 0, peak = 0, added = 0;  // added: ever
    void add(int64_t amount) {
      current += amount;
      if (amount > 0) added += amount;
      if (current > peak) peak = current;
    }
  };
  Level allocated_bytes;  // in use by storages, rounded sizes
  Level requested_bytes;  // the same as asked for
  Level reserved_bytes;   // taken from the device
  Level pending_bytes;    // freed, but streams still work on them
  Level blocks;           // in use
  Level segments;
  int64_t allocations = 0;         // calls, ever
  int64_t device_allocations = 0;  // calls to the device, ever
  int64_t device_releases = 0;
  int64_t collections = 0;    // times that the cache was released to make room
  int64_t out_of_memory = 0;  // OutOfMemoryErrors raised

  void reset_peaks() {
    for (Level* level : {&allocated_bytes, &requested_bytes, &reserved_bytes, &pending_bytes,
                         &blocks, &segments}) {
      level->peak = level->current;
    }
  }
};

struct BlockInfo {
  enum class State : uint8_t { kFree, kAllocated, kPending };
  void* address;
  int64_t bytes;
  int64_t requested_bytes;
  State state;
};

struct SegmentInfo {
  void* address;
  int64_t bytes;
  int64_t stream;
  bool small_pool;
  std::vector<BlockInfo> blocks;  // by address
};

}  // namespace taeda
