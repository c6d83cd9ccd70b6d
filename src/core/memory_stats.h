// What an allocator says about itself: counters, a list of its segments and blocks, and a history.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
  // Of all blocks, and of those of the small and the large pools.
  struct Levels : Level {
    Level small_pool, large_pool;
    void add(int64_t amount, bool small) {
      Level::add(amount);
      (small ? small_pool : large_pool).add(amount);
    }
  };
  Levels allocated_bytes;       // in use by storages, rounded sizes
  Levels requested_bytes;       // the same as asked for
  Levels reserved_bytes;        // taken from the device
  Levels active_bytes;          // in use by storages or by work that has not ended
  Levels inactive_split_bytes;  // free, in segments that are in use
  Level pending_bytes;          // freed, but streams still work on them
  Levels blocks;                // in use
  Levels active_blocks;
  Levels inactive_split;
  Levels segments;
  Level oversize_blocks, oversize_segments;  // of max_split_size and more
  int64_t allocations = 0;                   // calls, ever
  int64_t device_allocations = 0;            // calls to the device, ever
  int64_t device_releases = 0;
  int64_t collections = 0;      // times that the cache was released to make room
  int64_t waits = 0;            // times that all events were waited for
  int64_t out_of_memory = 0;    // OutOfMemoryErrors raised
  int64_t rejected = 0;         // of these before the device was asked
  int64_t borrowed_blocks = 0;  // times that a stream took another one's free block

  void reset_peaks() {
    for_each_level([](Level& level) { level.peak = level.current; });
  }
  // What was counted ever starts over.
  void reset_accumulated() {
    for_each_level([](Level& level) { level.added = level.freed = 0; });
    allocations = device_allocations = device_releases = collections = 0;
    waits = out_of_memory = rejected = borrowed_blocks = 0;
  }

 private:
  template <class F>
  void for_each_level(F f) {
    for (Levels* l : {&allocated_bytes, &requested_bytes, &reserved_bytes, &active_bytes,
                      &inactive_split_bytes, &blocks, &active_blocks, &inactive_split, &segments}) {
      f(*l);
      f(l->small_pool);
      f(l->large_pool);
    }
    for (Level* l : {&pending_bytes, &oversize_blocks, &oversize_segments}) f(*l);
  }
};

// Where memory was asked for: made by whoever knows the program's stack, kept with the block.
class MemoryContext {
 public:
  struct Frame {
    std::string file;
    int line;
    std::string function;
  };
  virtual ~MemoryContext() = default;
  // Innermost first. May take a lock of its own: not to be called with an allocator's held.
  virtual std::vector<Frame> frames() const = 0;
};
using MemoryContextRef = std::shared_ptr<const MemoryContext>;

// A pool's name as PyTorch has it: (0, 0) the default pool, (0, n) a program's, (n, 0) a graph's.
using PoolName = std::pair<int64_t, int64_t>;

struct BlockInfo {
  // Unmapped: addresses of an expandable segment without memory behind them.
  enum class State : uint8_t { kFree, kAllocated, kPending, kUnmapped };
  void* address;
  int64_t bytes;
  int64_t requested_bytes;
  State state;
  MemoryContextRef context = nullptr;
};

struct SegmentInfo {
  void* address;
  int64_t bytes;
  int64_t stream;
  bool small_pool;
  std::vector<BlockInfo> blocks;  // by address
  bool expandable = false;
  PoolName pool = {0, 0};
};

// One line of an allocator's history.
struct MemoryEvent {
  enum class Action : uint8_t {
    kAllocate,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAllocate,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOutOfMemory,
    kSnapshot,
  };
  Action action;
  const void* address;
  int64_t bytes;
  int64_t stream;
  int64_t time_us;                // since 1970
  int64_t device_free_bytes = 0;  // of kOutOfMemory
  PoolName pool = {0, 0};
  MemoryContextRef context = nullptr;
};

// What an OutOfMemoryError says, taken while the allocator's lock was held.
struct OutOfMemory {
  int64_t wanted_bytes = 0;
  std::string device_name;  // "CUDA"
  std::string device_text;  // a sentence of the device's, with a blank before it
  int64_t allocated_bytes = 0, reserved_bytes = 0, private_bytes = 0, limit_bytes = 0;
  // All blocks in use that say where they come from.
  std::vector<std::pair<int64_t, MemoryContextRef>> holders;
};
// OutOfMemoryError, in PyTorch's words where there is a device's text; names the places that hold
// the most.
[[noreturn]] void raise_out_of_memory(const OutOfMemory& what);

}  // namespace taeda
