#include "autograd/forward.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "autograd/math.h"
#include "taeda/error.h"

namespace taeda {
namespace {

// What dies on one thread may be listed by a level that another one is leaving. `make tsan` looks.
TEST(Forward, TangentsDieWhileTheirLevelEnds) {
  const Tensor x = autograd::math::zeros({2}, DType::kFloat32, Device());
  const Tensor direction = autograd::math::ones_like(x);
  for (int round = 0; round < 50; round++) {
    const uint64_t level = autograd::enter_dual_level();
    std::atomic<int> made{0};
    const auto work = [&] {
      try {
        while (true) {
          const Tensor dual = autograd::make_dual(x, direction, level);
          const Tensor alias = autograd::math::alias(dual);
          autograd::share_tangent(alias, dual);
          made++;
        }
      } catch (const Error&) {  // the level has ended
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(work);
    while (made < 20) std::this_thread::yield();
    autograd::exit_dual_level(level);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_FALSE(autograd::any_dual_level());
}

// Two threads that save one tensor, which has no tangents, share the place for them.
TEST(Forward, ThreadsShareTheTangentsOfOneTensor) {
  const uint64_t level = autograd::enter_dual_level();
  for (int round = 0; round < 50; round++) {
    const Tensor x = autograd::math::zeros({2}, DType::kFloat32, Device());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
      threads.emplace_back([&] {
        const Tensor alias = autograd::math::alias(x);
        autograd::share_tangent(alias, x);
        EXPECT_EQ(autograd::level_of(alias), 0u);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  autograd::exit_dual_level(level);
}

}  // namespace
}  // namespace taeda
