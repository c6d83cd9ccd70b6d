// What the caching allocator does by its options and beside the default pool: sizes of blocks,
// expandable segments, other streams' memory, private pools, captures, the history, messages.
#include <gtest/gtest.h>

#include "core/caching_allocator.h"
#include "late_device.h"

namespace taeda {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Place : MemoryContext {
  explicit Place(int line) : line(line) {}
  std::vector<Frame> frames() const override { return {{"train.py", line, "step"}}; }
  int line;
};
int line_of_caller = 0;  // 0: not known

struct Device : FullDevice {
  MemoryContextRef context() const {
    return line_of_caller ? std::make_shared<Place>(line_of_caller) : nullptr;
  }
};
using Allocator = CachingAllocator<Device>;

void set_options(Allocator& a, const char* text) { a.set_options(parse_allocator_options(text)); }

std::string out_of_memory_text(Allocator& a, int64_t bytes, int64_t stream = 0) {
  try {
    a.allocate(bytes, stream);
    return "there was memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    return error.what();
  }
}

TEST(AllocatorOptionsInUse, LargeBlocksAreNotSplit) {
  Allocator a;
  set_options(a, "max_split_size_mb:30");
  void* large = a.allocate(60 * kMiB);
  EXPECT_EQ(a.stats().oversize_blocks.current, 1);
  EXPECT_EQ(a.stats().oversize_segments.current, 1);
  a.release(large);
  EXPECT_EQ(a.stats().oversize_blocks.current, 0);
  EXPECT_NE(a.allocate(25 * kMiB), large);  // a smaller request leaves it whole
  EXPECT_NE(a.allocate(36 * kMiB), large);  // and so does one that would waste 20 MiB
  EXPECT_EQ(a.allocate(45 * kMiB), large);
  EXPECT_EQ(a.stats().allocated_bytes.current,
            (60 + 26 + 36) * kMiB);  // of 26, too small a rest is left
}

TEST(AllocatorOptionsInUse, GarbageIsCollectedAboveTheThreshold) {
  Allocator a;
  a.device().state->capacity = 1000 * kMiB;
  set_options(a, "garbage_collection_threshold:0.5");
  void* first = a.allocate(300 * kMiB);
  void* second = a.allocate(250 * kMiB);
  a.release(first);
  a.release(second);
  EXPECT_EQ(a.stats().reserved_bytes.current, 550 * kMiB);
  a.allocate(310 * kMiB);  // 50 MiB too much: the oldest goes
  EXPECT_EQ(a.stats().reserved_bytes.current, (250 + 310) * kMiB);
  EXPECT_EQ(a.stats().collections, 0);
}

TEST(AllocatorOptionsInUse, CountersByPool) {
  Allocator a;
  a.allocate(100);
  void* large = a.allocate(3 * kMiB);
  void* next = a.allocate(4 * kMiB);
  const MemoryStats s = a.stats();
  EXPECT_EQ(s.allocated_bytes.small_pool.current, 512);
  EXPECT_EQ(s.allocated_bytes.large_pool.current, 7 * kMiB);
  EXPECT_EQ(s.segments.small_pool.current, 1);
  EXPECT_EQ(s.inactive_split.current, 2);
  EXPECT_EQ(s.inactive_split_bytes.large_pool.current, 13 * kMiB);
  a.release(large);
  a.release(next);
  EXPECT_EQ(a.stats().inactive_split.large_pool.current, 0);  // the segment is free as a whole
}

TEST(ExpandableSegments, GrowAndShrinkInPlace) {
  Allocator a;
  a.device().state->capacity = 200 * kMiB;
  set_options(a, "expandable_segments:True");
  char* first = static_cast<char*>(a.allocate(30 * kMiB));
  char* second = static_cast<char*>(a.allocate(50 * kMiB));
  EXPECT_EQ(second, first + 30 * kMiB);  // one segment, in granules of 20 MiB
  EXPECT_EQ(a.stats().reserved_bytes.current, 80 * kMiB);
  EXPECT_EQ(a.stats().segments.current, 1);
  a.release(first);
  EXPECT_EQ(a.allocate(15 * kMiB), first);
  a.release(second);
  a.empty_cache();  // 15 MiB are in use: of the first granule
  EXPECT_EQ(a.stats().reserved_bytes.current, 20 * kMiB);
  EXPECT_EQ(a.device().state->used, 20 * kMiB);
  EXPECT_EQ(a.allocate(100 * kMiB), first + 15 * kMiB);  // the free rest and five new granules
  EXPECT_EQ(a.device().state->faults, 0);
}

// 60 and 60 MiB that are free lie beside each other: without expandable segments the 120 MiB would
// have to be released and taken anew, and could not, were one block between them.
TEST(ExpandableSegments, HolesInTheMiddleAreFilled) {
  Allocator a;
  a.device().state->capacity = 240 * kMiB;
  set_options(a, "expandable_segments:True");
  char* blocks[6];
  for (char*& block : blocks) block = static_cast<char*>(a.allocate(40 * kMiB));
  a.release(blocks[1]);
  a.release(blocks[3]);
  a.empty_cache();
  EXPECT_EQ(a.device().state->used, 160 * kMiB);
  a.release(blocks[2]);
  EXPECT_EQ(a.allocate(110 * kMiB), blocks[1]);  // hole, free block, hole
  EXPECT_EQ(a.device().state->used, 240 * kMiB);
  EXPECT_EQ(a.stats().collections, 0);
}

TEST(ExpandableSegments, WhatIsMappedBeforeMemoryEndsIsKeptOrGivenBack) {
  Allocator a;
  a.device().state->capacity = 90 * kMiB;
  set_options(a, "expandable_segments:True");
  void* held = a.allocate(30 * kMiB);
  EXPECT_THROW(a.allocate(90 * kMiB), Error);
  EXPECT_EQ(a.device().state->used, a.stats().reserved_bytes.current);
  EXPECT_NE(a.allocate(45 * kMiB), nullptr);
  a.release(held);
  EXPECT_EQ(a.device().state->faults, 0);
}

TEST(ExpandableSegments, SnapshotsShowTheRunsThatHaveMemory) {
  Allocator a;
  a.device().state->capacity = 400 * kMiB;
  set_options(a, "expandable_segments:True");
  void* blocks[3];
  for (void*& block : blocks) block = a.allocate(40 * kMiB);
  a.release(blocks[1]);
  a.empty_cache();
  const auto segments = a.snapshot();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_TRUE(segments[0].expandable);
  EXPECT_EQ(segments[0].address, blocks[0]);
  EXPECT_EQ(segments[1].address, blocks[2]);
  EXPECT_EQ(segments[1].bytes, 40 * kMiB);
}

// PyTorch's issue 189504: once events were waited for, blocks of a segment that is in use are free
// and serve the request, though nothing could be given back to the device.
TEST(OutOfMemory, ThePoolIsLookedAtAgainAfterWaiting) {
  Allocator a;
  a.device().state->capacity = 20 * kMiB;
  void* held = a.allocate(7 * kMiB, 1);
  void* first = a.allocate(6 * kMiB, 1);
  void* second = a.allocate(6 * kMiB, 1);
  for (void* block : {first, second}) {
    a.device().launch(2, [] {});
    a.record_stream(block, 2);
    a.release(block);
  }
  EXPECT_EQ(a.allocate(9 * kMiB, 1), first);
  EXPECT_EQ(a.stats().device_allocations, 1 + 1);  // one that failed
  EXPECT_EQ(a.stats().device_releases, 0);
  EXPECT_EQ(a.stats().out_of_memory, 0);
  EXPECT_EQ(a.stats().waits, 1);
  a.release(held);
}

TEST(OutOfMemory, AnotherStreamsMemoryIsBorrowedBehindAnEvent) {
  Allocator a;
  a.device().state->capacity = 20 * kMiB;
  std::vector<int> order;
  void* held = a.allocate(7 * kMiB, 1);
  void* block = a.allocate(8 * kMiB, 1);
  a.device().launch(1, [&] { order.push_back(1); });
  a.release(block);
  EXPECT_EQ(a.allocate(8 * kMiB, 2), block);
  EXPECT_EQ(a.stats().borrowed_blocks, 1);
  a.device().launch(2, [&] { order.push_back(2); });
  while (a.device().step(2)) {
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  // It goes back to stream 1 once stream 2 has passed what it was given.
  a.device().launch(2, [] {});
  a.release(block);
  EXPECT_EQ(a.stats().pending_bytes.current, 8 * kMiB);
  while (a.device().step(2)) {
  }
  EXPECT_EQ(a.allocate(8 * kMiB, 1), block);
  a.release(held);
}

TEST(OutOfMemory, TheMessageNamesWhoHoldsTheMost) {
  Allocator a;
  a.device().state->capacity = 100 * kMiB;
  for (int line = 1; line <= 7; line++) {
    line_of_caller = line;
    a.allocate(line * 2 * kMiB);
    a.allocate(100);
  }
  line_of_caller = 0;
  EXPECT_EQ(out_of_memory_text(a, 90 * kMiB),
            "Simulated out of memory. Tried to allocate 90.00 MiB. The device is full. Of the "
            "allocated memory 56.00 MiB is allocated by PyTorch, and 2.00 MiB is reserved by "
            "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
            "The most memory is held by what was allocated:\n"
            "  14.00 MiB at train.py:7 (step)\n"
            "  12.00 MiB at train.py:6 (step)\n"
            "  10.00 MiB at train.py:5 (step)\n"
            "  8.00 MiB at train.py:4 (step)\n"
            "  6.00 MiB at train.py:3 (step)");
}

TEST(OutOfMemory, RequestsBeyondTheLimitMayBeRefusedAtOnce) {
  Allocator a;
  set_options(a, "throw_on_cudamalloc_oom:True");
  a.set_limit(50 * kMiB);
  a.release(a.allocate(40 * kMiB));
  EXPECT_NE(out_of_memory_text(a, 45 * kMiB).find("50.00 MiB allowed"), std::string::npos);
  EXPECT_EQ(a.stats().rejected, 1);
  EXPECT_EQ(a.stats().reserved_bytes.current, 40 * kMiB);  // nothing was given back for it
}

TEST(PrivatePools, KeepTheirMemoryUntilNobodyUsesThem) {
  Allocator a;
  const PoolName graph{1, 0};
  a.retain_pool(graph);
  void* block = a.allocate(3 * kMiB, 0, graph);
  EXPECT_NE(a.allocate(3 * kMiB), static_cast<char*>(block) + 3 * kMiB);
  a.release(block);
  a.empty_cache();
  EXPECT_EQ(a.private_reserved_bytes()[graph].current, 20 * kMiB);
  EXPECT_EQ(a.allocate(3 * kMiB, 0, graph), block);
  a.release_pool(graph);
  EXPECT_EQ(a.pool_uses(graph), 0);
  a.empty_cache();  // a block is in use still
  EXPECT_EQ(a.private_reserved_bytes()[graph].current, 20 * kMiB);
  a.release(block);
  a.empty_cache();
  EXPECT_TRUE(a.private_reserved_bytes().empty());
  EXPECT_THROW(a.release_pool(graph), Error);
}

TEST(PrivatePools, MayHelpOutAndMayKeepBlocksWhole) {
  Allocator a;
  a.device().state->capacity = 40 * kMiB;
  const PoolName spare{0, 1}, whole{0, 2};
  a.retain_pool(spare, true);
  a.retain_pool(whole, false, true);
  void* block = a.allocate(3 * kMiB, 0, spare);
  a.release(block);
  void* first = a.allocate(3 * kMiB, 0, whole);
  EXPECT_EQ(a.stats().allocated_bytes.current, 20 * kMiB);  // not split
  EXPECT_EQ(a.allocate(3 * kMiB), block);
  a.release(first);
}

TEST(Captures, NoEventIsRecordedOrAskedFor) {
  Allocator a;
  void* pending = a.allocate(1000, 1);
  void* parked = a.allocate(1000, 1);
  a.device().launch(2, [] {});
  a.record_stream(pending, 2);
  a.release(pending);
  a.begin_capture();
  a.device().state->capturing = true;
  a.record_stream(parked, 2);
  a.release(parked);
  EXPECT_NE(a.allocate(1000, 1), parked);
  EXPECT_EQ(a.stats().pending_bytes.current, 2048);
  EXPECT_EQ(a.device().state->faults, 0);
  a.device().state->capturing = false;
  a.end_capture();
  a.device().finish();
  EXPECT_EQ(a.stats().pending_bytes.current, 2048);
  a.allocate(5000, 1);  // looks at the events
  EXPECT_EQ(a.stats().pending_bytes.current, 0);
}

TEST(History, KeepsTheLatestEvents) {
  Allocator a;
  a.record_history(true, 4, false);
  void* block = a.allocate(1000);
  a.release(block);
  using Action = MemoryEvent::Action;
  const auto actions = [&] {
    std::vector<Action> result;
    for (const MemoryEvent& event : a.history()) result.push_back(event.action);
    return result;
  };
  EXPECT_EQ(actions(), (std::vector<Action>{Action::kSegmentAllocate, Action::kAllocate,
                                            Action::kFreeRequested, Action::kFreeCompleted}));
  EXPECT_THROW(a.allocate(INT64_MAX), Error);
  EXPECT_EQ(actions().front(), Action::kAllocate);
  EXPECT_EQ(actions().back(), Action::kOutOfMemory);
  a.record_history(true, 2, false);
  EXPECT_EQ(actions(), (std::vector<Action>{Action::kFreeCompleted, Action::kOutOfMemory}));
  a.record_history(false, 0, true);
  a.allocate(1000);
  EXPECT_TRUE(a.history().empty());
}

}  // namespace
}  // namespace taeda
