#include "base/handover.h"

#include <gtest/gtest.h>

#include <thread>

#include "taeda/autograd.h"

namespace taeda {
namespace {

TEST(Handover, RunsOnAnotherThreadWithTheModesOfThisOne) {
  const NoGrad no_grad;
  const auto caller = std::this_thread::get_id();
  bool ran = false;
  run_on_fresh_thread([&] {
    ran = true;
    EXPECT_NE(std::this_thread::get_id(), caller);
    EXPECT_FALSE(GradMode::is_enabled());
    thread_modes.grad_enabled = true;
  });
  EXPECT_TRUE(ran);
  EXPECT_FALSE(GradMode::is_enabled());
}

TEST(Handover, ThrowsWhatTheWorkThrew) {
  EXPECT_THROW(run_on_fresh_thread([] { throw std::out_of_range("of the work"); }),
               std::out_of_range);
}

TEST(Handover, Nests) {
  int depth = 0;
  const std::function<void()> descend = [&] {
    if (++depth < 50) run_on_fresh_thread(descend);
  };
  run_on_fresh_thread(descend);
  EXPECT_EQ(depth, 50);
}

}  // namespace
}  // namespace taeda
