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
// first; then pending streams are waited for, the pool is looked at again and everything free goes
// back; then a free block of another stream is borrowed, behind an event; only then
// OutOfMemoryError is raised.
//
// Private pools (graphs, torch.cuda.MemPool) keep their memory from everybody else. While work is
// captured into a graph no event is recorded or asked for: blocks that wait for streams are parked.
//
// All methods may be called from any thread; one lock guards them. `Device` provides:
//   using Event = ...;                             // default-constructible, movable
//   void* allocate(int64_t bytes);                 // null when there is none
//   void release(void* memory, int64_t bytes);
//   Event record_event(int64_t stream);            // passes when the stream's work so far is done
//   bool query_event(Event& event);
//   void wait_event(Event& event);
//   std::string name() const;                      // for messages: "CPU"
// and, where it can:
//   std::string out_of_memory_text() const;        // a sentence, with a blank before it
//   int64_t free_bytes() const, total_bytes() const;
//   void order(int64_t before, int64_t after);     // a stream's work from now on waits for another
//   MemoryContextRef context();                    // where in the program memory is asked for
//   what expandable segments need (segment_store.h)
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/segment_store.h"
#include "taeda/error.h"

namespace taeda {

// "1.50 GiB"
std::string bytes_text(int64_t bytes);

template <class Device>
class CachingAllocator : private SegmentStore<Device> {
  using Store = SegmentStore<Device>;

 public:
  using Store::kDefaultPool;
  using Store::kRounding;
  using Store::kSmallRequest;
  using Time = std::chrono::steady_clock::time_point;

  explicit CachingAllocator(Device device = {}) : Store(std::move(device)) {}

  Device& device() { return device_; }
  // Held over forks by the owner.
  std::mutex& mutex() { return mutex_; }

  void* allocate(int64_t nbytes, int64_t stream = 0, const PoolName& pool = kDefaultPool) {
    if (nbytes == 0) return nullptr;
    MemoryContextRef context = context_of_caller();
    std::unique_ptr<OutOfMemory> failure;
    {
      Lock lock(*this);
      stats_.allocations++;
      process_events();
      Block* block = take(nbytes, stream, pool, false);
      if (!block) {
        lock.launch_put_off_work();
        block = take(nbytes, stream, pool, true);
      }
      if (block) [[likely]] {
        hand_out(block, nbytes, std::move(context));
        return block->address;
      }
      failure = std::make_unique<OutOfMemory>(out_of_memory(nbytes, stream, std::move(context)));
    }
    raise_out_of_memory(*failure);
  }

  void release(void* address) {
    if (!address) return;
    const MemoryContextRef context = history_.on() ? context_of_caller() : nullptr;
    Lock lock(*this);
    Block* block = find(address);
    if (!block->streams.empty()) lock.launch_put_off_work();
    in_use_.erase(address);
    Pool& pool = *block->segment->pool;
    count_in_use(pool, -1, -block->bytes, -block->requested);
    note(Action::kFreeRequested, address, block->bytes, pool, context);
    if (block->streams.empty()) return free_active(block);
    block->state = State::kPending;
    stats_.pending_bytes.add(block->bytes);
    if (capturing_) return parked_.push_back(block);
    record_events(block);
    process_events();
  }

  // The size of the block at this address, 0 where none is.
  int64_t block_bytes(const void* address) {
    const Lock lock(*this);
    const auto it = in_use_.find(const_cast<void*>(address));
    return it == in_use_.end() ? 0 : it->second->bytes;
  }
  // Where the block at this address was asked for; null where that is not known.
  MemoryContextRef block_context(const void* address) {
    const Lock lock(*this);
    const auto it = in_use_.find(const_cast<void*>(address));
    return it == in_use_.end() ? nullptr : it->second->context;
  }

  // `stream` uses the block besides the stream it was allocated for.
  void record_stream(void* address, int64_t stream) {
    if (!address) return;
    const Lock lock(*this);
    Block* block = find(address);
    if (stream != block->segment->pool->stream) block->streams.insert(stream);
  }

