#include <gtest/gtest.h>

#include <cmath>

#include "taeda/taeda.h"

namespace taeda {
namespace {

std::vector<float> values(const Tensor& t) {
  const Tensor flat = t.detach().contiguous();
  return {flat.data<float>(), flat.data<float>() + flat.numel()};
}

void expect_values(const Tensor& t, const std::vector<float>& want) {
  const std::vector<float> got = values(t);
  ASSERT_GE(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) EXPECT_FLOAT_EQ(got[i], want[i]) << i;
}

// The numbers are torch.nn's after torch.manual_seed(0).
TEST(Layers, StartFromTorchsWeights) {
  manual_seed(0);
  const nn::Linear linear(3, 2);
  expect_values(linear.weight, {-0.004322517663240433f, 0.3097158372402191f, -0.4751853346824646f,
                                -0.4248946011066437f, -0.2223689705133438f, 0.15482072532176971f});
  expect_values(linear.bias, {-0.011439144611358643f, 0.45777493715286255f});
  manual_seed(0);
  const nn::Conv2d conv(4, 6, {3, 2}, {.groups = 2});
  EXPECT_EQ(conv.weight.sizes(), IntSpan({6, 2, 3, 2}));
  expect_values(conv.weight, {-0.0021612588316202164f, 0.15485791862010956f, -0.2375926673412323f});
  expect_values(conv.bias, {0.11345218122005463f, 0.23918160796165466f});
  manual_seed(0);
  const nn::ConvTranspose2d transposed(4, 6, 3, {.groups = 2});
  EXPECT_EQ(transposed.weight.sizes(), IntSpan({4, 3, 3, 3}));
  expect_values(transposed.weight,
                {-0.0014408392598852515f, 0.10323861986398697f, -0.15839511156082153f});
  expect_values(transposed.bias, {-0.01060392428189516f, 0.028895428404211998f});
  manual_seed(0);
  const nn::Embedding embedding(5, 4, 1);
  expect_values(embedding.weight, {-1.1258398294448853f, -1.152360200881958f, -0.2505785822868347f,
                                   -0.4338788092136383f, 0, 0, 0, 0});
}

struct Net : nn::Layer {
  nn::Linear first = add("first", nn::Linear(4, 8));
  nn::BatchNorm1d norm = add("norm", nn::BatchNorm1d(8));
  nn::Sequential rest = add("rest", nn::Sequential{nn::ReLU(), nn::Dropout(0.5), nn::Linear(8, 3)});
  Tensor forward(const Tensor& x) const override { return rest(norm(first(x))); }
};

TEST(Module, NamesAndState) {
  const Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias",
                                      "norm.running_mean", "norm.running_var",
                                      "norm.num_batches_tracked", "rest.2.weight", "rest.2.bias"}));
  EXPECT_EQ(net.parameters().size(), 6u);
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad() && p.is_leaf());
}

TEST(Module, LoadStateDict) {
  Net a, b;
  b.load_state_dict(a.state_dict());
  a.eval();
  b.eval();
  const Tensor x = randn({5, 4});
  EXPECT_EQ(values(a(x)), values(b(x)));
  nn::NamedTensors state = a.state_dict();
  state[0].first = "renamed";
  try {
    b.load_state_dict(state);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("Missing key in state_dict: \"first.weight\""), std::string::npos);
    EXPECT_NE(text.find("Unexpected key in state_dict: \"renamed\""), std::string::npos);
  }
  b.load_state_dict(state, /*strict=*/false);
  state = a.state_dict();
  state[0].second = zeros({2, 2});
  EXPECT_THROW(b.load_state_dict(state), Error);
}

TEST(Module, TrainingModeReachesCopiesAndChildren) {
  Net net;
  const Net handle = net;
  EXPECT_TRUE(handle.rest.is_training());
  net.eval();
  EXPECT_FALSE(handle.is_training());
  EXPECT_FALSE(handle.rest[1].is_training());
  const Tensor x = ones({3, 4});
  EXPECT_EQ(values(net(x)), values(handle(x)));
}

TEST(Module, BatchNormTracksStatistics) {
  nn::BatchNorm1d norm(2);
  const Tensor x = tensor({1., 10., 3., 30.}, {2, 2});
  norm(x);
  expect_values(norm.running_mean, {0.2f, 2.0f});  // 0.1 * mean
  expect_values(norm.running_var,
                {1.1f, 0.9f + 20.0f});  // 0.9 + 0.1 * unbiased variance (2 and 200)
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  norm.eval();
  norm(x);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  EXPECT_THROW(norm(ones({2, 2, 2, 2})), Error);
}

TEST(Module, ToKeepsTheTensorObjects) {
  Net net;
  const TensorList before = net.parameters();
  net.to(DType::kFloat64);
  const TensorList after = net.parameters();
  for (size_t i = 0; i < after.size(); i++) {
    EXPECT_TRUE(after[i].is_same(before[i]));
    EXPECT_EQ(after[i].dtype(), DType::kFloat64);
    EXPECT_TRUE(after[i].requires_grad());
  }
  EXPECT_EQ(net.norm.num_batches_tracked.dtype(), DType::kInt64);
  EXPECT_EQ(net(zeros({2, 4}, DType::kFloat64)).dtype(), DType::kFloat64);
}

