#include "ops/last_use.h"

#include <gtest/gtest.h>

#include "op/mul.h"
#include "op/tanh.h"
#include "op/to_dtype.h"
#include "taeda/taeda.h"

namespace taeda {
namespace {

constexpr int64_t kMany = 1 << 15;  // small tensors take the short way, which allocates

TEST(LastUse, AnOperatorWritesOverATensorThatNobodyElseHolds) {
  const NoGrad guard;
  const Tensor x = rand({kMany}), half = full({kMany}, 0.5);
  Tensor g = x.clone();
  const void* const memory = g.data_ptr();
  const Tensor y = op::mul(LastUse(g).tensor, half);
  EXPECT_EQ(y.data_ptr(), memory);
  EXPECT_TRUE(equal(y, x * 0.5));
}

TEST(LastUse, OthersKeepTheirMemory) {
  const NoGrad guard;
  const Tensor x = rand({kMany});
  const auto unchanged = [&](const Tensor& g) {
    const Tensor y = op::tanh(LastUse(g).tensor);
    EXPECT_NE(y.data_ptr(), g.data_ptr());
    EXPECT_TRUE(equal(g, x));
  };
  Tensor shared = x.clone();
  const Tensor other = shared;
  unchanged(shared);
  Tensor viewed = x.clone();
  const Tensor view = viewed.view({-1, 2});
  unchanged(viewed);
  const Tensor not_last = x.clone();
  EXPECT_NE(op::tanh(LastUse(not_last, false).tensor).data_ptr(), not_last.data_ptr());
  const EnableGrad recording;
  unchanged(x.clone());
}

TEST(LastUse, HoldsForOneExpression) {
  const NoGrad guard;
  const Tensor g = rand({kMany}), before = g.clone();
  op::to_dtype(LastUse(g).tensor, DType::kFloat64, false, std::nullopt);
  EXPECT_NE(op::tanh(g).data_ptr(), g.data_ptr());
  EXPECT_TRUE(equal(g, before));
}

TEST(LastUse, ResultsOfOtherSizesOrDtypesHaveMemoryOfTheirOwn) {
  const NoGrad guard;
  const Tensor row = rand({1, kMany}), two = ones({2, kMany}),
               wide = ones({kMany}, DType::kFloat64);
  EXPECT_NE(op::mul(LastUse(row).tensor, two).data_ptr(), row.data_ptr());
  const Tensor narrow = rand({kMany});
  EXPECT_NE(op::mul(LastUse(narrow).tensor, wide).data_ptr(), narrow.data_ptr());
}

}  // namespace
}  // namespace taeda
