#include "autograd/hooks.h"

#include <gtest/gtest.h>

#include "hand_ops.h"

namespace taeda::hand {
namespace {

TEST(Hooks, ReplaceAndRemove) {
  Tensor x = leaf({2});
  const uint64_t id = register_hook(x, [](const Tensor& g) { return mul(g, vec({10})); });
  sum(mul(x, x)).backward();
  EXPECT_EQ(values(x.grad()), (Values{40}));
  remove_hook(x, id);
  x.set_grad({});
  sum(mul(x, x)).backward();
  EXPECT_EQ(values(x.grad()), (Values{4}));
}

TEST(Hooks, OfAnInnerTensorRunInOrderBeforeRetainGrad) {
  Tensor x = leaf({2});
  Tensor h = mul(x, x);
  h.retain_grad();
  register_hook(h, [](const Tensor& g) { return mul(g, vec({2})); });
  register_hook(h, [](const Tensor& g) { return add(g, vec({1})); });
  sum(mul(h, vec({5}))).backward();
  EXPECT_EQ(values(h.grad()), (Values{11}));
  EXPECT_EQ(values(x.grad()), (Values{44}));
}

TEST(Hooks, StayWithTheOldValueOfATensorWrittenInPlace) {
  Tensor x = leaf({2});
  Tensor h = mul(x, vec({1}));
  Values before, after;
  register_hook(h, [&](const Tensor& g) {
    before = values(g);
    return Tensor();
  });
  h.retain_grad();
  mul_(h, vec({7}));
  register_hook(h, [&](const Tensor& g) {
    after = values(g);
    return Tensor();
  });
  sum(h).backward();
  EXPECT_EQ(before, (Values{7}));
  EXPECT_EQ(after, (Values{1}));
  EXPECT_EQ(values(h.grad()), (Values{1}));
}

TEST(Hooks, NodeHooks) {
  struct Double final : autograd::PreHook {
    void run(TensorList& grads) override { grads[0] = mul(grads[0], vec({2})); }
  };
  struct Count final : autograd::PostHook {
    Values outgoing, incoming;
    void run(TensorList& out, const TensorList& in) override {
      outgoing = values(out[0]);
      incoming = values(in[0]);
    }
  };
  Tensor x = leaf({3});
  Tensor h = mul(x, vec({5}));
  const auto node = autograd::grad_fn(h);
  Ref<Count> count = make_ref<Count>();
  node->make_extras().pre_hooks.push_back(make_ref<Double>());
  node->make_extras().post_hooks.push_back(count);
  sum(h).backward();
  EXPECT_EQ(count->incoming, (Values{2}));
  EXPECT_EQ(count->outgoing, (Values{10}));
}

TEST(Hooks, PostAccumulate) {
  struct Zero final : autograd::AccumulateHook {
    Values seen;
    void run(const Tensor& leaf) override {
      seen = values(leaf.grad());
      Tensor t = leaf;
      t.set_grad({});
    }
  };
  Tensor x = leaf({3});
  Ref<Zero> hook = make_ref<Zero>();
  autograd::add_post_accumulate_hook(x, hook);
  sum(mul(x, x)).backward();
  EXPECT_EQ(hook->seen, (Values{6}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_THROW(autograd::add_post_accumulate_hook(mul(x, x), hook), Error);
}

TEST(Hooks, RetainGradDoesNotKeepTheTensorAlive) {
  const int64_t before = Node::live_count();
  {
    Tensor x = leaf({3});
    Tensor h = mul(x, x);
    h.retain_grad();
    sum(h).backward();
    EXPECT_EQ(values(h.grad()), (Values{1}));
  }
  EXPECT_EQ(Node::live_count(), before);
}

struct Square : Function<Square> {
  static constexpr const char* name = "SquareBackward";
  static TensorList forward(FunctionContext& ctx, const TensorList& in) {
    ctx.save_for_backward({in[0]});
    return {mul(in[0], in[0])};
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& gy) {
    const Tensor x = ctx.saved_tensors()[0];
    return {mul(gy[0], add(x, x))};
  }
};

TEST(CustomFunction, GradientAndDoubleBackward) {
  const int64_t before = Node::live_count();
  {
    Tensor x = leaf({3});
    Tensor y = Square::apply({x})[0];
    EXPECT_STREQ(autograd::grad_fn(y)->name(), "SquareBackward");
    const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(values(g), (Values{6}));
    EXPECT_EQ(values(grad({g}, {x})[0]), (Values{2}));
    EXPECT_FALSE(Square::apply({vec({2})})[0].requires_grad());
  }
  EXPECT_EQ(Node::live_count(), before);
}

struct Splits : Function<Splits> {
  static constexpr const char* name = "SplitsBackward";
  static TensorList forward(FunctionContext& ctx, const TensorList& in) {
    Tensor marked = add(in[0], in[0]);
    ctx.mark_non_differentiable({marked});
    return {in[0], add(in[0], in[1]), marked};
  }
  static TensorList backward(FunctionContext&, const TensorList& gy) {
    return {add(gy[0], gy[1]), gy[1]};
  }
};

TEST(CustomFunction, InputsReturnedAsTheyAreAndZerosForUnusedResults) {
  Tensor x = leaf({3}), y = leaf({4});
  const TensorList out = Splits::apply({x, y});
  EXPECT_FALSE(out[0].is_same(x));
  EXPECT_FALSE(out[2].requires_grad());
  out[0].backward();
  EXPECT_EQ(values(x.grad()), (Values{1}));
  EXPECT_EQ(values(y.grad()), (Values{0}));
}

}  // namespace
}  // namespace taeda::hand
