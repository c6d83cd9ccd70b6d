// taeda/foreach.h: operators on each tensor of a list.
#include "taeda/foreach.h"

#include <gtest/gtest.h>

#include "taeda/taeda.h"

namespace taeda {
namespace {

float first(const Tensor& t) { return t.reshape({-1})[0].item<float>(); }

TensorList two(double a, double b) { return {full({2}, a), full({3}, b)}; }

TEST(Foreach, AppliesTheOperatorToEachTensor) {
  const TensorList made = _foreach_sqrt(two(4, 9));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(first(made[0]), 2);
  EXPECT_EQ(made[1].sizes(), IntSpan({3}));
  EXPECT_EQ(first(made[1]), 3);
}

TEST(Foreach, TakesAListAsAValueEachAndAnythingElseAsOneForAll) {
  const TensorList x = two(1, 2);
  EXPECT_EQ(first(_foreach_add(x, two(10, 20), Scalar(2))[1]), 42);  // alpha
  EXPECT_EQ(first(_foreach_add(x, Scalar(5))[1]), 7);
  EXPECT_EQ(first(_foreach_mul(x, std::vector<Scalar>{3, 4})[1]), 8);
  EXPECT_EQ(first(_foreach_mul(x, full({}, 3))[0]), 3);
  EXPECT_EQ(first(_foreach_addcmul(x, two(2, 3), two(4, 5), Scalar(0.5))[1]), 9.5);
  EXPECT_EQ(first(_foreach_lerp(x, two(3, 4), Scalar(0.5))[0]), 2);
  EXPECT_EQ(first(_foreach_maximum(x, Scalar(1.5))[0]), 1.5);
  EXPECT_EQ(first(_foreach_pow(Scalar(2), x)[1]), 4);
}

TEST(Foreach, WritesInPlace) {
  const TensorList x = two(1, 2);
  _foreach_add_(x, two(1, 1), Scalar(-3));
  EXPECT_EQ(first(x[0]), -2);
  _foreach_neg_(x);
  EXPECT_EQ(first(x[0]), 2);
  _foreach_copy_(x, two(7, 8));
  EXPECT_EQ(first(x[1]), 8);
  _foreach_zero_(x);
  EXPECT_EQ(first(x[1]), 0);
}

TEST(Foreach, Reduces) {
  const TensorList x = two(3, -4);
  EXPECT_FLOAT_EQ(first(_foreach_norm(x)[1]), std::sqrt(48.0f));
  EXPECT_EQ(first(_foreach_powsum(x, 1)[1]), 12);
  EXPECT_EQ(first(_foreach_max(x)[1]), -4);
  EXPECT_EQ(first(_foreach_clone(x)[0]), 3);
  EXPECT_EQ(first(_foreach_mm({eye(2)}, {full({2, 1}, 5.0)})[0]), 5);
}

TEST(Foreach, IsDifferentiatedTensorByTensor) {
  TensorList x = two(3, 2);
  for (Tensor& one : x) one.requires_grad_();
  _foreach_mul(x, two(4, 5))[1].sum().backward();
  EXPECT_FALSE(x[0].grad().defined());
  EXPECT_EQ(first(x[1].grad()), 5);
}

TEST(Foreach, RefusesListsThatDoNotMatch) {
  EXPECT_THROW(_foreach_abs(TensorList{}), Error);
  EXPECT_THROW(_foreach_add(two(1, 2), TensorList{ones({2})}), Error);
}

}  // namespace
}  // namespace taeda
