// Random operations on a caching allocator against a model that only knows which addresses are in
// use, whose memory they are, and in which order work may touch them.
//
// A million operations; fewer under sanitizers, where `make fuzz-allocator` asks for them all:
// TAEDA_ALLOCATOR_FUZZ sets the number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "core/caching_allocator.h"
#include "late_device.h"

namespace taeda {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kStreams = 4;

int64_t operations() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int64_t kUsual = 60'000;
#else
  constexpr int64_t kUsual = 1'000'000;
#endif
  const char* const text = std::getenv("TAEDA_ALLOCATOR_FUZZ");
  return text ? std::atoll(text) : kUsual;
}

class Fuzz {
 public:
  Fuzz(uint32_t seed, const char* options) : random_(seed), options_(options) {
    device_ = allocator_.device();
    device_.state->capacity = 220 * kMiB;
    AllocatorOptions parsed = parse_allocator_options(options);
    // The device is small, so bounds are too.
    if (parsed.max_split_bytes < INT64_MAX) parsed.max_split_bytes = 24 * kMiB;
    allocator_.set_options(parsed);
  }

  void run(int64_t count) {
    for (int64_t i = 0; i < count && !::testing::Test::HasFailure(); i++) {
      step();
      check_counters();
      if (i % 500 == 499) check_snapshot();
    }
    finish();
  }
  int64_t refused() const { return refused_; }
  const MemoryStats& stats() const { return stats_; }

 private:
  struct Live {
    char* address;
    int64_t bytes, stream, id;
    PoolName pool;
  };
  struct Captured {
    int64_t stream = -1;  // -1: nothing is being captured
    PoolName pool{0, 0};
  };

  int draw(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  int64_t draw_bytes() {
    switch (draw(12)) {
      case 0:
        return 1 + draw(40 * kMiB);
      case 1:
      case 2:
      case 3:
        return 1 + draw(3 * kMiB);
      default:
        return 1 + draw(6000);
    }
  }

  void step() {
    const int what = draw(200);
    if (what < 78) return allocate();
    if (what < 112) return launch();
    if (what < 165) return release();
    if (what < 185) return run_some();
    if (what < 188) return change_pools();
    if (what < 192) return begin_or_end_capture();
    if (what < 194) {
      device_.state->fail_next = 1 + draw(3);
    } else if (what < 195 && draw(4) == 0) {
      allocator_.empty_cache();
    } else if (what < 196) {
      allocator_.set_limit(draw(3) ? 0 : (60 + draw(160)) * kMiB);
    } else if (what < 197) {
      allocator_.release_idle(std::chrono::steady_clock::now());
    } else if (what < 198) {
      allocator_.record_history(draw(2) == 0, 100, draw(4) == 0);
    }
  }

  PoolName pool_of(int64_t stream) {
    if (stream == captured_.stream) return captured_.pool;
    if (!pools_.empty() && draw(5) == 0) return pools_[draw_index(pools_)];
    return {0, 0};
  }
  template <class Items>
  size_t draw_index(const Items& items) {
    return static_cast<size_t>(draw(static_cast<int>(items.size())));
  }

  void allocate() {
    const int64_t bytes = draw_bytes(), stream = draw(kStreams);
    const PoolName pool = pool_of(stream);
    char* address = nullptr;
    try {
      address = static_cast<char*>(allocator_.allocate(bytes, stream, pool));
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kOutOfMemory);
      refused_++;
      return;
    }
    ASSERT_EQ(reinterpret_cast<uintptr_t>(address) % 512, 0u);
    const auto next = live_.lower_bound(address);
    if (next != live_.end()) {
      ASSERT_LE(address + bytes, next->first);
    }
    if (next != live_.begin()) {
      const Live& previous = std::prev(next)->second;
      ASSERT_LE(previous.address + previous.bytes, address);
    }
    live_[address] = {address, bytes, stream, ++last_id_, pool};
    requested_ += bytes;
  }

