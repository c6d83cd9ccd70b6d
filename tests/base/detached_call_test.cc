#include "base/detached_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/interrupt.h"

namespace taeda {
namespace {

struct Stop {};

TEST(DetachedCall, ReturnsAndThrowsWhatTheCallDoes) {
  const std::thread::id here = std::this_thread::get_id();
  EXPECT_EQ(call_detached(8, [=] { return std::this_thread::get_id() == here ? 1 : 2; }), 2);
  EXPECT_THROW(call_detached(8, []() -> int { throw std::out_of_range("it"); }), std::out_of_range);
}

TEST(DetachedCall, GoesOnWithWhatItOwnsAfterAnInterrupt) {
  struct Owned {
    std::atomic<bool> may_end{false};
  };
  static std::atomic<int> ended;
  static std::thread::id caller;
  ended = 0;
  caller = std::this_thread::get_id();
  auto owned = std::make_shared<Owned>();
  const std::weak_ptr<Owned> left = owned;
  set_interrupt_hook([] {
    if (std::this_thread::get_id() == caller) throw Stop();
  });
  EXPECT_THROW(call_detached(8,
                             [owned] {
                               while (!owned->may_end) std::this_thread::yield();
                               ended++;
                               return 0;
                             }),
               Stop);
  set_interrupt_hook(nullptr);
  owned.reset();
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(call_detached(8, [] { return 7; }), 7);  // another one meanwhile
  ASSERT_FALSE(left.expired());
  left.lock()->may_end = true;
  while (!left.expired()) std::this_thread::yield();
  EXPECT_EQ(ended, 1);
}

TEST(DetachedCall, WaitsWhileThoseLeftBehindHoldMuchMemory) {
  struct Gate {
    std::atomic<bool> open{false}, begun{false};
  };
  static std::thread::id caller;
  caller = std::this_thread::get_id();
  const auto gate = std::make_shared<Gate>();
  set_interrupt_hook([] {
    if (std::this_thread::get_id() == caller) throw Stop();
  });
  EXPECT_THROW(call_detached(kMostLeftBehind - 1000,
                             [gate] {
                               while (!gate->open) std::this_thread::yield();
                               return 0;
                             }),
               Stop);
  EXPECT_THROW(call_detached(1001,
                             [gate] {
                               gate->begun = true;
                               return 0;
                             }),
               Stop);
  EXPECT_FALSE(gate->begun);  // it waited, and could be interrupted
  set_interrupt_hook(nullptr);
  EXPECT_EQ(call_detached(1000, [] { return 7; }), 7);
  std::thread opens([gate] { gate->open = true; });
  EXPECT_EQ(call_detached(int64_t{1} << 40, [] { return 8; }), 8);  // once nothing is left behind
  opens.join();
}

TEST(DetachedCall, RunsHereWhereTooManyAreUnderWay) {
  struct Gate {
    std::atomic<bool> open{false};
    std::atomic<int> inside{0};
  };
  static std::thread::id caller;
  caller = std::this_thread::get_id();
  const auto gate = std::make_shared<Gate>();
  constexpr int kMany = 64;
  for (int i = 0; i < kMany; i++) {
    set_interrupt_hook([] {
      if (std::this_thread::get_id() == caller) throw Stop();
    });
    EXPECT_THROW(call_detached(8,
                               [gate] {
                                 gate->inside++;
                                 while (!gate->open) std::this_thread::yield();
                                 gate->inside--;
                                 return 0;
                               }),
                 Stop);
  }
  set_interrupt_hook(nullptr);
  const std::thread::id here = caller;
  EXPECT_EQ(call_detached(8, [=] { return std::this_thread::get_id() == here ? 1 : 2; }), 1);
  gate->open = true;
  while (gate->inside > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace taeda
