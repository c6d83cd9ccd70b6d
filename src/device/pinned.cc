#include "device/pinned.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/event_pool.h"
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
  PinnedStats stats;

  std::map<const char*, Block>::iterator find(const void* address) {
    auto block = allocated.upper_bound(static_cast<const char*>(address));
    if (block == allocated.begin()) return allocated.end();
    --block;
    const bool inside = static_cast<const char*>(address) < block->first + block->second.bytes;
    return inside ? block : allocated.end();
  }
  void put_free(void* memory, int64_t bytes) { free[bytes].push_back(memory); }
};

Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

// Pending blocks whose events have passed become free. The first one that has not ends the search:
// they were released in that order.
void process_pending() {
  Cache& c = cache();
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
  if (blocks.empty()) return nullptr;
  void* const memory = blocks.back();
  blocks.pop_back();
  return memory;
}

}  // namespace

void* allocate_pinned(int64_t nbytes) {
  if (nbytes == 0) return nullptr;
  const DeviceApi& driver = use_device(current_device());
  process_pending();
  const auto bytes =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(nbytes, kSmallest))));
  Cache& c = cache();
  void* memory = take_free(bytes);
  const bool fresh = !memory;
  if (fresh) check(driver.host_allocate(&memory, static_cast<size_t>(bytes), kHostPortable));
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.allocated[static_cast<const char*>(memory)] = {bytes, {}};
  c.stats.allocations++;
  c.stats.allocated_bytes += bytes;
  if (fresh) {
    c.stats.driver_allocations++;
    c.stats.reserved_bytes += bytes;
  }
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
    c.stats.allocated_bytes -= block.bytes;
    if (block.streams.empty()) return c.put_free(memory, block.bytes);
  }
  try {
    Pending pending{memory, block.bytes, {}};
    for (const Stream stream : block.streams) pending.events.emplace_back(stream);
    const std::lock_guard<std::mutex> lock(c.mutex);
    c.pending.push_back(std::move(pending));
  } catch (const Error&) {
    // The device is lost; nobody may use the block again.
  }
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
  if (!is_initialized()) return;
  process_pending();
  std::map<int64_t, std::vector<void*>> free;
  Cache& c = cache();
  {
    const std::lock_guard<std::mutex> lock(c.mutex);
    free.swap(c.free);
    for (const auto& [bytes, blocks] : free)
      c.stats.reserved_bytes -= bytes * static_cast<int64_t>(blocks.size());
  }
  const DeviceApi& driver = use_device(current_device());
  for (const auto& [bytes, blocks] : free)
    for (void* const memory : blocks) check(driver.host_release(memory));
}

PinnedStats pinned_stats() {
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  return c.stats;
}

}  // namespace taeda::cuda
