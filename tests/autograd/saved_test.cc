#include "autograd/saved.h"

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

TEST(SavedTensor, ModifiedInputRaises) {
  Tensor x = leaf({2, 3});
  Tensor h = mul(x, vec({1, 1}));
  Tensor y = mul(h, h);
  add_(h, vec({1, 1}));
  const std::string text = message_of([&] { sum(y).backward(); });
  EXPECT_NE(text.find("one of the variables needed for gradient computation has been modified by "
                      "an inplace operation: "
                      "[torch.DoubleTensor [2]], which is output 0 of Mul, is at version 1; "
                      "expected version 0 instead."),
            std::string::npos)
      << text;
}

TEST(SavedTensor, ModifiedResultRaises) {
  Tensor x = leaf({2, 3});
  Tensor y = exp(x);
  add_(y, vec({1, 1}));
  const std::string text = message_of([&] { sum(y).backward(); });
  EXPECT_NE(text.find("which is output 0 of Exp, is at version 1; expected version 0 instead"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("with AnomalyMode::set(true).\nFix: "), std::string::npos) << text;
}

TEST(SavedTensor, ModifiedThroughAViewOrBaseRaises) {
  Tensor x = leaf({2, 3});
  Tensor base = vec({1, 2});
  Tensor y = mul(x, base);
  add_(slice(base, 0, 1), vec({1}));
  EXPECT_NE(message_of([&] { sum(y).backward(); }).find("is at version 1; expected version 0"),
            std::string::npos);
}

TEST(SavedTensor, AnomalyModeNamesTheWriter) {
  AnomalyMode::set(true);
  Tensor x = leaf({2, 3});
  Tensor h = mul(x, vec({1, 1}));
  Tensor y = mul(h, h);
  mul_(h, vec({1, 1}));
  const std::string text = message_of([&] { sum(y).backward(); });
  AnomalyMode::set(false);
  EXPECT_NE(text.find("last written by mul_"), std::string::npos) << text;
}

TEST(SavedTensor, NothingLeaks) {
  const int64_t before = Node::live_count();
  {
    Tensor x = leaf({2, 3});
    Tensor y = exp(mul(x, x));  // saves its result
    EXPECT_GT(Node::live_count(), before);
  }
  EXPECT_EQ(Node::live_count(), before);
  {
    // A residual sum in place: the node that saved h is reachable from h's new history.
    Tensor w = leaf({2, 3}), h = vec({1, 1});
    Tensor z = mul(h, w);
    add_(h, z);
    EXPECT_TRUE(h.requires_grad());
  }
  EXPECT_EQ(Node::live_count(), before);
  {
    Tensor base = vec({1, 1}), w = leaf({2});
    Tensor v = slice(base, 0, 1);
    exp_(add_(v, mul(v, w)));
  }
  EXPECT_EQ(Node::live_count(), before);
  {
    Tensor x = leaf({2, 3});
    sum(mul(x, x)).backward({}, false, /*create_graph=*/true);
    x.set_grad({});
  }
  EXPECT_EQ(Node::live_count(), before);
}

TEST(SavedTensor, MemoryGoesWithBackward) {
  Tensor x = leaf({2, 3});
  Tensor h = mul(x, vec({1, 1}));
  const Ref<Storage> storage = h.storage();
  Tensor y = sum(mul(h, h));
  h = Tensor();
  EXPECT_GT(storage->use_count(), 1u);
  y.backward();
  EXPECT_EQ(storage->use_count(), 1u);
}

TEST(SavedTensor, InferenceTensorsCannotBeSaved) {
  Tensor i;
  {
    const InferenceMode guard;
    i = vec({1, 2});
  }
  EXPECT_TRUE(i.is_inference());
  EXPECT_NE(message_of([&] {
              mul(leaf({1, 2}), i);
            }).find("Inference tensors cannot be saved for backward"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              add_(i, i);
            }).find("Inplace update to inference tensor outside InferenceMode"),
            std::string::npos);
}

// Keeps the values in a plain vector.
struct Offload final : autograd::SavedTensorHooks {
  struct Packed final : RefCounted {
    Values values;
  };
  int packs = 0, unpacks = 0;
  Ref<RefCounted> pack(const Tensor& t) override {
    packs++;
    auto packed = make_ref<Packed>();
    packed->values = values(t);
    return packed;
  }
  Tensor unpack(RefCounted& packed) override {
    unpacks++;
    const Values& v = static_cast<Packed&>(packed).values;
    Tensor t = fresh({static_cast<int64_t>(v.size())});
    std::copy(v.begin(), v.end(), t.data<double>());
    return t;
  }
};

TEST(SavedTensorHooks, PackAndUnpack) {
  Ref<Offload> hooks = make_ref<Offload>();
  Tensor x = leaf({2, 3});
  autograd::push_saved_tensor_hooks(hooks);
  Tensor y = exp(mul(x, x));
  autograd::pop_saved_tensor_hooks();
  EXPECT_EQ(hooks->packs, 3);
  const Tensor g = grad({sum(y)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(hooks->unpacks, 3);
  for (int i = 0; i < 2; i++) {
    const double v = at(x, i);
    EXPECT_DOUBLE_EQ(at(g, i), 2 * v * std::exp(v * v));
  }
  const Tensor gg = grad({sum(g)}, {x})[0];
  for (int i = 0; i < 2; i++) {
    const double v = at(x, i);
    EXPECT_NEAR(at(gg, i), (2 + 4 * v * v) * std::exp(v * v), 1e-9 * std::abs(at(gg, i)));
  }
}

TEST(SavedTensorHooks, Disabled) {
  autograd::disable_saved_tensor_hooks("not here");
  EXPECT_EQ(message_of([] { autograd::push_saved_tensor_hooks(make_ref<Offload>()); }), "not here");
  autograd::enable_saved_tensor_hooks();
}

}  // namespace
}  // namespace taeda::hand
