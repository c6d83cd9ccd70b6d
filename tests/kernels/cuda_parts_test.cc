#include "kernels/cuda/parts.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace taeda::cuda {
namespace {

using Plan = cpu::LoopPlan<2>;

struct Shape {
  std::vector<int64_t> sizes, out, in;  // strides in elements
};

Plan plan_of(const Shape& shape, int64_t numel) {
  View out{nullptr, DType::kFloat32, shape.sizes, shape.out, numel, true};
  View in{nullptr, DType::kFloat32, shape.sizes, shape.in, numel, true};
  const View* views[] = {&out, &in};
  Plan plan;
  plan.build(views, 2);
  return plan;
}

// (address of the result, address of the input) of every element, from addresses 0.
std::multiset<std::pair<int64_t, int64_t>> elements(const Plan& plan) {
  std::multiset<std::pair<int64_t, int64_t>> found;
  for (int64_t i = 0; i < plan.numel; i++) {
    int64_t rest = i, at[2];
    for (int k = 0; k < 2; k++) at[k] = reinterpret_cast<intptr_t>(plan.data[k]);
    for (int d = 0; d < plan.ndim; d++) {
      for (int k = 0; k < 2; k++) at[k] += rest % plan.sizes[d] * plan.strides[d][k];
      rest /= plan.sizes[d];
    }
    found.emplace(at[0], at[1]);
  }
  return found;
}

void expect_covered(const Shape& shape, int64_t numel, const PartLimits& limits) {
  const Plan plan = plan_of(shape, numel);
  std::multiset<std::pair<int64_t, int64_t>> found;
  int parts = 0;
  for_each_part(
      plan,
      [&](const Plan& part) {
        EXPECT_TRUE(is_within(part, limits));
        found.merge(elements(part));
        parts++;
      },
      limits);
  EXPECT_GT(parts, 1);
  EXPECT_EQ(found, elements(plan));
}

TEST(CudaParts, LargeLoopsAreCutByElements) {
  expect_covered({{7, 5, 3}, {15, 3, 1}, {1, 21, 7}}, 105, {.elements = 10});
}
TEST(CudaParts, FarOperandsAreCutByReach) {
  expect_covered({{6, 50}, {50, 1}, {1, 600}}, 300, {.reach = 4000});
}
TEST(CudaParts, ManyDimensionsAreTakenOffOneByOne) {
  expect_covered({{2, 3, 2, 2}, {12, 4, 2, 1}, {1, 4, 16, 64}}, 24, {.ndim = 2});
}
TEST(CudaParts, NegativeStridesReachBelow) {
  const Plan plan = plan_of({{3, 4}, {4, 1}, {4, -2}}, 12);
  const Extent e = extent(plan, 1, 4);
  EXPECT_EQ(e.below, -24);
  EXPECT_EQ(e.above, 36);
}
TEST(CudaParts, OrdinaryLoopsAreOnePart) {
  int parts = 0;
  for_each_part(plan_of({{4, 5}, {5, 1}, {1, 4}}, 20), [&](const Plan&) { parts++; });
  EXPECT_EQ(parts, 1);
}

TEST(CudaParts, DivisionByAProductIsExact) {
  for (uint32_t d :
       {1u, 2u, 3u, 7u, 127u, 128u, 641u, 65537u, 1u << 20, (1u << 30) - 1, 1u << 30}) {
    const device::Divisor divisor = device::divisor(d);
    for (uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{d} - 1, uint64_t{d}, uint64_t{d} * 2 - 1,
                       uint64_t{d} * 3, (uint64_t{1} << 30) - 1, (uint64_t{1} << 31) - 1}) {
      if (n >> 31) continue;
      const auto high = static_cast<uint32_t>(n * divisor.multiplier >> 32);
      EXPECT_EQ((high + static_cast<uint32_t>(n)) >> divisor.shift, n / d) << n << " / " << d;
    }
  }
}

}  // namespace
}  // namespace taeda::cuda
