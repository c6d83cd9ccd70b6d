// What an allocator says about itself: counters, and a list of its segments and blocks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace taeda {

struct MemoryStats {
  struct Level {
    int64_t current = 0, peak = 0, added = 0, freed = 0;  // the last two: ever
    void add(int64_t amount) {
      current += amount;
      (amount > 0 ? added : freed) += amount > 0 ? amount : -amount;
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
    for (Level* level : levels()) level->peak = level->current;
  }
  // What was counted ever starts over.
  void reset_accumulated() {
    for (Level* level : levels()) level->added = level->freed = 0;
    allocations = device_allocations = device_releases = collections = out_of_memory = 0;
  }

 private:
  std::array<Level*, 6> levels() {
    return {&allocated_bytes, &requested_bytes, &reserved_bytes,
            &pending_bytes,   &blocks,          &segments};
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
