// Composites that C++ programs call as Python's do: indices, hashes, approximations of low rank.
#include <gtest/gtest.h>

#include "taeda/taeda.h"

namespace taeda {
namespace {

TEST(Composites, UnravelIndex) {
  const TensorList at = unravel_index(tensor({4, 1}), {3, 2});
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[0][0].item<int64_t>(), 2);
  EXPECT_EQ(at[1][1].item<int64_t>(), 1);
  EXPECT_THROW(unravel_index(tensor({0.5}), {3}), Error);
  EXPECT_THROW(unravel_index(tensor({1}), {-3}), Error);
}

TEST(Composites, HashTensor) {
  const Tensor x = tensor({5, 3, 6, 1}, {2, 2});
  EXPECT_EQ(hash_tensor(x).dtype(), DType::kUInt64);
  EXPECT_EQ(to_dtype(hash_tensor(x), DType::kInt64).item<int64_t>(), 5 ^ 3 ^ 6 ^ 1);
  const Tensor rows = to_dtype(hash_tensor(x, {1}, true), DType::kInt64);
  EXPECT_EQ(rows.sizes(), IntSpan({2, 1}));
  EXPECT_EQ(rows[0][0].item<int64_t>(), 5 ^ 3);
}

// The largest difference of u diag(s) v^T from a.
float error(const Tensor& u, const Tensor& s, const Tensor& v, const Tensor& a) {
  return op::max(op::abs(op::matmul(u * s, v.t()) - a)).item<float>();
}

TEST(Composites, LowRank) {
  const Tensor a = matmul(randn({7, 2}), randn({2, 5})), centered = a - a.mean(DimVector{0}, true);
  const auto [U, S, V] = svd_lowrank(a, 3);
  EXPECT_EQ(V.sizes(), IntSpan({5, 3}));
  EXPECT_LT(error(U, S, V, a), 1e-4);
  const auto [u, s, v] = pca_lowrank(a, 2);
  EXPECT_LT(error(u, s, v, centered), 1e-4);
  EXPECT_THROW(pca_lowrank(a, 9), Error);
}

TEST(Composites, Histogram) {
  const auto [hist, edges] = histogram(tensor({1.0, 2.0, 1.0, 4.0}), 3);
  EXPECT_EQ(hist[0].item<float>(), 2);
  EXPECT_EQ(edges.sizes(), IntSpan({4}));
  const Tensor points = tensor({0.0, 1.0, 1.0, 0.0, 2.0, 0.0}, {3, 2});
  const auto [grid, sides] = histogramdd(points, DimVector{2, 2});
  EXPECT_EQ(sides.size(), 2u);
  EXPECT_EQ(grid[1][0].item<float>(), 2);
  const TensorList given = {tensor({0.0, 1.5, 3.0}), tensor({0.0, 2.0})};
  EXPECT_EQ(std::get<0>(histogramdd(points, given))[0][0].item<float>(), 2);
}

TEST(Composites, Rrelu) {
  const Tensor x = tensor({-4.0, 2.0});
  EXPECT_FLOAT_EQ(rrelu(x, 0.125, 0.375)[0].item<float>(), -1);
  const float drawn = rrelu(x, 0.125, 0.375, true)[0].item<float>();
  EXPECT_LE(-1.5, drawn);
  EXPECT_LE(drawn, -0.5);
}

TEST(Composites, LinearCrossEntropy) {
  const Tensor x = randn({4, 3}), w = randn({5, 3}), b = randn({5}), target = tensor({0, 4, 2, 2});
  const Tensor loss = linear_cross_entropy(x, w, target, b);
  EXPECT_FLOAT_EQ(loss.item<float>(), cross_entropy(linear(x, w, b), target).item<float>());
}

}  // namespace
}  // namespace taeda