  // Gives every segment without a block in use back to the device; of private pools the segments
  // of those that nobody uses any more.
  void empty_cache() {
    Lock lock(*this);
    lock.launch_put_off_work();
    if (!capturing_) wait_for_events();
    release_free_segments(INT64_MAX);
  }

  // Gives back segments that no block of was in use since `before`.
  void release_idle(Time before) {
    Lock lock(*this);
    lock.launch_put_off_work();
    release_free_segments(INT64_MAX, before);
  }

  // At most this many bytes are reserved; 0: no limit. Memory in use already is not taken away.
  void set_limit(int64_t bytes) {
    const Lock lock(*this);
    limit_ = bytes;
  }
  int64_t limit() const { return limit_; }

  // What there is already stays as it is.
  void set_options(AllocatorOptions options) {
    const Lock lock(*this);
    rounds_up_ = options.rounds_up();
    options_ = std::move(options);
  }

  MemoryStats stats() {
    const Lock lock(*this);
    return stats_;
  }
  void reset_peak_stats() {
    const Lock lock(*this);
    stats_.reset_peaks();
  }
  void reset_accumulated_stats() {
    const Lock lock(*this);
    stats_.reset_accumulated();
  }

  // Segments by address, with their blocks; of expandable ones the runs that have memory.
  std::vector<SegmentInfo> snapshot() {
    const Lock lock(*this);
    std::vector<SegmentInfo> result;
    for (const auto& [address, segment] : segments_) describe(*segment, result);
    return result;
  }

  // --- private pools ---

  // The pool exists, and keeps its memory, until release_pool() was called as often.
  void retain_pool(const PoolName& name, bool use_on_oom = false, bool no_split = false) {
    const Lock lock(*this);
    PrivatePool& pool = private_pools_[name];
    pool.uses++;
    pool.use_on_oom |= use_on_oom;
    pool.no_split |= no_split;
  }
  void release_pool(const PoolName& name) {
    const Lock lock(*this);
    const auto found = private_pools_.find(name);
    TD_CHECK(found != private_pools_.end() && found->second.uses > 0,
             "{} allocator: nobody uses the pool ({}, {})", device_.name(), name.first,
             name.second);
    found->second.uses--;
    forget_if_unused(name);
  }
  int pool_uses(const PoolName& name) {
    const Lock lock(*this);
    const auto found = private_pools_.find(name);
    return found == private_pools_.end() ? 0 : found->second.uses;
  }
  std::map<PoolName, MemoryStats::Levels> private_reserved_bytes() {
    const Lock lock(*this);
    std::map<PoolName, MemoryStats::Levels> result;
    for (const auto& [name, pool] : private_pools_) result[name] = pool.reserved_bytes;
    return result;
  }

  // Between these, which may be nested, no event is recorded or asked for.
  void begin_capture() {
    const Lock lock(*this);
    captures_++;
    capturing_ = true;
  }
  void end_capture() {
    Lock lock(*this);
    lock.launch_put_off_work();
    if (--captures_ > 0) return;
    capturing_ = false;
    for (Block* block : std::exchange(parked_, {})) record_events(block);
  }

  // --- history ---

  void record_history(bool on, size_t max_events, bool clear) {
    const Lock lock(*this);
    history_.start(on, max_events, clear);
  }
  std::vector<MemoryEvent> history() {
    const Lock lock(*this);
    return history_.events();
  }

 private:
  using Store::capturing_;
  using Store::describe;
  using Store::device_;
  using Store::forget_if_unused;
  using Store::history_;
  using Store::limit_;
  using Store::note;
  using Store::options_;
  using Store::pool;
  using Store::pools_;
  using Store::private_pools_;
  using Store::put_free;
  using Store::release_free_segments;
  using Store::segments_;
  using Store::stats_;
  using Store::take_free;
  using Store::take_from_device;
  using typename Store::Action;
  using typename Store::Block;
  using typename Store::Pool;
  using typename Store::PrivatePool;
  using typename Store::State;

