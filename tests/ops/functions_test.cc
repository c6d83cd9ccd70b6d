// Functions that C++ programs call as Python's do: layers and losses, dropout, derivatives,
// windows.
#include <gtest/gtest.h>

#include "taeda/taeda.h"

namespace taeda {
namespace {

Tensor counted(IntSpan sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return arange(n, DType::kFloat32).view(sizes);
}

TEST(Functions, Gradient) {
  const Tensor y = tensor({1.0, 4.0, 9.0, 16.0});
  const std::vector<double> one = {1.0}, half = {0.5};
  EXPECT_TRUE(equal(gradient(y, one)[0], tensor({3.0, 4.0, 6.0, 7.0})));
  EXPECT_TRUE(equal(gradient(y, half, {}, 2)[0], tensor({4.0, 8.0, 12.0, 16.0})));
  const TensorList points = {tensor({0.0, 1.0, 3.0, 4.0})};
  EXPECT_TRUE(allclose(gradient(tensor({0.0, 2.0, 6.0, 8.0}), points)[0], full({4}, 2.0)));
  EXPECT_THROW(gradient(y, half, {}, 3), Error);
  EXPECT_THROW(gradient(counted({2, 2}), one), Error);
}

TEST(Functions, Masked) {
  const Tensor x = tensor({1.0, 9.0, 3.0, 9.0}, {2, 2}).requires_grad_();
  const Tensor mask = tensor({1, 0}) > 0;
  EXPECT_TRUE(equal(masked_mean(x, DimVector{1}, {}, {}, mask), tensor({1.0, 3.0})));
  EXPECT_EQ(masked_var(x, {}, {}, {}, {}, {}, mask).item<float>(), 2);
  EXPECT_EQ(masked_median(x, 0, false, {}, mask)[0].item<float>(), 1);
  masked_sum(x, {}, {}, {}, mask).backward();
  EXPECT_TRUE(equal(x.grad(), tensor({1.0, 0.0, 1.0, 0.0}, {2, 2})));
  EXPECT_THROW(masked_sum(x, {}, {}, {}, ones({1, 1, 2})), Error);
  EXPECT_THROW(masked_mean(ones({2}, DType::kInt64)), Error);
}

TEST(Functions, Interpolate) {
  const Tensor x = tensor({1.0, 3.0}, {1, 1, 2});
  const std::vector<double> twice = {2.0};
  EXPECT_TRUE(equal(interpolate(x, {}, twice).flatten(), tensor({1.0, 1.0, 3.0, 3.0})));
  const Tensor linear = interpolate(x, DimVector{3}, {}, "linear", true);
  EXPECT_TRUE(equal(linear.flatten(), tensor({1.0, 2.0, 3.0})));
  EXPECT_THROW(interpolate(x), Error);
  EXPECT_THROW(interpolate(x, DimVector{3}, {}, "bilinear"), Error);
}

TEST(Functions, MaxUnpool) {
  const Tensor x = tensor({1.0, 4.0, 2.0, 3.0}, {1, 4});
  const auto [values, indices] = max_pool1d_with_indices(x, {2});
  EXPECT_TRUE(equal(max_unpool1d(values, indices, {2}), tensor({0.0, 4.0, 0.0, 3.0}, {1, 4})));
  EXPECT_EQ(max_unpool1d(values, indices, {2}, {}, {0}, DimVector{5}).sizes(), IntSpan({1, 5}));
  EXPECT_THROW(max_unpool1d(values, indices, {2}, {}, {0}, DimVector{9}), Error);
  EXPECT_THROW(max_unpool1d(values, indices + 9, {2}), Error);
}

TEST(Functions, EmbeddingBag) {
  const Tensor weight = tensor({1.0, 2.0, 3.0}, {3, 1}).requires_grad_();
  const Tensor indices = tensor({0, 2, 1}), offsets = tensor({0, 2});
  const Tensor means = embedding_bag(indices, weight, offsets);
  EXPECT_TRUE(equal(means.flatten(), tensor({2.0, 2.0})));
  means.sum().backward();
  EXPECT_TRUE(equal(weight.grad().flatten(), tensor({0.5, 1.0, 0.5})));
  const Tensor largest = embedding_bag(indices, weight, offsets, {}, 2, false, "max");
  EXPECT_TRUE(equal(largest.flatten(), tensor({3.0, 2.0})));
  EXPECT_THROW(embedding_bag(indices, weight), Error);
}

TEST(Functions, CtcLoss) {
  const Tensor log_probs = log(full({4, 1, 3}, 1.0 / 3));
  const Tensor labels = tensor({1, 2}, {1, 2});
  // 15 of the 81 alignments of four frames spell two labels that differ.
  const double expected = -std::log(15.0 / 81);
  const Tensor sum = ctc_loss(log_probs, labels, DimVector{4}, DimVector{2}, 0, "sum");
  EXPECT_NEAR(sum.item<double>(), expected, 1e-5);
  const Tensor mean = ctc_loss(log_probs, labels, tensor({4}), tensor({2}));
  EXPECT_NEAR(mean.item<double>(), expected / 2, 1e-5);
  EXPECT_THROW(ctc_loss(log_probs, labels, DimVector{5}, DimVector{2}), Error);
}

TEST(Functions, MultilabelMarginLoss) {
  const Tensor scores = tensor({0.1, 0.2, 0.4, 0.8}, {1, 4}),
               labels = tensor({3, 0, -1, 1}, {1, 4});
  EXPECT_NEAR(multilabel_margin_loss(scores, labels).item<double>(), 0.85, 1e-6);
}

TEST(Functions, Rearrangements) {
  EXPECT_TRUE(equal(pixel_shuffle(counted({4, 1, 1}), 2), counted({1, 2, 2})));
  EXPECT_TRUE(equal(pixel_unshuffle(counted({1, 2, 2}), 2), counted({4, 1, 1})));
  const Tensor mixed = channel_shuffle(counted({1, 4, 1}), 2).flatten();
  EXPECT_TRUE(equal(mixed, tensor({0.0, 2.0, 1.0, 3.0})));
  EXPECT_TRUE(equal(glu(tensor({2.0, 4.0, 0.0, 0.0})), tensor({1.0, 2.0})));
  const TensorList columns = {tensor({1, 2}), tensor({3, 4, 5, 6}, {2, 2})};
  EXPECT_TRUE(equal(column_stack(columns), tensor({1, 3, 4, 2, 5, 6}, {2, 3})));
  const TensorList vectors = {tensor({1, 2}), tensor({8, 9})};
  EXPECT_TRUE(equal(cartesian_prod(vectors), tensor({1, 8, 1, 9, 2, 8, 2, 9}, {4, 2})));
  EXPECT_TRUE(equal(combinations(tensor({1, 2, 3})), tensor({1, 2, 1, 3, 2, 3}, {3, 2})));
  EXPECT_EQ(combinations(tensor({1, 2, 3}), 2, true).sizes(), IntSpan({6, 2}));
  EXPECT_EQ(block_diag(TensorList{counted({1, 2}), counted({2, 1})}).sizes(), IntSpan({3, 3}));
  Tensor resized = tensor({1, 2, 3, 4});
  EXPECT_EQ(resize_as_(resized, counted({2, 2})).sizes(), IntSpan({2, 2}));
}

// Of whole channels all elements are dropped, or none.
TEST(Functions, Dropout) {
  const Tensor x = ones({4, 16, 5});
  for (const Tensor& y : {feature_dropout(x, 0.5, true), feature_alpha_dropout(x, 0.5, true)}) {
    EXPECT_TRUE(equal(y, y.narrow(2, 0, 1).expand({4, 16, 5})));
    EXPECT_FALSE(equal(y, x));
  }
  const Tensor y = alpha_dropout(randn({100000}), 0.2, true);
  EXPECT_NEAR(y.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(y.std().item<double>(), 1, 0.02);
  EXPECT_TRUE(alpha_dropout(x, 0.5, false).is_same(x));
  EXPECT_THROW(feature_dropout(ones({3}), 0.5, true), Error);
}

TEST(Functions, Normalization) {
  const Tensor x = tensor({1.0, 3.0}, {2, 1}), expected = tensor({-1.0, 1.0}, {2, 1});
  EXPECT_TRUE(equal(batch_norm(x, {}, {}, {}, {}, true, 0.1, 0, true), expected));
  EXPECT_THROW(batch_norm(x, {}, {}, {}, {}, true, 0.1, 0), Error);
}

TEST(Functions, Windows) {
  EXPECT_NEAR(hann_window(4)[1].item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(kaiser_window(3, false, 0.0)[0].item<double>(), 1, 1e-6);
}

TEST(Functions, SignalWindows) {
  EXPECT_TRUE(allclose(signal_windows_hann(5), tensor({0.0, 0.5, 1.0, 0.5, 0.0})));
  const std::vector<double> weights = {0.46, 0.23, 0.31};
  EXPECT_TRUE(allclose(signal_windows_general_cosine(3, weights), tensor({0.54, 1.0, 0.54})));
  EXPECT_TRUE(
      allclose(signal_windows_gaussian(3, 1, false), exp(tensor({-1.125, -0.125, -0.125}))));
  EXPECT_THROW(signal_windows_cosine(-1), Error);
  EXPECT_THROW(signal_windows_general_cosine(3, {}), Error);
}

}  // namespace
}  // namespace taeda
