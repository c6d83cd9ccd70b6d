// SegmentStore<Device>: the segments and pools of a caching allocator, without its lock: segments
// are taken from the device and given back, blocks are found, cut and merged.
//
// Expandable segments need of the device:
//   int64_t reservation_bytes() const;       // of addresses for a pool; 0: not on this device
//   char* reserve(int64_t bytes);            // addresses without memory; null when there are none
//   void unreserve(char* at, int64_t bytes);
//   uint64_t map(char* at, int64_t bytes);   // memory behind them, a handle; 0 when there is none
//   void unmap(char* at, int64_t bytes, uint64_t handle);  // no work may use it any more
//   void synchronize();                      // all work has ended
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/allocator_blocks.h"
#include "core/allocator_options.h"
#include "core/memory_history.h"
#include "core/memory_stats.h"

namespace taeda {

template <class Device>
class SegmentStore {
 public:
  static constexpr int64_t kRounding = [] {
    if constexpr (requires { Device::kRounding; })
      return Device::kRounding;
    else
      return int64_t{512};
  }();
  static constexpr int64_t kSmallRequest = 1 << 20;
  static constexpr int64_t kSmallSegment = 2 << 20;
  static constexpr int64_t kMediumRequest = 10 << 20;
  static constexpr int64_t kLargeRounding = 2 << 20;
  static constexpr PoolName kDefaultPool = {0, 0};
  using Time = std::chrono::steady_clock::time_point;

 protected:
  using Block = detail::MemoryBlock;
  using Segment = detail::MemorySegment;
  using Pool = detail::MemoryPool;
  using PrivatePool = detail::PrivatePool;
  using State = BlockInfo::State;
  using Action = MemoryEvent::Action;
  static constexpr Time kAnyTime = Time::max();
  static constexpr bool kExpands = requires(Device d) { d.reservation_bytes(); };

  explicit SegmentStore(Device device) : device_(std::move(device)) {}
  SegmentStore(const SegmentStore&) = delete;
  ~SegmentStore() {
    for (auto& [address, segment] : segments_) {
      for (Block* b = segment->first; b;) delete std::exchange(b, b->next);
      if constexpr (kExpands) {
        if (segment->expandable()) {
          for (int64_t i = 0; i < std::ssize(segment->handles); i++) unmap_granule(*segment, i);
          device_.unreserve(segment->address, segment->reserved_bytes);
          continue;
        }
      }
      device_.release(segment->address, segment->bytes);
    }
  }

  // --- pools ---

  PrivatePool* owner_of(const PoolName& name) {
    return name == kDefaultPool ? nullptr : &private_pools_[name];
  }
  Pool& pool(const PoolName& name, int64_t stream, bool small) {
    Pool*& recent = recent_[small];
    if (recent && recent->stream == stream && recent->name == name) [[likely]]
      return *recent;
    const auto [found, fresh] = pools_.try_emplace({name, stream, small});
    if (fresh) found->second = Pool{name, stream, small, owner_of(name)};
    recent = &found->second;
    return *recent;
  }
  // A private pool that nobody uses and that has no memory is no more.
  void forget_if_unused(const PoolName& name) {
    const auto found = private_pools_.find(name);
    if (found == private_pools_.end() || found->second.uses > 0 || found->second.segments > 0)
      return;
    std::erase_if(pools_, [&](const auto& entry) { return entry.second.name == name; });
    recent_[0] = recent_[1] = nullptr;
    private_pools_.erase(found);
  }

  // --- blocks ---

  // The smallest free block that fits, out of its pool; null when there is none.
  Block* take_free(Pool& pool, int64_t bytes) {
    Block key{nullptr, bytes, nullptr};
    const auto it = pool.free.lower_bound(&key);
    if (it == pool.free.end()) return nullptr;
    Block* block = *it;
    // Blocks that are not split serve large requests only, and none that wastes much of them.
    if (block->bytes >= options_.max_split_bytes && !block->segment->expandable()) {
      if (bytes < options_.max_split_bytes) return nullptr;
      if (block->bytes >= bytes + options_.max_non_split_rounding) return nullptr;
    }
    take_out(block, it);
    return block;
  }

