// CachingAllocator<Device>: keeps the device's memory instead of giving it back, and hands it out
// again.
//
// Blocks are multiples of 512 bytes, cut from segments: requests of up to 1 MiB from segments of 2
// MiB (the small pool), up to 10 MiB from segments of 20 MiB, larger ones from a segment of their
// own size. A request takes the smallest free block that fits; what is left over becomes a free
// block, and freed neighbours merge again. Blocks belong to the stream they were allocated for and
// are reused by it at once: the stream's own order keeps that safe. record_stream() says that
// another stream uses a block too; once freed it waits until that stream has passed an event.
//
// When the device has no more (or the limit is reached), cached segments are released, oldest
// first; then pending streams are waited for and everything free goes back; only then
// OutOfMemoryError is raised.
//
// All methods may be called from any thread; one lock guards them. `Device` provides:
//   using Event = ...;                             // default-constructible, movable
//   void* allocate(int64_t bytes);                 // null when there is none
//   void release(void* memory, int64_t bytes);
//   Event record_event(int64_t stream);            // passes when the stream's work so far is done
//   bool query_event(Event& event);
//   void wait_event(Event& event);
//   std::string name() const;                      // for messages: "CPU"
//   std::string out_of_memory_text() const;        // optional: a sentence, with a blank before it
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/memory_stats.h"
#include "taeda/error.h"

namespace taeda {

// "1.50 GiB"
std::string bytes_text(int64_t bytes);

template <class Device>
class CachingAllocator {
 public:
  // Of a block's size, and so of its address: what the device says, or 512.
  static constexpr int64_t kRounding = [] {
    if constexpr (requires { Device::kRounding; })
      return Device::kRounding;
    else
      return int64_t{512};
  }();
  static constexpr int64_t kSmallRequest = 1 << 20;
  static constexpr int64_t kSmallSegment = 2 << 20;
  static constexpr int64_t kMediumRequest = 10 << 20;
  static constexpr int64_t kMediumSegment = 20 << 20;
  static constexpr int64_t kLargeRounding = 2 << 20;

  explicit CachingAllocator(Device device = {}) : device_(std::move(device)) {}
  CachingAllocator(const CachingAllocator&) = delete;
  ~CachingAllocator() {
    for (auto& [address, segment] : segments_) {
      for (Block* b = segment->first; b;) delete std::exchange(b, b->next);
      device_.release(segment->address, segment->bytes);
    }
  }

  Device& device() { return device_; }
  // Held over forks by the owner.
  std::mutex& mutex() { return mutex_; }

  void* allocate(int64_t nbytes, int64_t stream = 0) {
    if (nbytes == 0) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.allocations++;
    if (nbytes < 0 || nbytes > INT64_MAX / 2) out_of_memory(nbytes);
    process_events();
    const int64_t bytes = (nbytes + kRounding - 1) / kRounding * kRounding;
    const bool small = bytes <= kSmallRequest;
    Block* block = take_cached(bytes, stream, small);
    if (!block) block = take_segment(bytes, nbytes, stream, small);
    split(block, bytes);
    block->state = BlockInfo::State::kAllocated;
    block->requested = nbytes;
    in_use_.emplace(block->address, block);
    stats_.allocated_bytes.add(block->bytes);
    stats_.requested_bytes.add(nbytes);
    stats_.blocks.add(1);
    return block->address;
  }

  void release(void* address) {
    if (!address) return;
    std::lock_guard<std::mutex> lock(mutex_);
    Block* block = find(address);
    in_use_.erase(address);
    stats_.allocated_bytes.add(-block->bytes);
    stats_.requested_bytes.add(-block->requested);
    stats_.blocks.add(-1);
    if (block->streams.empty()) return put_free(block);
    block->state = BlockInfo::State::kPending;
    stats_.pending_bytes.add(block->bytes);
    for (int64_t stream : block->streams) {
      events_[stream].emplace_back(device_.record_event(stream), block);
      block->events++;
    }
    block->streams.clear();
    process_events();
  }

  // The size of the block at this address, 0 where none is.
  int64_t block_bytes(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = in_use_.find(const_cast<void*>(address));
    return it == in_use_.end() ? 0 : it->second->bytes;
  }