  // The lock of a call. Work that the thread has put off (of devices that have such) waits as long:
  // its launch may allocate. What must come after it launches it first, and looks again.
  class Lock {
   public:
    explicit Lock(CachingAllocator& allocator)
        : device_(allocator.device_), lock_(allocator.mutex_) {
      tell(true);
    }
    ~Lock() { tell(false); }
    Lock(const Lock&) = delete;
    void launch_put_off_work() {
      if constexpr (requires { device_.launch_put_off_work(); }) {
        if (!device_.has_put_off()) return;
        tell(false);
        lock_.unlock();
        device_.launch_put_off_work();
        lock_.lock();
        tell(true);
      }
    }

   private:
    void tell(bool locked) {
      if constexpr (requires { device_.locked(locked); }) device_.locked(locked);
    }
    Device& device_;
    std::unique_lock<std::mutex> lock_;
  };

  MemoryContextRef context_of_caller() {
    if constexpr (requires { device_.context(); })
      return device_.context();
    else
      return nullptr;
  }

  Block* find(void* address) {
    const auto it = in_use_.find(address);
    TD_CHECK(it != in_use_.end(), "{} allocator: {} is not an allocated block", device_.name(),
             reinterpret_cast<uint64_t>(address));
    return it->second;
  }

  // --- allocation ---

  // A block of the right size, out of its pool or, with `more`, of memory that is new or was given
  // back to the device; null when there is none.
  Block* take(int64_t nbytes, int64_t stream, const PoolName& name, bool more) {
    if (nbytes < 0 || nbytes > INT64_MAX / 2) return nullptr;
    const int64_t bytes = rounds_up_ ? options_.rounded(nbytes, kRounding)
                                     : (nbytes + kRounding - 1) / kRounding * kRounding;
    Pool& from = pool(name, stream, bytes <= kSmallRequest);
    Block* block = take_free(from, bytes);
    if (!block && more) {
      const Use use(from.owner);  // it must not be forgotten meanwhile
      block = take_more(from, bytes);
    }
    if (block) this->split(block, bytes);
    return block;
  }

  struct Use {
    explicit Use(PrivatePool* pool) : pool(pool) {
      if (pool) pool->uses++;
    }
    ~Use() {
      if (pool) pool->uses--;
    }
    PrivatePool* pool;
  };

  Block* take_more(Pool& from, int64_t bytes) {
    collect_garbage();
    if (Block* block = take_from_device(from, bytes)) return block;
    if (options_.throw_before_device) {
      stats_.rejected++;
      return nullptr;
    }
    // First no more than needed is given back, then all that can be made free.
    stats_.collections++;
    const int64_t size = this->segment_bytes(bytes);
    if (release_free_segments(size) >= size) {
      if (Block* block = take_from_device(from, bytes)) return block;
    }
    if (!capturing_) {
      wait_for_events();
      if (Block* block = take_free(from, bytes)) return block;
    }
    release_free_segments(INT64_MAX);
    if (Block* block = take_from_device(from, bytes)) return block;
    if (Block* block = take_spare(from, bytes)) return block;
    return borrow(from, bytes);
  }

  // Keeps what is reserved below the threshold, as far as that takes no waiting.
  void collect_garbage() {
    if constexpr (requires { device_.total_bytes(); }) {
      if (options_.garbage_collection_threshold <= 0 || capturing_) return;
      const auto most = static_cast<double>(limit_ > 0 ? limit_ : device_.total_bytes());
      const auto bound = static_cast<int64_t>(options_.garbage_collection_threshold * most);
      if (stats_.reserved_bytes.current > bound)
        release_free_segments(stats_.reserved_bytes.current - bound);
    }
  }

  // A free block of a pool that may help out the default pool.
  Block* take_spare(Pool& from, int64_t bytes) {
    if (from.owner) return nullptr;
    for (auto& [name, owner] : private_pools_) {
      if (!owner.use_on_oom) continue;
      if (Block* block = take_free(pool(name, from.stream, from.small), bytes)) return block;
    }
    return nullptr;
  }

