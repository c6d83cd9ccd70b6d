#include <gtest/gtest.h>

#include "hand_ops.h"

namespace taeda::hand {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string name_of(const Tensor& t) {
  const auto node = autograd::grad_fn(t);
  return node ? node->name() : "none";
}

TEST(Views, WriteToAViewReachesTheBase) {
  Tensor x = leaf({1, 2, 3}), w = leaf({10});
  Tensor base = mul(x, vec({1, 1, 1}));
  Tensor v = slice(base, 1, 1);
  mul_(v, w);
  EXPECT_EQ(name_of(base), "CopySlices");
  EXPECT_EQ(name_of(v), "AsStridedBackward0");
  sum(mul(base, base)).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 400, 6}));
  EXPECT_EQ(values(w.grad()), (Values{2 * 20 * 2}));
}

TEST(Views, WriteToTheBaseReachesViews) {
  Tensor x = leaf({1, 2, 3});
  Tensor base = mul(x, vec({1, 1, 1}));
  Tensor v = slice(base, 1, 2);
  mul_(base, vec({2, 3, 4}));
  sum(v).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 3, 4}));
}

TEST(Views, SiblingsFollow) {
  Tensor base = vec({1, 2, 3}), w = leaf({5});
  Tensor a = slice(base, 0, 2), b = slice(base, 1, 2);
  EXPECT_FALSE(b.requires_grad());
  add_(slice(a, 1, 1), w);  // a view of a view
  EXPECT_TRUE(base.requires_grad());
  EXPECT_TRUE(b.requires_grad());
  EXPECT_FALSE(b.is_leaf());
  sum(mul(b, b)).backward();
  EXPECT_EQ(values(w.grad()), (Values{14}));
}

TEST(Views, OverwritingCutsTheOldValueOff) {
  Tensor x = leaf({1, 2, 3});
  Tensor base = mul(x, vec({1, 1, 1}));
  mul_(slice(base, 0, 2), vec({0, 0}));
  sum(base).backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 1}));
}

TEST(Views, ResultSavedByAnInplaceOperatorOnAView) {
  Tensor x = leaf({0.5, 1});
  Tensor base = mul(x, vec({1, 1}));
  exp_(slice(base, 0, 1));
  const Tensor g = grad({sum(base)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_DOUBLE_EQ(at(g, 0), std::exp(0.5));
  EXPECT_DOUBLE_EQ(at(g, 1), 1);
  EXPECT_DOUBLE_EQ(at(grad({sum(g)}, {x})[0], 0), std::exp(0.5));
}

TEST(Views, LeafErrors) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(
      message_of([&] { add_(x, x); }),
      "a leaf Variable that requires grad is being used in an in-place operation. add_() of a "
      "parameter belongs under torch.no_grad().");
  EXPECT_EQ(message_of([&] { add_(slice(x, 0, 1), vec({1})); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  const NoGrad guard;
  add_(x, vec({1, 1}));
  EXPECT_EQ(values(x), (Values{2, 3}));
  EXPECT_EQ(x.version(), 1u);
}

TEST(Views, MadeWithoutGradMayNotBeWritten) {
  Tensor x = leaf({1, 2});
  Tensor base = mul(x, x), v;
  {
    const NoGrad guard;
    v = slice(base, 0, 1);
  }
  EXPECT_TRUE(v.requires_grad());
  EXPECT_TRUE(v.is_leaf());
  EXPECT_NE(message_of([&] {
              add_(v, vec({1}));
            }).find("A view was created in no_grad mode and is being modified inplace"),
            std::string::npos);
  add_(base, vec({1, 1}));
  EXPECT_NE(message_of([&] { autograd::grad_fn(v); })
                .find("A view was created in no_grad mode and its base or another view of its base "
                      "has been modified"),
            std::string::npos);
}

TEST(Views, OneOfSeveralMayNotBeWritten) {
  Tensor x = leaf({1, 2});
  Tensor base = mul(x, x);
  Tensor v = slice(base, 0, 1);
  autograd::track_view(TensorList{v}, base);
  EXPECT_NE(message_of([&] { add_(v, vec({1})); })
                .find("Output 0 of Slice is a view and is being modified inplace. This view is the "
                      "output of a function that "
                      "returns multiple views."),
            std::string::npos);
}

TEST(Views, InferenceMode) {
  Tensor x = leaf({1, 2}), i, w;
  Tensor y = mul(x, x);
  {
    const InferenceMode guard;
    EXPECT_FALSE(mul(x, x).requires_grad());
    i = vec({1, 2});
    w = slice(y, 0, 1);
    add_(y, vec({1, 1}));
  }
  EXPECT_TRUE(thread_modes.grad_enabled);
  EXPECT_FALSE(w.is_inference());
  EXPECT_TRUE(slice(i, 0, 1).is_inference());
  EXPECT_NE(message_of([&] { add_(w, vec({1})); }).find("A view was created in inference mode"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              i.requires_grad_();
            }).find("Setting requires_grad=True on inference tensor"),
            std::string::npos);
}

TEST(Leaves, RequiresGrad) {
  Tensor x = vec({1});
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(x.requires_grad());
  x.requires_grad_();
  EXPECT_TRUE(x.impl()->keys.has(Key::kAutograd));
  Tensor y = mul(x, x);
  EXPECT_FALSE(y.is_leaf());
  EXPECT_NE(message_of([&] {
              y.requires_grad_(false);
            }).find("you can only change requires_grad flags of leaf variables"),
            std::string::npos);
  x.requires_grad_(false);
  EXPECT_FALSE(x.impl()->keys.has(Key::kAutograd));
  EXPECT_NE(message_of([&] {
              x.set_grad(vec({1, 2}));
            }).find("attempting to assign a gradient of size '[2]'"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { x.set_grad(x); }), "can't assign Variable as its own grad");
}

TEST(Leaves, DataSharesMemoryButNotVersions) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, x);
  Tensor data = x.variable_data();
  EXPECT_FALSE(data.requires_grad());
  add_(data, vec({1, 1}));
  EXPECT_EQ(x.version(), 0u);
  EXPECT_EQ(values(x), (Values{2, 3}));
  x.set_data(vec({5, 6, 7}));
  EXPECT_TRUE(x.requires_grad());
  sum(mul(x, x)).backward();
  EXPECT_EQ(values(x.grad()), (Values{10, 12, 14}));
}

}  // namespace
}  // namespace taeda::hand
