#include "taeda/indexing.h"

#include <gtest/gtest.h>

#include <sstream>

#include "taeda/taeda.h"

namespace taeda {
namespace {

using namespace indexing;

std::vector<float> values(const Tensor& t) {
  const Tensor flat = to_dtype(t.detach(), DType::kFloat32).contiguous();
  return {flat.data<float>(), flat.data<float>() + flat.numel()};
}

void expect(const Tensor& t, IntSpan sizes, const std::vector<float>& want) {
  EXPECT_EQ(t.sizes(), sizes);
  EXPECT_EQ(values(t), want);
}

// 0 1 2 3 / 4 5 6 7 / 8 9 10 11
Tensor table() { return arange(Scalar(12.0), TensorOptions()).reshape({3, 4}); }

TEST(Indexing, ViewsOfRowsSlicesAndNewDimensions) {
  const Tensor x = table();
  expect(x[1], {4}, {4, 5, 6, 7});
  expect(x[-1][0], {}, {8});
  expect(x.index({Slice(1)}), {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
  expect(x.index({Slice(None, None, 2), 1}), {2}, {1, 9});
  expect(x.index({Ellipsis, Slice(-2, None)}), {3, 2}, {2, 3, 6, 7, 10, 11});
  expect(x.index({0, None, Slice(0, 2)}), {1, 2}, {0, 1});
  expect(x.index({true}).index({0, 0}), {4}, {0, 1, 2, 3});
  Tensor row = x[1];
  row.fill_(Scalar(0.0));
  EXPECT_EQ(x.index({1, 2}).item<float>(), 0);
}

TEST(Indexing, TensorsAndMasksCopy) {
  const Tensor x = table();
  expect(x[tensor({2, 0})], {2, 4}, {8, 9, 10, 11, 0, 1, 2, 3});
  expect(x.index({tensor({2, 0}), tensor({1, 3})}), {2}, {9, 3});
  expect(x[x > 8.5], {3}, {9, 10, 11});
  expect(x.index({Slice(), x[0] == 2.0}), {3, 1}, {2, 6, 10});
}

TEST(Indexing, Assignment) {
  Tensor x = table();
  x.index_put_({0}, -1.0).index_put_({Slice(1), 0}, tensor({7.0f, 8.0f}));
  expect(x, {3, 4}, {-1, -1, -1, -1, 7, 5, 6, 7, 8, 9, 10, 11});
  x.index_put_({x > 6.5}, 0.0);
  expect(x, {3, 4}, {-1, -1, -1, -1, 0, 5, 6, 0, 0, 0, 0, 0});
  x.index_put_({tensor({0, 1}), tensor({0, 1})}, tensor({1.0f, 2.0f}));
  expect(x[0], {4}, {1, -1, -1, -1});
  expect(x[1], {4}, {0, 2, 6, 0});
  const Tensor w = ones({3}).requires_grad_();
  Tensor y = w * 2.0;
  y.index_put_({0}, 5.0);
  y.sum().backward();
  expect(w.grad(), {3}, {0, 2, 2});
}

TEST(Indexing, MistakesNameWhatIsWrong) {
  const Tensor x = table();
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([&] { x[3]; }),
            "index 3 is out of bounds for dimension 0 with size 3\nFix: indices run from -3 to 2");
  EXPECT_EQ(message([&] {
              x.index({0, -5});
            }),
            "index -5 is out of bounds for dimension 1 with size 4\nFix: indices run from -4 to 3");
  EXPECT_EQ(message([&] { x.index({0, 0, 0}); }), "too many indices for tensor of dimension 2");
  EXPECT_EQ(message([&] { x.index({Slice(None, None, 0)}); }), "step must be greater than zero");
  EXPECT_NE(message([&] { x.sum()[0]; }).find("0-dim tensor"), std::string::npos);
  EXPECT_NE(message([&] { x[tensor({0.5f})]; }).find("must be long"), std::string::npos);
}

TEST(Operators, ArithmeticComparisonsAndLogic) {
  const Tensor a = tensor({1.0f, 2.0f, 3.0f}), b = tensor({3.0f, 2.0f, 1.0f});
  expect(-a, {3}, {-1, -2, -3});
  expect(a % 2.0, {3}, {1, 0, 1});
  expect(1.0 - a, {3}, {0, -1, -2});
  expect(a == b, {3}, {0, 1, 0});
  expect(a != b, {3}, {1, 0, 1});
  expect(a < b, {3}, {1, 0, 0});
  expect(a <= 2.0, {3}, {1, 1, 0});
  expect(2.0 > a, {3}, {1, 0, 0});
  expect(a >= b, {3}, {0, 1, 1});
  expect((a > 1.0) & (a < 3.0), {3}, {0, 1, 0});
  expect((a < 2.0) | (a > 2.0), {3}, {1, 0, 1});
  expect((a < 2.0) ^ (a < 3.0), {3}, {0, 1, 0});
  expect(~(a < 2.0), {3}, {0, 1, 1});
  expect(!(a - 1.0), {3}, {1, 0, 0});
}

TEST(Operators, CompoundAssignmentChangesTheElements) {
  Tensor x = tensor({1.0f, 2.0f, 3.0f});
  const Tensor same = x;
  x += 1.0;
  x *= x;
  x -= tensor({0.0f, 1.0f, 2.0f});
  x /= 2.0;
  expect(same, {3}, {2, 4, 7});
  x %= 3.0;
  expect(same, {3}, {2, 1, 1});
  same.index({Slice(1)}) += 10.0;
  expect(x, {3}, {2, 11, 11});
  Tensor bits = tensor({6, 5});
  bits &= 3;
  bits |= 8;
  bits ^= 1;
  expect(bits, {2}, {11, 8});
}

TEST(Operators, PrintAsPyTorch) {
  std::ostringstream out;
  out << tensor({1.0f, 2.5f}) << " " << Tensor();
  EXPECT_EQ(out.str(), "tensor([1.0000, 2.5000]) Tensor()");
}

TEST(Storage, ViewsFollowMemoryThatMoves) {
  Tensor x = ones({100});
  const Tensor row = x.index({Slice(0, 3)});
  x.resize_({100000});
  x.index_put_({1}, 5.0);
  expect(row, {3}, {1, 5, 1});
}

}  // namespace
}  // namespace taeda