  // The smallest free block of other streams: this stream waits for all that they were given, and
  // the block goes back to its own stream once this one has passed an event.
  Block* borrow(Pool& to, int64_t bytes) {
    if constexpr (requires { device_.order(int64_t{}, int64_t{}); }) {
      if (capturing_) return nullptr;
      Block key{nullptr, bytes, nullptr};
      Pool* best = nullptr;
      int64_t best_bytes = INT64_MAX;
      for (auto& [id, other] : pools_) {
        if (other.name != to.name || other.small != to.small || &other == &to) continue;
        const auto fits = other.free.lower_bound(&key);
        if (fits == other.free.end() || (*fits)->bytes >= best_bytes) continue;
        best = &other;
        best_bytes = (*fits)->bytes;
      }
      if (!best) return nullptr;
      device_.order(best->stream, to.stream);
      Block* const block = take_free(*best, bytes);
      if (!block) return nullptr;
      block->streams.insert(to.stream);
      stats_.borrowed_blocks++;
      return block;
    } else {
      return nullptr;
    }
  }

  void hand_out(Block* block, int64_t nbytes, MemoryContextRef context) {
    block->state = State::kAllocated;
    block->requested = nbytes;
    in_use_.emplace(block->address, block);
    Pool& from = *block->segment->pool;
    count_in_use(from, 1, block->bytes, nbytes);
    stats_.active_bytes.add(block->bytes, from.small);
    stats_.active_blocks.add(1, from.small);
    note(Action::kAllocate, block->address, block->bytes, from, context);
    block->context = std::move(context);
  }
  void count_in_use(Pool& from, int sign, int64_t bytes, int64_t requested) {
    stats_.allocated_bytes.add(bytes, from.small);
    stats_.requested_bytes.add(requested, from.small);
    stats_.blocks.add(sign, from.small);
    if (sign * bytes >= options_.max_split_bytes) stats_.oversize_blocks.add(sign);
    if (from.owner) from.owner->allocated_bytes += bytes;
  }

  OutOfMemory out_of_memory(int64_t nbytes, int64_t stream, MemoryContextRef context) {
    stats_.out_of_memory++;
    OutOfMemory what;
    what.wanted_bytes = nbytes;
    what.device_name = device_.name();
    if constexpr (requires { device_.out_of_memory_text(); })
      what.device_text = device_.out_of_memory_text();
    what.allocated_bytes = stats_.allocated_bytes.current;
    what.reserved_bytes = stats_.reserved_bytes.current;
    what.limit_bytes = limit_;
    for (const auto& [name, owner] : private_pools_) what.private_bytes += owner.allocated_bytes;
    for (const auto& [address, block] : in_use_)
      if (block->context) what.holders.emplace_back(block->bytes, block->context);
    if constexpr (requires { device_.free_bytes(); }) {
      if (history_.on()) {
        history_.add({Action::kOutOfMemory, nullptr, nbytes, stream, 0, device_.free_bytes(),
                      kDefaultPool, std::move(context)});
      }
    }
    return what;
  }

  // --- blocks that streams still use ---

  void free_active(Block* block) {
    Pool& to = *block->segment->pool;
    stats_.active_bytes.add(-block->bytes, to.small);
    stats_.active_blocks.add(-1, to.small);
    note(Action::kFreeCompleted, block->address, block->bytes, to, block->context);
    put_free(block);
  }
  void record_events(Block* block) {
    for (int64_t stream : block->streams) {
      events_[stream].emplace_back(device_.record_event(stream), block);
      block->events++;
    }
    block->streams.clear();
  }
  // Blocks whose streams have passed their events become free.
  void process_events() {
    if (capturing_) return;
    for (auto it = events_.begin(); it != events_.end();) {
      auto& queue = it->second;
      while (!queue.empty() && device_.query_event(queue.front().first)) pass_event(queue);
      it = queue.empty() ? events_.erase(it) : std::next(it);
    }
  }
  void wait_for_events() {
    stats_.waits++;
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
    free_active(block);
  }

  std::mutex mutex_;
  std::unordered_map<void*, Block*> in_use_;
  std::map<int64_t, EventQueue> events_;
  std::deque<Block*> parked_;  // freed while work was captured
  int captures_ = 0;
  bool rounds_up_ = false;
};

}  // namespace taeda