  // A kernel on the block's stream, or on another one that has waited for it, as programs must.
  // Kernels of the stream that is captured run when the graph is replayed, so they are left out.
  void launch() {
    if (live_.empty()) return;
    const Live block = any_live();
    const int64_t stream = draw(2) ? block.stream : draw(kStreams);
    if (stream != block.stream) allocator_.record_stream(block.address, stream);
    if (captured_.stream >= 0) return;
    const LateDevice::Event own = device_.record_event(block.stream);
    FullDevice device = device_;
    device_.launch(stream, [this, block, stream, own, device]() mutable {
      if (stream != block.stream) device.run_until(own);
      for (const int64_t at : {int64_t{0}, (block.bytes - 1) / 512 * 512}) {
        int64_t& mark = marks_[block.address + at];
        if (mark > block.id) violations_++;
        mark = block.id;
      }
    });
  }
  const Live& any_live() {
    return std::next(live_.begin(), draw(static_cast<int>(live_.size())))->second;
  }

  void release() {
    if (live_.empty()) return;
    const Live block = any_live();
    allocator_.release(block.address);
    requested_ -= block.bytes;
    live_.erase(block.address);
  }

  void run_some() {
    if (captured_.stream >= 0) return;
    for (int steps = draw(8), stream = draw(kStreams); steps > 0; steps--) device_.step(stream);
  }

  void change_pools() {
    if (pools_.size() < 3 && draw(2)) {
      const PoolName name{0, ++last_pool_};
      allocator_.retain_pool(name, draw(3) == 0, draw(3) == 0);
      pools_.push_back(name);
    } else if (!pools_.empty()) {
      const size_t at = draw_index(pools_);
      if (captured_.stream >= 0 && pools_[at] == captured_.pool) return;
      allocator_.release_pool(pools_[at]);
      kept_.erase(pools_[at]);
      pools_.erase(pools_.begin() + static_cast<int64_t>(at));
    }
  }

  void begin_or_end_capture() {
    if (captured_.stream < 0) {
      const PoolName name{++last_pool_, 0};
      allocator_.retain_pool(name);
      pools_.push_back(name);
      allocator_.begin_capture();
      captured_ = {draw(kStreams), name};
    } else {
      device_.state->capturing = false;
      allocator_.end_capture();
      captured_.stream = -1;
    }
  }

  void check_counters() {
    const MemoryStats& s = stats_ = allocator_.stats();
    ASSERT_EQ(s.requested_bytes.current, requested_);
    ASSERT_EQ(s.blocks.current, static_cast<int64_t>(live_.size()));
    ASSERT_EQ(s.reserved_bytes.current, device_.state->used);
    ASSERT_EQ(s.active_bytes.current, s.allocated_bytes.current + s.pending_bytes.current);
    for (const auto* l : {&s.allocated_bytes, &s.reserved_bytes, &s.active_bytes, &s.segments,
                          &s.inactive_split, &s.inactive_split_bytes, &s.active_blocks}) {
      ASSERT_EQ(l->current, l->small_pool.current + l->large_pool.current);
      ASSERT_EQ(l->current, l->added - l->freed);
      ASSERT_GE(l->current, 0);
    }
    ASSERT_EQ(violations_, 0);
    ASSERT_EQ(device_.state->faults, 0);
    // No event may be recorded or asked for by the allocator; launch() does so itself before.
    device_.state->capturing = captured_.stream >= 0;
    // What a graph's pool has, it keeps.
    for (const auto& [name, levels] : allocator_.private_reserved_bytes()) {
      if (std::find(pools_.begin(), pools_.end(), name) == pools_.end()) continue;
      int64_t& kept = kept_[name];
      ASSERT_GE(levels.current, kept);
      kept = levels.current;
    }
  }