  // Cuts a taken block to `bytes`. Large blocks keep a small rest: it could serve no large request.
  void split(Block* block, int64_t bytes) {
    const int64_t rest = block->bytes - bytes;
    const Pool& pool = *block->segment->pool;
    const bool fine = pool.small || block->segment->expandable();
    if (rest < (fine ? kRounding : kSmallRequest + 1)) return;
    if (!fine && bytes >= options_.max_split_bytes) return;
    if (pool.owner && pool.owner->no_split) return;
    block->state = State::kFree;
    Block* const tail = detail::cut(block, bytes);
    // Where an expandable segment has grown into a hole, a free block may follow.
    if (tail->next && tail->next->is_free()) {
      take_out(tail->next);
      detail::absorb_next(tail);
    }
    insert_free(tail);
  }

  // The block is free from now on, and one with its free neighbours.
  void put_free(Block* block) {
    block->context = nullptr;
    if (Block* next = block->next; next && next->is_free()) {
      take_out(next);
      detail::absorb_next(block);
    }
    if (Block* previous = block->previous; previous && previous->is_free()) {
      take_out(previous);
      block = previous;
      detail::absorb_next(block);
    }
    insert_free(block);
    if (!block->is_split()) block->segment->last_use = std::chrono::steady_clock::now();
  }

  // --- segments ---

  // A block of at least so many bytes in new memory of the device; null when it has none left.
  Block* take_from_device(Pool& pool, int64_t bytes) {
    if constexpr (kExpands) {
      if (options_.expandable_segments || pool.expandable) {
        if (Segment* segment = expandable_segment(pool)) return grow(*segment, bytes);
      }
    }
    const int64_t size = segment_bytes(bytes);
    if (beyond_limit(size)) return nullptr;
    stats_.device_allocations++;
    char* memory = static_cast<char*>(device_.allocate(size));
    if (!memory) return nullptr;
    Segment& segment = add_segment(Segment{memory, size, &pool});
    segment.first = new Block{memory, size, &segment};
    count_segment(segment, 1);
    count_reserved(pool, size);
    if (size >= options_.max_split_bytes) stats_.oversize_segments.add(1);
    note(Action::kSegmentAllocate, memory, size, pool);
    return segment.first;
  }

  bool beyond_limit(int64_t bytes) const {
    return limit_ > 0 && stats_.reserved_bytes.current + bytes > limit_;
  }

  int64_t segment_bytes(int64_t bytes) const {
    if (bytes <= kSmallRequest) return kSmallSegment;
    if (bytes < kMediumRequest) return options_.large_segment_bytes;
    return (bytes + kLargeRounding - 1) / kLargeRounding * kLargeRounding;
  }

  // Gives wholly free segments back, the longest unused first, until `wanted` bytes are released;
  // those used after `before` stay, and those of private pools that somebody uses. Returns the
  // bytes released.
  int64_t release_free_segments(int64_t wanted, Time before = kAnyTime) {
    std::vector<Segment*> candidates;
    for (const auto& [address, segment] : segments_) {
      const Pool& pool = *segment->pool;
      if (pool.owner && pool.owner->uses > 0) continue;
      const Block* b = segment->first;
      if (segment->expandable() ? before == kAnyTime
                                : !b->is_split() && b->is_free() && segment->last_use < before)
        candidates.push_back(segment.get());
    }
    std::sort(candidates.begin(), candidates.end(), [](const Segment* a, const Segment* b) {
      return std::make_pair(a->expandable(), a->last_use) <
             std::make_pair(b->expandable(), b->last_use);
    });
    int64_t released = 0;
    for (Segment* segment : candidates) {
      if (released >= wanted) break;
      released += segment->expandable() ? shrink(*segment) : release_segment(*segment);
    }
    return released;
  }

  void describe(const Segment& segment, std::vector<SegmentInfo>& result) const {
    bool open = false;  // whether the last one of `result` is a run of this segment
    for (const Block* b = segment.first; b; b = b->next) {
      if (b->is_unmapped()) {
        open = false;
        continue;
      }
      if (!std::exchange(open, true)) {
        const Pool& pool = *segment.pool;
        result.push_back(
            {b->address, 0, pool.stream, pool.small, {}, segment.expandable(), pool.name});
      }
      result.back().bytes += b->bytes;
      result.back().blocks.push_back(
          {b->address, b->bytes, b->is_free() ? 0 : b->requested, b->state, b->context});
    }
  }

