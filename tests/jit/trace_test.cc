#include "taeda/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "taeda/autograd.h"
#include "taeda/ops.h"
#include "taeda/values.h"

namespace taeda::jit {
namespace {

TensorList sine_twice(TensorSpan x) { return {mul(x[0].sin(), 2.0)}; }

TEST(Trace, RecordsCallsInTheirOrder) {
  const Program program = trace(sine_twice, TensorList{tensor({1.0, 2.0})});
  ASSERT_EQ(program.nodes.size(), 2u);
  EXPECT_EQ(program.nodes[0].op->qualified_name(), "aten::sin");
  EXPECT_EQ(program.nodes[1].arguments[0].values, program.nodes[0].results[0].values);
  EXPECT_EQ(program.nodes[1].arguments[1].constant.real(), 2.0);
  EXPECT_EQ(program.text(),
            "program(%0: float32[2]):\n"
            "  %1 = aten::sin(%0)\n"
            "  %2 = aten::mul.Tensor(%1, 2.0)\n"
            "  return %2\n");
}

TEST(Trace, RunsOnOtherInputs) {
  const Program program = trace(sine_twice, TensorList{tensor({1.0, 2.0})});
  const Tensor x = tensor({0.5, 0.25, 4.0}).requires_grad_();
  const Tensor y = program.run(TensorList{x})[0];
  EXPECT_TRUE(equal(y, sine_twice(TensorList{x})[0]));
  y.sum().backward();
  EXPECT_TRUE(equal(x.grad(), mul(x.detach().cos(), 2.0)));
  const NoGrad off;
  EXPECT_FALSE(program.run(TensorList{x})[0].requires_grad());
}

TEST(Trace, KeepsWritesAndGradModes) {
  const Program program = trace(
      [](TensorSpan x) {
        const Tensor y = x[0].clone(), row = y[0];
        const NoGrad off;
        row.mul_(3.0);
        return TensorList{y};
      },
      TensorList{ones({2, 2})});
  const Tensor x = full({2, 2}, 2.0);
  EXPECT_EQ(program.run(TensorList{x})[0].sum().item<float>(), 16);
  EXPECT_EQ(x.sum().item<float>(), 8);
  EXPECT_TRUE(program.nodes.front().grad_enabled);
  EXPECT_FALSE(program.nodes.back().grad_enabled);
}

TEST(Trace, RecordsGradientsBelowAutograd) {
  const Program program = trace(
      [](TensorSpan given) {
        const Tensor x = given[0].detach().requires_grad_();
        mul(x, x.exp()).sum().backward();
        return TensorList{x.grad()};
      },
      TensorList{tensor({1.0, 2.0})});
  const Tensor x = tensor({0.5, -1.0});
  const Tensor expected = mul(x.exp(), add(x, 1.0));
  EXPECT_TRUE(allclose(program.run(TensorList{x})[0], expected));
}

TEST(Trace, LeavesOutWhatNobodyReads) {
  Program program = trace(
      [](TensorSpan x) {
        x[0].exp();
        mul(x[0], 5.0).add_(1.0);
        return TensorList{x[0].cos()};
      },
      TensorList{ones({2})});
  EXPECT_EQ(program.nodes.size(), 4u);
  program.remove_dead_code();
  ASSERT_EQ(program.nodes.size(), 1u);
  EXPECT_EQ(program.nodes[0].op->name(), "aten::cos");
}

TEST(Trace, BelongsToItsThread) {
  const Recording recording(TensorList{});
  EXPECT_TRUE(is_tracing());
  EXPECT_THROW(Recording{TensorList{}}, Error);
  std::thread([] { EXPECT_FALSE(is_tracing()); }).join();
}

TEST(Trace, EndsWithItsScope) {
  { const Recording recording(TensorList{}); }
  EXPECT_FALSE(is_tracing());
  EXPECT_FALSE(thread_modes.included.has(Key::kTrace));
}

}  // namespace
}  // namespace taeda::jit