  void check_snapshot() {
    int64_t allocated = 0, pending = 0, split = 0, reserved = 0;
    for (const SegmentInfo& segment : allocator_.snapshot()) {
      char* at = static_cast<char*>(segment.address);
      reserved += segment.bytes;
      bool was_free = false;
      for (const BlockInfo& block : segment.blocks) {
        ASSERT_EQ(block.address, at);
        at += block.bytes;
        const bool free = block.state == BlockInfo::State::kFree;
        ASSERT_FALSE(free && was_free);  // free neighbours are one
        was_free = free;
        if (block.state == BlockInfo::State::kAllocated) {
          allocated += block.bytes;
          check_owner(segment, static_cast<char*>(block.address));
        }
        if (block.state == BlockInfo::State::kPending) pending += block.bytes;
        if (free && !segment.expandable && segment.blocks.size() > 1) split += block.bytes;
        if (segment.expandable) {
          ASSERT_TRUE(device_.is_mapped(block.address, block.bytes));
        }
      }
      ASSERT_EQ(at, static_cast<char*>(segment.address) + segment.bytes);
    }
    ASSERT_EQ(allocated, stats_.allocated_bytes.current);
    ASSERT_EQ(pending, stats_.pending_bytes.current);
    ASSERT_EQ(split, stats_.inactive_split_bytes.current);
    ASSERT_EQ(reserved, stats_.reserved_bytes.current);
  }
  // A block lies in its own pool, or, from the default pool, in one that helps out.
  void check_owner(const SegmentInfo& segment, char* address) {
    const auto found = live_.find(address);
    ASSERT_NE(found, live_.end());
    if (found->second.pool != PoolName{0, 0}) {
      ASSERT_EQ(segment.pool, found->second.pool);
    }
  }

  void finish() {
    if (::testing::Test::HasFailure()) return;
    if (captured_.stream >= 0) begin_or_end_capture();
    device_.state->capturing = false;
    device_.finish();
    ASSERT_EQ(violations_, 0);
    for (const auto& [address, block] : live_) allocator_.release(address);
    for (const PoolName& name : pools_) allocator_.release_pool(name);
    allocator_.empty_cache();
    EXPECT_EQ(device_.state->used, 0) << options_;
    EXPECT_TRUE(allocator_.private_reserved_bytes().empty());
    EXPECT_EQ(device_.state->faults, 0);
  }

  std::mt19937 random_;
  const char* options_;
  CachingAllocator<FullDevice> allocator_;
  FullDevice device_;
  std::map<char*, Live> live_;
  std::map<char*, int64_t> marks_;  // the last owner that wrote there
  std::vector<PoolName> pools_;     // retained
  std::map<PoolName, int64_t> kept_;
  Captured captured_;
  MemoryStats stats_;
  int64_t violations_ = 0, last_id_ = 0, last_pool_ = 0, requested_ = 0, refused_ = 0;
};

constexpr const char* kOptions[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:24,max_non_split_rounding_mb:20",
    "roundup_power2_divisions:4,garbage_collection_threshold:0.7",
    "expandable_segments:True,roundup_power2_divisions:[1:8,>:2],garbage_collection_threshold:0.8",
    "throw_on_cudamalloc_oom:True",
};

TEST(AllocatorFuzz, RandomOperationsAgreeWithAModel) {
  const int64_t rounds = std::max<int64_t>(1, operations() / 10'000);
  int64_t borrowed = 0, refused = 0, retries = 0;
  for (int64_t round = 0; round < rounds; round++) {
    const char* const options = kOptions[round % std::ssize(kOptions)];
    SCOPED_TRACE(format("round {}, options '{}'", round, options));
    Fuzz fuzz(static_cast<uint32_t>(round), options);
    fuzz.run(10'000);
    if (::testing::Test::HasFailure()) return;
    borrowed += fuzz.stats().borrowed_blocks;
    refused += fuzz.refused();
    retries += fuzz.stats().collections;
  }
  // All ways out of a shortage were taken.
  EXPECT_GT(borrowed, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(retries, 0);
}

}  // namespace
}  // namespace taeda