  void note(Action action, const void* address, int64_t bytes, const Pool& pool,
            MemoryContextRef context = nullptr) {
    if (!history_.on()) [[likely]]
      return;
    history_.add({action, address, bytes, pool.stream, 0, 0, pool.name, std::move(context)});
  }

  Device device_;
  AllocatorOptions options_;
  int64_t limit_ = 0;
  MemoryStats stats_;
  MemoryHistory history_;
  bool capturing_ = false;  // a graph: the device cannot be waited for
  std::map<std::tuple<PoolName, int64_t, bool>, Pool> pools_;
  std::map<PoolName, PrivatePool> private_pools_;
  std::map<char*, std::unique_ptr<Segment>> segments_;

 private:
  void take_out(Block* block) { take_out(block, block->segment->pool->free.find(block)); }
  void take_out(Block* block, typename std::set<Block*, detail::SmallestFirst>::iterator at) {
    count_inactive(*block, -1);
    block->segment->pool->free.erase(at);
  }
  void insert_free(Block* block) {
    block->state = State::kFree;
    count_inactive(*block, 1);
    block->segment->pool->free.insert(block);
  }
  // Free parts of segments in use cannot be given back; of expandable ones they can.
  void count_inactive(const Block& block, int sign) {
    if (!block.is_split() || block.segment->expandable()) return;
    const bool small = block.segment->pool->small;
    stats_.inactive_split.add(sign, small);
    stats_.inactive_split_bytes.add(sign * block.bytes, small);
  }
  void count_reserved(Pool& pool, int64_t bytes) {
    stats_.reserved_bytes.add(bytes, pool.small);
    if (pool.owner) pool.owner->reserved_bytes.add(bytes, pool.small);
  }
  void count_segment(const Segment& segment, int sign) {
    stats_.segments.add(sign, segment.pool->small);
    if (PrivatePool* owner = segment.pool->owner) owner->segments += sign;
  }
  Segment& add_segment(Segment segment) {
    char* const address = segment.address;
    auto made = std::make_unique<Segment>(std::move(segment));
    return *segments_.emplace(address, std::move(made)).first->second;
  }

  int64_t release_segment(Segment& segment) {
    Pool& pool = *segment.pool;
    const int64_t bytes = segment.bytes;
    device_.release(segment.address, bytes);  // may fail: then nothing has changed
    take_out(segment.first);
    delete segment.first;
    stats_.device_releases++;
    count_segment(segment, -1);
    count_reserved(pool, -bytes);
    if (bytes >= options_.max_split_bytes) stats_.oversize_segments.add(-1);
    note(Action::kSegmentFree, segment.address, bytes, pool);
    segments_.erase(segment.address);
    const PoolName name = pool.name;
    forget_if_unused(name);
    return bytes;
  }

  // --- expandable segments ---

  // The pool's, made of addresses only if there is none yet; null where the device has none.
  Segment* expandable_segment(Pool& pool) {
    if constexpr (kExpands) {
      if (pool.expandable) return pool.expandable;
      const int64_t granule = pool.small ? kSmallSegment : options_.large_segment_bytes;
      const int64_t bytes = device_.reservation_bytes() / granule * granule;
      char* const memory = bytes > 0 ? device_.reserve(bytes) : nullptr;
      if (!memory) return nullptr;
      Segment& segment = add_segment(Segment{memory, 0, &pool});
      segment.granule = granule;
      segment.reserved_bytes = bytes;
      segment.handles.resize(static_cast<size_t>(bytes / granule));
      segment.first = new Block{memory, bytes, &segment};
      segment.first->state = State::kUnmapped;
      pool.unmapped.insert(segment.first);
      pool.expandable = &segment;
      count_segment(segment, 1);
      return &segment;
    } else {
      return nullptr;
    }
  }

