#include "base/interrupt.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/parallel.h"

namespace taeda {
namespace {

struct Stop {};
std::atomic<int> calls;
std::thread::id caller;

// The hook throws on the thread that the test runs on, as Python's does on the main thread.
class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    calls = 0;
    caller = std::this_thread::get_id();
    set_interrupt_hook([] {
      if (std::this_thread::get_id() != caller) return;
      calls++;
      throw Stop();
    });
  }
  void TearDown() override {
    set_interrupt_hook(nullptr);
    set_num_threads(2);
  }
};

// Runs until it is interrupted.
void work() {
  while (true) check_interrupt();
}

TEST_F(Interrupt, NothingHappensWithoutAHook) {
  set_interrupt_hook(nullptr);
  check_interrupt();
}

TEST_F(Interrupt, TheHookIsCalledNowAndThen) {
  EXPECT_THROW(work(), Stop);
  EXPECT_EQ(calls, 1);
  postpone_interrupt_check();
  for (int i = 0; i < 1000; i++) check_interrupt();
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(work(), Stop);
}

TEST_F(Interrupt, NothingIsLookedAtWhileDeferred) {
  EXPECT_THROW(work(), Stop);
  {
    const DeferInterrupts outer;
    { const DeferInterrupts inner; }
    const std::atomic<bool> cancelled{true};
    const CancelScope scope(&cancelled);
    check_interrupt();
  }
  EXPECT_THROW(work(), Stop);
}

TEST_F(Interrupt, EndsARegionOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    std::atomic<int64_t> chunks{0};
    EXPECT_THROW(while (true) parallel_for(0, 1 << 20, 1, [&](int64_t, int64_t) { chunks++; }),
                 Stop);
    chunks = 0;
    set_interrupt_hook(nullptr);
    parallel_for(0, 1000, 1, [&](int64_t begin, int64_t end) { chunks += end - begin; });
    EXPECT_EQ(chunks, 1000);
    SetUp();
  }
}

TEST_F(Interrupt, ReachesLoopsInsideTheOtherThreadsChunks) {
  set_num_threads(2);
  for (int i = 0; i < 5; i++) {
    // Neither chunk ends by itself: the caller's is interrupted, a worker's is cancelled.
    EXPECT_THROW(parallel_for(0, 2, 1, [](int64_t, int64_t) { work(); }), Stop);
    EXPECT_THROW(parallel_for(0, 2, 1,
                              [](int64_t, int64_t) {
                                while (true) parallel_for(0, 100, 1, [](int64_t, int64_t) {});
                              }),
                 Stop);
  }
}

TEST_F(Interrupt, ReachesACallerThatWaits) {
  set_num_threads(2);
  for (int i = 0; i < 5; i++) {
    EXPECT_THROW(parallel_for(0, 64, 1,
                              [](int64_t, int64_t) {
                                if (std::this_thread::get_id() != caller || in_parallel_region())
                                  work();
                              }),
                 Stop);
  }
}

TEST_F(Interrupt, SlicesCoverTheirRange) {
  set_interrupt_hook(nullptr);
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{1} << 18, (int64_t{1} << 19) + 7}) {
    int64_t next = 0;
    in_slices(n, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin, next);
      EXPECT_LT(begin, end);
      next = end;
    });
    EXPECT_EQ(next, n);
  }
}

}  // namespace
}  // namespace taeda