TEST(Module, ErrorsNameTheModule) {
  struct Block : nn::Layer {
    nn::Sequential body = add("body", nn::Sequential{nn::Linear(4, 8), nn::Linear(9, 2)});
    Tensor forward(const Tensor& x) const override { return body(x); }
  };
  struct Net : nn::Layer {
    Block first = add("first", Block());
    Tensor forward(const Tensor& x) const override { return first(x); }
  };
  const auto text_of = [](const nn::Layer& layer, const Tensor& x) -> std::string {
    try {
      layer(x);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRuntime);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(text_of(Net(), ones({3, 4})),
            "mat1 and mat2 shapes cannot be multiplied (3x8 and 9x2)\n"
            "In module 'first.body.1' of Net: Linear, called with [3, 8] float32\n"
            "Fix: the input's last size is 8 and the weight's 9: make them equal");
  EXPECT_EQ(text_of(nn::Linear(2, 2), ones({3, 4})),
            "mat1 and mat2 shapes cannot be multiplied (3x4 and 2x2)\n"
            "In module Linear, called with [3, 4] float32\n"
            "Fix: the input's last size is 4 and the weight's 2: make them equal");
}

TEST(Module, RejectsBadNames) {
  struct Bad : nn::Module {
    explicit Bad(const char* a, const char* b) {
      add(a, nn::ReLU());
      add(b, nn::ReLU());
    }
  };
  EXPECT_NO_THROW(Bad("a", "b"));
  for (const char* name : {"", "a.b", "a"}) EXPECT_THROW(Bad("a", name), Error) << name;
}

TEST(Layers, Shapes) {
  const Tensor image = randn({2, 4, 8, 6});
  EXPECT_EQ(nn::Conv2d(4, 6, 3, {.stride = 2, .padding = 1})(image).sizes(), IntSpan({2, 6, 4, 3}));
  EXPECT_EQ(nn::ConvTranspose2d(4, 6, 2, {.stride = 2})(image).sizes(), IntSpan({2, 6, 16, 12}));
  EXPECT_EQ(nn::Conv1d(4, 5, 3)(randn({2, 4, 9})).sizes(), IntSpan({2, 5, 7}));
  EXPECT_EQ(nn::MaxPool2d(2)(image).sizes(), IntSpan({2, 4, 4, 3}));
  EXPECT_EQ(nn::AvgPool2d(2, nn::Size2(1))(image).sizes(), IntSpan({2, 4, 7, 5}));
  EXPECT_EQ(nn::AdaptiveAvgPool2d(1)(image).sizes(), IntSpan({2, 4, 1, 1}));
  EXPECT_EQ(nn::BatchNorm2d(4)(image).sizes(), image.sizes());
  EXPECT_EQ(nn::GroupNorm(2, 4)(image).sizes(), image.sizes());
  EXPECT_EQ(nn::LayerNorm(6)(image).sizes(), image.sizes());
  EXPECT_EQ(nn::Flatten()(image).sizes(), IntSpan({2, 192}));
  EXPECT_EQ(nn::Embedding(7, 3)(zeros({2, 5}, DType::kInt64)).sizes(), IntSpan({2, 5, 3}));
}

TEST(Layers, Activations) {
  const Tensor x = tensor({-2., 0., 1.5});
  const auto each = [&](const nn::Layer& layer, double (*f)(double)) {
    const std::vector<float> got = values(layer(x));
    const double at[] = {-2, 0, 1.5};
    for (int i = 0; i < 3; i++) EXPECT_NEAR(got[i], f(at[i]), 2e-7) << i;
  };
  each(nn::ReLU(), [](double v) { return v > 0 ? v : 0; });
  each(nn::Tanh(), [](double v) { return std::tanh(v); });
  each(nn::Sigmoid(), [](double v) { return 1 / (1 + std::exp(-v)); });
  each(nn::SiLU(), [](double v) { return v / (1 + std::exp(-v)); });
  each(nn::GELU(), [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  each(nn::LeakyReLU(0.1), [](double v) { return v > 0 ? v : 0.1 * v; });
}

TEST(Losses, Values) {
  const Tensor x = tensor({1., 2., 3., 4.}, {2, 2}), y = tensor({0., 2., 5., 4.}, {2, 2});
  EXPECT_FLOAT_EQ(nn::MSELoss()(x, y).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(nn::MSELoss("sum")(x, y).item<float>(), 5);
  EXPECT_FLOAT_EQ(nn::L1Loss()(x, y).item<float>(), 0.75f);
  const Tensor classes = tensor({1, 0});
  const float a = std::log(1 + std::exp(-1.0f)), b = std::log(1 + std::exp(1.0f));
  EXPECT_NEAR(nn::CrossEntropyLoss()(x, classes).item<float>(), (a + b) / 2, 1e-6);
  EXPECT_NEAR(nn::NLLLoss()(log_softmax(x, 1), classes).item<float>(), (a + b) / 2, 1e-6);
}

TEST(ClipGradNorm, ScalesAllGradients) {
  Tensor a = zeros({2}), b = zeros({1});
  a.requires_grad_();
  b.requires_grad_();
  a.set_grad(tensor({3., 0.}));
  b.set_grad(tensor({4.}));
  EXPECT_NEAR(nn::clip_grad_norm_({a, b}, 1), 5, 1e-6);
  expect_values(a.grad(), {3 / (5 + 1e-6f), 0});
  expect_values(b.grad(), {4 / (5 + 1e-6f)});
}

}  // namespace
}  // namespace taeda