  // `stream` uses the block besides the stream it was allocated for.
  void record_stream(void* address, int64_t stream) {
    if (!address) return;
    std::lock_guard<std::mutex> lock(mutex_);
    Block* block = find(address);
    if (stream != block->segment->stream) block->streams.insert(stream);
  }

  // Gives every segment without a block in use back to the device.
  void empty_cache() {
    std::lock_guard<std::mutex> lock(mutex_);
    wait_for_events();
    release_free_segments(INT64_MAX);
  }

  // Gives back segments that no block of was in use since `before`.
  void release_idle(std::chrono::steady_clock::time_point before) {
    std::lock_guard<std::mutex> lock(mutex_);
    release_free_segments(INT64_MAX, before);
  }

  // At most this many bytes are reserved; 0: no limit. Memory in use already is not taken away.
  void set_limit(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
  }
  int64_t limit() const { return limit_; }

  MemoryStats stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  void reset_peak_stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.reset_peaks();
  }
  void reset_accumulated_stats() {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.reset_accumulated();
  }

  // Segments by address, with their blocks.
  std::vector<SegmentInfo> snapshot() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<SegmentInfo> result;
    for (const auto& [address, segment] : segments_) {
      SegmentInfo info{address, segment->bytes, segment->stream, segment->small, {}};
      for (const Block* b = segment->first; b; b = b->next) {
        info.blocks.push_back({b->address, b->bytes,
                               b->state == BlockInfo::State::kFree ? 0 : b->requested, b->state});
      }
      result.push_back(std::move(info));
    }
    return result;
  }

 private:
  struct Segment;
  struct Block {
    char* address;
    int64_t bytes;
    Segment* segment;
    Block* previous = nullptr;  // neighbours inside the segment
    Block* next = nullptr;
    BlockInfo::State state = BlockInfo::State::kFree;
    int64_t requested = 0;
    int events = 0;             // streams that have not passed their event yet
    std::set<int64_t> streams;  // used by, besides the segment's
  };
  struct Segment {
    char* address;
    int64_t bytes;
    int64_t stream;
    bool small;
    Block* first;
    std::chrono::steady_clock::time_point last_use;
  };
  struct SmallestFirst {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
    }
  };
  using FreeBlocks = std::set<Block*, SmallestFirst>;

  FreeBlocks& pool(int64_t stream, bool small) { return pools_[{stream, small}]; }

  Block* find(void* address) {
    const auto it = in_use_.find(address);
    TD_CHECK(it != in_use_.end(), "{} allocator: {} is not an allocated block", device_.name(),
             reinterpret_cast<uint64_t>(address));
    return it->second;
  }

  Block* take_cached(int64_t bytes, int64_t stream, bool small) {
    FreeBlocks& blocks = pool(stream, small);
    Block key{nullptr, bytes, nullptr};
    const auto it = blocks.lower_bound(&key);
    if (it == blocks.end()) return nullptr;
    Block* block = *it;
    blocks.erase(it);
    return block;
  }

  static int64_t segment_bytes(int64_t bytes) {
    if (bytes <= kSmallRequest) return kSmallSegment;
    if (bytes < kMediumRequest) return kMediumSegment;
    return (bytes + kLargeRounding - 1) / kLargeRounding * kLargeRounding;
  }

  Block* take_segment(int64_t bytes, int64_t nbytes, int64_t stream, bool small) {
    const int64_t size = segment_bytes(bytes);
    char* memory = device_allocate(size);
    if (!memory) {
      // Room by giving back cached segments: first no more than needed, then all that can be made
      // free.
      stats_.collections++;
      if (release_free_segments(size) >= size) memory = device_allocate(size);
      if (!memory) {
        wait_for_events();
        release_free_segments(INT64_MAX);
        if (Block* block = take_cached(bytes, stream, small)) return block;
        memory = device_allocate(size);
      }
      if (!memory) out_of_memory(nbytes);
    }
    auto segment = std::make_unique<Segment>(Segment{memory, size, stream, small, nullptr, {}});
    Block* block = new Block{memory, size, segment.get()};
    segment->first = block;
    segments_.emplace(memory, std::move(segment));
    stats_.segments.add(1);
    stats_.reserved_bytes.add(size);
    return block;
  }

  char* device_allocate(int64_t bytes) {
    if (limit_ > 0 && stats_.reserved_bytes.current + bytes > limit_) return nullptr;
    stats_.device_allocations++;
    return static_cast<char*>(device_.allocate(bytes));
  }

  std::string device_text() const {
    if constexpr (requires { device_.out_of_memory_text(); })
      return device_.out_of_memory_text();
    else
      return {};
  }

  [[noreturn]] void out_of_memory(int64_t nbytes) {
    stats_.out_of_memory++;
    fail(ErrorKind::kOutOfMemory,
         "{} out of memory. Tried to allocate {}.{} {} are in use, {} are reserved but free{}",
         device_.name(), bytes_text(nbytes), device_text(),
         bytes_text(stats_.allocated_bytes.current),
         bytes_text(stats_.reserved_bytes.current - stats_.allocated_bytes.current),
         limit_ > 0 ? format("; the limit is {}", bytes_text(limit_)) : std::string());
  }

  // Cuts a taken block to `bytes`. Large blocks keep a small rest: it could serve no large request.
  void split(Block* block, int64_t bytes) {
    const int64_t rest = block->bytes - bytes;
    if (rest < (block->segment->small ? kRounding : kSmallRequest + 1)) return;
    Block* tail = new Block{block->address + bytes, rest, block->segment, block, block->next};
    if (tail->next) tail->next->previous = tail;
    block->next = tail;
    block->bytes = bytes;
    pool(block->segment->stream, block->segment->small).insert(tail);
  }

  void put_free(Block* block) {
    FreeBlocks& blocks = pool(block->segment->stream, block->segment->small);
    if (Block* next = block->next; next && next->state == BlockInfo::State::kFree) {
      blocks.erase(next);
      absorb_next(block);
    }
    if (Block* previous = block->previous; previous && previous->state == BlockInfo::State::kFree) {
      blocks.erase(previous);
      block = previous;
      absorb_next(block);
    }
    block->state = BlockInfo::State::kFree;
    blocks.insert(block);
    if (!block->previous && !block->next)
      block->segment->last_use = std::chrono::steady_clock::now();
  }

  static void absorb_next(Block* block) {
    Block* next = block->next;
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next) block->next->previous = block;
    delete next;
  }

  // Blocks whose streams have passed their events become free.
  void process_events() {
    for (auto it = events_.begin(); it != events_.end();) {
      auto& queue = it->second;
      while (!queue.empty() && device_.query_event(queue.front().first)) pass_event(queue);
      it = queue.empty() ? events_.erase(it) : std::next(it);
    }
  }
  void wait_for_events() {
    for (auto& [stream, queue] : events_) {
      while (!queue.empty()) {
        device_.wait_event(queue.front().first);
        pass_event(queue);
      }
    }
    events_.clear();
  }
  using EventQueue = std::deque<std::pair<typename Device::Event, Block*>>;
  void pass_event(EventQueue& queue) {
    Block* block = queue.front().second;
    queue.pop_front();
    if (--block->events > 0) return;
    stats_.pending_bytes.add(-block->bytes);
    put_free(block);
  }

  // Gives wholly free segments back, the longest unused first, until `wanted` bytes are released;
  // those used after `before` stay. Returns the bytes released.
  int64_t release_free_segments(int64_t wanted, std::chrono::steady_clock::time_point before =
                                                    std::chrono::steady_clock::time_point::max()) {
    std::vector<Segment*> candidates;
    for (const auto& [address, segment] : segments_) {
      const Block* b = segment->first;
      if (!b->next && b->state == BlockInfo::State::kFree && segment->last_use < before)
        candidates.push_back(segment.get());
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Segment* a, const Segment* b) { return a->last_use < b->last_use; });
    int64_t released = 0;
    for (Segment* segment : candidates) {
      if (released >= wanted) break;
      released += segment->bytes;
      release_segment(segment);
    }
    return released;
  }

  void release_segment(Segment* segment) {
    pool(segment->stream, segment->small).erase(segment->first);
    delete segment->first;
    device_.release(segment->address, segment->bytes);
    stats_.device_releases++;
    stats_.segments.add(-1);
    stats_.reserved_bytes.add(-segment->bytes);
    segments_.erase(segment->address);
  }

  Device device_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, bool>, FreeBlocks> pools_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
  std::unordered_map<void*, Block*> in_use_;
  std::map<int64_t, EventQueue> events_;
  MemoryStats stats_;
  int64_t limit_ = 0;
};

}  // namespace taeda
