#include "device/pinned.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/event_pool.h"
#include "device/graph.h"
#include "device/memory.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kSmallest = 512;

struct Block {
  int64_t bytes = 0;
  std::vector<Stream> streams;  // that use it
};
// A block that was released while streams may use it.
struct Pending {
  void* memory;
  int64_t bytes;
  std::vector<PooledEvent> events;
  bool passed() const {
    return std::all_of(events.begin(), events.end(), [](const auto& e) { return e.query(); });
  }
};

// The driver is never called with the lock held: such calls may take long, or wait for a callback.
struct Cache {
  std::mutex mutex;
  std::map<const char*, Block> allocated;      // by address
  std::map<int64_t, std::vector<void*>> free;  // by size
  std::deque<Pending> pending;
  // Released while work was captured, when no event may be recorded or asked for.
  std::vector<std::pair<void*, Block>> parked;
  // One block of the driver's that others are cut from, if the options ask for it.
  char *reserve = nullptr, *reserve_end = nullptr, *reserve_next = nullptr;
  std::map<const void*, bool> registered;  // blocks of the system's that the driver was told of
  PinnedStats stats;

  std::map<const char*, Block>::iterator find(const void* address) {
    auto block = allocated.upper_bound(static_cast<const char*>(address));
    if (block == allocated.begin()) return allocated.end();
    --block;
    const bool inside = static_cast<const char*>(address) < block->first + block->second.bytes;
    return inside ? block : allocated.end();
  }
  void put_free(void* memory, int64_t bytes) {
    free[bytes].push_back(memory);
    stats.active_blocks.add(-1);
    stats.active_bytes.add(-bytes);
  }
  bool in_reserve(const void* memory) const { return memory >= reserve && memory < reserve_end; }
};

Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

// Pending blocks whose events have passed become free. The first one that has not ends the search:
// they were released in that order.
void process_pending() {
  Cache& c = cache();
  if (any_capturing()) return;
  while (true) {
    Pending first;
    {
      const std::lock_guard<std::mutex> lock(c.mutex);
      if (c.pending.empty()) return;
      first = std::move(c.pending.front());
      c.pending.pop_front();
    }
    const bool passed = first.passed();
    const std::lock_guard<std::mutex> lock(c.mutex);
    if (!passed) return c.pending.push_front(std::move(first));
    c.put_free(first.memory, first.bytes);
  }
}

void* take_free(int64_t bytes) {
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  auto& blocks = c.free[bytes];
  if (!blocks.empty()) {
    void* const memory = blocks.back();
    blocks.pop_back();
    return memory;
  }
  if (c.reserve_end - c.reserve_next < bytes) return nullptr;
  return std::exchange(c.reserve_next, c.reserve_next + bytes);
}

class Stopwatch {
 public:
  int64_t us() const {
    return (std::chrono::steady_clock::now() - start_) / std::chrono::microseconds(1);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void* allocate_from_driver(int64_t bytes, bool registering) {
  const DeviceApi& driver = use_device(current_device());
  const RelaxedCapture relaxed;
  const Stopwatch watch;
  void* memory = nullptr;
  const auto size = static_cast<size_t>(bytes);
  if (registering) {
    if (posix_memalign(&memory, 4096, size) != 0) fail_status(kOutOfMemory);
    if (const Status status = driver.host_register(memory, size, kHostRegisterPortable)) {
      std::free(memory);
      fail_status(status);
    }
  } else {
    check(driver.host_allocate(&memory, size, kHostPortable));
  }
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  if (registering) c.registered[memory] = true;
  c.stats.allocate_times.add(watch.us());
  c.stats.blocks.add(1);
  c.stats.bytes.add(bytes);
  return memory;
}

void release_to_driver(void* memory, int64_t bytes, bool registered) {
  const DeviceApi& driver = use_device(current_device());
  const Stopwatch watch;
  check(registered ? driver.host_unregister(memory) : driver.host_release(memory));
  if (registered) std::free(memory);
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.stats.release_times.add(watch.us());
  c.stats.blocks.add(-1);
  c.stats.bytes.add(-bytes);
}

// The block that smaller ones are cut from, once.
void make_reserve(const AllocatorOptions& options) {
  Cache& c = cache();
  if (options.pinned_reserve_bytes == 0) return;
  {
    const std::lock_guard<std::mutex> lock(c.mutex);
    if (c.reserve) return;
  }
  const int64_t bytes = options.pinned_reserve_bytes;
  auto* const memory =
      static_cast<char*>(allocate_from_driver(bytes, options.pinned_by_registering));
  const std::lock_guard<std::mutex> lock(c.mutex);
  if (c.reserve) return;  // another thread was faster; this one's stays
  c.reserve = c.reserve_next = memory;
  c.reserve_end = memory + bytes;
}

// Powers of two; pages only for blocks beyond the options' bound.
int64_t rounded(int64_t nbytes, const AllocatorOptions& options) {
  constexpr int64_t kPage = 4096;
  if (nbytes > options.pinned_max_round_bytes) return (nbytes + kPage - 1) / kPage * kPage;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(nbytes, kSmallest))));
}

