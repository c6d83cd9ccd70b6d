// Walks over dimensions that 32 bits do not count: only their sizes are looked at.
#include "kernels/cuda/walk.h"

#include <gtest/gtest.h>

#include "taeda/error.h"

namespace taeda::cuda {
namespace {

TEST(CudaWalk, TheOutermostDimensionMayBeOfAnySize) {
  constexpr int64_t kSize = int64_t{1} << 32;
  WalkPlan<1> vector, matrix;
  vector.add(kSize, {1});
  EXPECT_EQ(vector.walk().count, uint64_t{1} << 32);
  EXPECT_TRUE(vector.walk().wide);
  matrix.add(kSize, {8});
  matrix.add(3, {1});
  EXPECT_EQ(matrix.walk().count, uint64_t{3} << 32);
  EXPECT_EQ(matrix.walk().sizes[0].value, 3u);
}

TEST(CudaWalk, InnerDimensionsAbove32BitsAreRefused) {
  WalkPlan<1> plan;
  plan.add(2, {1});
  plan.add(5'000'000'000, {4});
  EXPECT_THROW(plan.walk(), Error);
}

TEST(CudaWalk, TooManyDimensionsAreRefused) {
  WalkPlan<1> plan;
  for (int d = 0; d < 64; d++) plan.add(1, {1});
  for (int d = 0; d < 64; d++) plan.add(2, {1 << (d % 20)});
  EXPECT_THROW(plan.add(2, {1}), Error);
}

}  // namespace
}  // namespace taeda::cuda