  // The first run of free and unmapped blocks that is large enough, as one block with memory.
  Block* grow(Segment& segment, int64_t bytes) {
    for (Block* hole : segment.pool->unmapped) {
      Block* const first = hole->previous && hole->previous->is_free() ? hole->previous : hole;
      int64_t found = 0;
      for (const Block* b = first; b && found < bytes && (b->is_free() || b->is_unmapped());
           b = b->next)
        found += b->bytes;
      if (found >= bytes) return map_run(segment, first, bytes);
    }
    return nullptr;
  }
  Block* map_run(Segment& segment, Block* first, int64_t bytes) {
    if (first->is_unmapped())
      first = map_front(segment, first, bytes);
    else
      take_out(first);
    while (first && first->bytes < bytes) {
      Block* const next = first->next;
      if (next->is_free()) {
        take_out(next);
      } else if (!map_front(segment, next, bytes - first->bytes)) {
        put_free(first);
        return nullptr;
      }
      detail::absorb_next(first);
    }
    return first;
  }
  // Puts memory behind the beginning of an unmapped block: what becomes a block of its own, in no
  // pool, of at least `bytes` or all there is. Null when the device has not enough.
  Block* map_front(Segment& segment, Block* hole, int64_t bytes) {
    const int64_t granule = segment.granule;
    const int64_t size = std::min((bytes + granule - 1) / granule * granule, hole->bytes);
    const int64_t first = (hole->address - segment.address) / granule;
    const int64_t end = first + size / granule;
    if (beyond_limit(size)) return nullptr;
    for (int64_t i = first; i < end; i++) {
      if (map_granule(segment, i)) continue;
      while (--i >= first) unmap_granule(segment, i);
      return nullptr;
    }
    segment.pool->unmapped.erase(hole);
    if (hole->bytes > size) segment.pool->unmapped.insert(detail::cut(hole, size));
    hole->state = State::kFree;
    segment.bytes += size;
    count_reserved(*segment.pool, size);
    note(Action::kSegmentMap, hole->address, size, *segment.pool);
    return hole;
  }
  bool map_granule(Segment& segment, int64_t i) {
    if constexpr (kExpands) {
      stats_.device_allocations++;
      auto& handle = segment.handles[static_cast<size_t>(i)];
      handle = device_.map(segment.address + i * segment.granule, segment.granule);
      return handle != 0;
    }
    return false;
  }
  void unmap_granule(Segment& segment, int64_t i) {
    if constexpr (kExpands) {
      auto& handle = segment.handles[static_cast<size_t>(i)];
      if (!handle) return;
      stats_.device_releases++;
      device_.unmap(segment.address + i * segment.granule, segment.granule,
                    std::exchange(handle, 0));
    }
  }

  // Takes the memory from behind all granules that are free. Returns the bytes.
  int64_t shrink(Segment& segment) {
    if (capturing_) return 0;
    std::vector<Block*> free;
    for (Block* b = segment.first; b; b = b->next)
      if (b->is_free()) free.push_back(b);
    if constexpr (kExpands) {
      if (!free.empty()) device_.synchronize();  // the driver does not, as it does for segments
    }
    int64_t released = 0;
    for (Block* block : free) released += unmap_inside(segment, block);
    if (segment.first->next || !segment.first->is_unmapped()) return released;
    Pool& pool = *segment.pool;
    pool.unmapped.erase(segment.first);
    pool.expandable = nullptr;
    delete segment.first;
    if constexpr (kExpands) device_.unreserve(segment.address, segment.reserved_bytes);
    count_segment(segment, -1);
    segments_.erase(segment.address);
    const PoolName name = pool.name;
    forget_if_unused(name);
    return released;
  }
  int64_t unmap_inside(Segment& segment, Block* block) {
    const int64_t granule = segment.granule, at = block->address - segment.address;
    const int64_t first = (at + granule - 1) / granule, end = (at + block->bytes) / granule;
    if (first >= end) return 0;
    Pool& pool = *segment.pool;
    take_out(block);
    for (int64_t i = first; i < end; i++) unmap_granule(segment, i);
    if (const int64_t head = first * granule - at; head > 0) {
      Block* const middle = detail::cut(block, head);
      insert_free(block);
      block = middle;
    }
    const int64_t bytes = (end - first) * granule;
    if (block->bytes > bytes) insert_free(detail::cut(block, bytes));
    block->state = State::kUnmapped;
    note(Action::kSegmentUnmap, block->address, bytes, pool);
    if (block->next && block->next->is_unmapped()) {
      pool.unmapped.erase(block->next);
      detail::absorb_next(block);
    }
    if (Block* previous = block->previous; previous && previous->is_unmapped()) {
      detail::absorb_next(previous);  // keeps its place among the unmapped
    } else {
      pool.unmapped.insert(block);
    }
    segment.bytes -= bytes;
    count_reserved(pool, -bytes);
    return bytes;
  }

  Pool* recent_[2] = {};
};

}  // namespace taeda