void wait_for_streams(void* memory, const Block& block) {
  Pending pending{memory, block.bytes, {}};
  for (const Stream stream : block.streams) pending.events.emplace_back(stream);
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.pending.push_back(std::move(pending));
}

}  // namespace

void PinnedStats::Times::add(int64_t us) {
  total_us += us;
  max_us = std::max(max_us, us);
  min_us = count == 0 ? us : std::min(min_us, us);
  count++;
}

void* allocate_pinned(int64_t nbytes) {
  if (nbytes == 0) return nullptr;
  use_device(current_device());
  TD_CHECK_VALUE(nbytes > 0 && nbytes < INT64_MAX / 4, "pinned memory: cannot allocate {} bytes",
                 nbytes);
  process_pending();
  const AllocatorOptions options = allocator_options();
  make_reserve(options);
  const int64_t bytes = rounded(nbytes, options);
  void* memory = take_free(bytes);
  if (!memory) memory = allocate_from_driver(bytes, options.pinned_by_registering);
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.allocated[static_cast<const char*>(memory)] = {bytes, {}};
  c.stats.active_blocks.add(1);
  c.stats.active_bytes.add(bytes);
  return memory;
}

void release_pinned(void* memory) noexcept {
  if (!memory || is_forked_child()) return;
  Cache& c = cache();
  Block block;
  {
    const std::lock_guard<std::mutex> lock(c.mutex);
    const auto found = c.allocated.find(static_cast<const char*>(memory));
    if (found == c.allocated.end()) return;
    block = std::move(found->second);
    c.allocated.erase(found);
    if (block.streams.empty()) return c.put_free(memory, block.bytes);
    if (any_capturing()) return c.parked.emplace_back(memory, std::move(block)), void();
  }
  try {
    wait_for_streams(memory, block);
  } catch (const Error&) {
    // The device is lost; nobody may use the block again.
  }
}

void release_pinned_after_capture() {
  std::vector<std::pair<void*, Block>> parked;
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    parked.swap(cache().parked);
  }
  for (const auto& [memory, block] : parked) wait_for_streams(memory, block);
}

bool is_pinned(const void* address) {
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  return c.find(address) != c.allocated.end();
}

void record_pinned_use(const void* address, Stream stream) {
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  const auto block = c.find(address);
  if (block == c.allocated.end()) return;
  auto& streams = block->second.streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void empty_pinned_cache() {
  if (!is_initialized() || any_capturing()) return;
  process_pending();
  struct Idle {
    void* memory;
    int64_t bytes;
    bool registered;
  };
  std::vector<Idle> idle;
  Cache& c = cache();
  {
    const std::lock_guard<std::mutex> lock(c.mutex);
    for (auto& [bytes, blocks] : c.free) {
      for (void* const memory : blocks)
        if (!c.in_reserve(memory)) idle.push_back({memory, bytes, c.registered.erase(memory) > 0});
      std::erase_if(blocks, [&](const void* memory) { return !c.in_reserve(memory); });
    }
  }
  for (const Idle& block : idle) release_to_driver(block.memory, block.bytes, block.registered);
}

void reset_peak_pinned_stats() {
  PinnedStats& s = cache().stats;
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto* level : {&s.blocks, &s.bytes, &s.active_blocks, &s.active_bytes})
    level->peak = level->current;
}

void reset_accumulated_pinned_stats() {
  PinnedStats& s = cache().stats;
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto* level : {&s.blocks, &s.bytes, &s.active_blocks, &s.active_bytes})
    level->added = level->freed = 0;
  s.allocate_times = s.release_times = {};
}

PinnedStats pinned_stats() {
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  return c.stats;
}

}  // namespace taeda::cuda
