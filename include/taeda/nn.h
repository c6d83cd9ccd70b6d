// Neural network modules: parameters with names, composed into trees.
//
//   struct Net : nn::Layer {
//     nn::Linear hidden = add("hidden", nn::Linear(784, 256));
//     nn::Linear output = add("output", nn::Linear(256, 10));
//     Tensor forward(const Tensor& x) const override { return output(relu(hidden(x))); }
//   };
//   Net net;
//   assert(net(rand({3, 784})).sizes() == IntSpan({3, 10}));
//   assert(net.named_parameters()[0].first == "hidden.weight");
//   optim::Adam adam(net.parameters());
//
// A module is a handle, as a Tensor is: copies name the same parameters and the same training flag.
// Layers, their arguments, initial values and parameter names are those of torch.nn; the same seed
// gives the same initial weights. Modules may be used from several threads as long as none changes
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::nn {

// Tensors by name, in the order of registration: "0.weight", "0.bias", ...
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Parameters, buffers (tensors that are state and not trained) and child modules, by name. A name
// in lists has its parents' before it, with dots: "features.0.weight".
class Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  // All parameters of this module and those below it, in the order of registration; one that is
  // shared appears once. Handles: an optimizer that is given them changes the module's own tensors.
  //
  //   const nn::Sequential model{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2)};
  //   int64_t count = 0;
  //   for (const Tensor& p : model.parameters()) count += p.numel();
  //   assert(count == 4 * 8 + 8 + 8 * 2 + 2);
  //   assert(model.named_parameters()[2].first == "2.weight");
  TensorList parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;

  // Parameters and buffers, detached: what save() writes. load_state_dict copies values into the
  // tensors in place, converting dtypes; RuntimeError that lists all sizes that differ and, when
  // `strict`, all names that are missing or not expected.
  //
  //   nn::Linear a(2, 3), b(2, 3);
  //   b.load_state_dict(a.state_dict());
  //   assert(equal(a.weight, b.weight));
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state, bool strict = true);

  // Training mode (dropout drops, batch norm uses the batch's statistics), for this module and
  // those below it. Modules are made in training mode. The mode says nothing of gradients: for
  // evaluation without a graph, open a NoGrad or InferenceMode scope as well.
  //
  //   nn::Sequential model{nn::Linear(2, 2), nn::Dropout(0.9)};
  //   model.eval();
  //   assert(!model.is_training() && equal(model(ones({1, 2})), model[0].forward(ones({1, 2}))));
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  // Converts floating parameters and buffers, keeping the tensor objects, so that optimizers go on
  // with them; integer buffers, such as batch norm's count of batches, stay as they are. Gradients
  // are converted with their parameters. TypeError for integer dtypes.
  //
  //   nn::Linear layer(2, 3);
  //   layer.to(DType::kFloat64);
  //   assert(layer.weight.dtype() == DType::kFloat64 && layer.bias.requires_grad());
  void to(DType dtype);
  // Of all parameters; false freezes them: operators below the first parameter that is trained are
  // then not recorded at all, which saves their memory.
  void requires_grad_(bool value = true);
  // Drops all gradients: grad() is undefined until the next backward.
  void zero_grad();

 protected:
  // Register under `name` and return what was registered, as a member's initializer. An undefined
  // parameter is none (a bias that is left out). ValueError for names that are taken, empty or have
  // a dot, and for a module that is added to itself.
  Tensor add_parameter(std::string_view name, Tensor value);
  Tensor add_buffer(std::string_view name, Tensor value);
  template <class M>
    requires std::is_base_of_v<Module, M> M add(std::string_view name, M module) {
      add_child(name, module);
      return module;
    }

 private:
  struct State;
  friend class Layer;  // whose errors say where in the tree they were thrown
  void add_child(std::string_view name, const Module& child);
  std::shared_ptr<State> state_;
};

// A module of one tensor in, one tensor out. Others are classes with whatever function suits them.
//
// forward() is const: it may be called by several threads at once, as long as no layer writes a
// buffer (batch norm in training does). Parameters are members as well as registered, so that
// forward() reads them without looking up names:
//
//   struct Scale : nn::Layer {
//     Tensor factor = add_parameter("factor", ones({1}));
//     Tensor forward(const Tensor& x) const override { return x * factor; }
//   };
//   const Scale scale;
//   scale(tensor({2.0, 3.0})).sum().backward();
//   assert(scale.factor.grad().item<float>() == 5);
class Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;
  // forward(x); an Error that it throws says where in the model it came from, after its own text:
  //
  //   nn::Sequential model{nn::Linear(4, 8), nn::Linear(9, 2)};
  //   std::string text;
  //   try {
  //     model(ones({3, 4}));
  //   } catch (const Error& error) {
  //     text = error.what();
  //   }
  //   assert(text.find("In module '1' of Sequential: Linear") != std::string::npos);
  Tensor operator()(const Tensor& x) const;

 private:
  [[noreturn]] void fail(const Error& error, const Tensor& x) const;
};

// Layers applied one after the other, named "0", "1", ... In braces, Sequential{Linear(4, 8),
// ReLU()}, layers are made from left to right, so that a seed gives PyTorch's weights; arguments in
// parentheses have no order in C++. A Sequential is a layer, and may be part of another.
//
//   nn::Sequential model{nn::Linear(4, 8), nn::Tanh()};
//   model.push_back(nn::Linear(8, 1));
//   assert(model.size() == 3 && model(ones({5, 4})).sizes() == IntSpan({5, 1}));
class Sequential final : public Layer {
 public:
  Sequential() = default;
  template <class... Layers>
    requires(std::is_base_of_v<Layer, Layers>&&...)
  explicit Sequential(Layers... layers) { (push_back(std::move(layers)), ...); }
  template <class L>
    requires std::is_base_of_v<Layer, L>
  void push_back(L layer) { append(std::make_shared<L>(std::move(layer))); }
  size_t size() const { return layers_->size(); }
  const Layer& operator[](size_t i) const { return *layers_->at(i); }
  using Layer::operator();
  // The last layer's result; x itself without layers.
  Tensor forward(const Tensor& x) const override;

 private:
  using Layers = std::vector<std::shared_ptr<const Layer>>;
  void append(std::shared_ptr<const Layer> layer);
  std::shared_ptr<Layers> layers_ = std::make_shared<Layers>();
};

// One size for both dimensions of an image, or height and width.
struct Size2 {
  int64_t h, w;
  Size2(int64_t both) : h(both), w(both) {}
  Size2(int64_t h, int64_t w) : h(h), w(w) {}
};

// y = x weight^T + bias; x (..., in), weight (out, in), bias (out), y (..., out). Weights begin
// uniform in +- 1 / sqrt(in), as the bias does. RuntimeError for another last size of x.
//
//   const nn::Linear layer(3, 2);
//   assert(layer(ones({4, 5, 3})).sizes() == IntSpan({4, 5, 2}));
class Linear final : public Layer {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;
};

// stride: steps between windows; padding: zeros added at both ends; dilation: steps between a
// window's elements; groups: the channels fall into that many parts, which meet only themselves.
struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
// Cross-correlation: y[n, o, i] = bias[o] + sum over c and k of weight[o, c, k] x[n, c, i stride -
// padding + k dilation]; x (n, in, l) or (in, l), weight (out, in / groups, kernel). The result's
// length is (l + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down. Weights and
// bias begin uniform in +- 1 / sqrt(in / groups * kernel). ValueError unless groups divides `in`
// and `out`; RuntimeError for inputs shorter than the kernel.
//
//   const nn::Conv1d layer(16, 32, 3, {.padding = 2, .dilation = 2});
//   assert(layer(ones({8, 16, 100})).sizes() == IntSpan({8, 32, 100}));
class Conv1d final : public Layer {
 public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv1dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;
  Conv1dOptions options;
};

// As Conv1dOptions; each size is one number for both dimensions, or height and width.
struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
// Cross-correlation of images: x (n, in, h, w) or (in, h, w), weight (out, in / groups, kernel h,
// kernel w). The result's height is (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1.
//
//   const nn::Conv2d layer(3, 8, {5, 3}, {.stride = 2, .padding = {2, 1}});
//   assert(layer(ones({1, 3, 32, 32})).sizes() == IntSpan({1, 8, 16, 16}));
class Conv2d final : public Layer {
 public:
  Conv2d(int64_t in, int64_t out, Size2 kernel, Conv2dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;
  Conv2dOptions options;
};

// output_padding: what is added to the result's sizes, which stride leaves open.
struct ConvTranspose2dOptions {
  Size2 stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
// The gradient of Conv2d with respect to its input: from a small image to a large one. x (n, in, h,
// w), weight (in, out / groups, kernel h, kernel w); the result's height is (h - 1) stride -
// 2 padding + dilation (kernel - 1) + output_padding + 1. RuntimeError for an output_padding that
// is neither below the stride nor below the dilation.
//
//   const nn::ConvTranspose2d twice(8, 4, 2, {.stride = 2});
//   assert(twice(ones({1, 8, 5, 7})).sizes() == IntSpan({1, 4, 10, 14}));
class ConvTranspose2d final : public Layer {
 public:
  ConvTranspose2d(int64_t in, int64_t out, Size2 kernel, ConvTranspose2dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;
  ConvTranspose2dOptions options;
};

// eps is added to variances; momentum is the share of a new batch in the running statistics, which
// evaluation uses; affine: whether there are weight and bias.
struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true, track_running_stats = true;
};
// Ioffe & Szegedy 2015. (x - mean) / sqrt(var + eps) * weight + bias by channel; x has channels in
// dimension 1. In training mean and variance are the batch's, and the running ones move toward
// them; eval() uses the running ones. The variance that normalizes is divided by the number of
// values, the one that is kept by that number less one, as in PyTorch. ValueError in training for
// one value a channel. Training writes buffers, so a layer serves one thread at a time there.
//
//   const nn::BatchNorm2d norm(3);
//   const Tensor y = norm(rand({8, 3, 5, 5}));
//   assert(y.mean().abs().item<float>() < 1e-5);
//   assert(norm.num_batches_tracked.item<int64_t>() == 1);
class BatchNorm : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  BatchNormOptions options;

 protected:
  BatchNorm(int64_t channels, BatchNormOptions options);
  virtual void check(const Tensor& x) const = 0;
};
// x (n, c) or (n, c, l)
class BatchNorm1d final : public BatchNorm {
 public:
  explicit BatchNorm1d(int64_t channels, BatchNormOptions options = {})
      : BatchNorm(channels, options) {}

 private:
  void check(const Tensor& x) const override;
};
// x (n, c, h, w)
class BatchNorm2d final : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t channels, BatchNormOptions options = {})
      : BatchNorm(channels, options) {}

 private:
  void check(const Tensor& x) const override;
};

// Ba et al. 2016: normalizes over the last dimensions, whose sizes are `shape`, as are weight's and
// bias's. RuntimeError for inputs that end otherwise.
//
//   const nn::LayerNorm norm(4);
//   assert(norm(rand({2, 3, 4})).mean().abs().item<float>() < 1e-5);
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(DimVector shape, double eps = 1e-5, bool affine = true);
  explicit LayerNorm(int64_t size) : LayerNorm(DimVector{size}) {}
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;

 private:
  DimVector shape_;
  double eps_;
};

// Wu & He 2018: normalizes each image's channels in `groups` groups; x (n, channels, ...), weight
// and bias (channels). Unlike batch norm it computes the same in training and evaluation, whatever
// the batch. ValueError unless groups divides channels.
//
//   const nn::GroupNorm norm(2, 6);
//   assert(norm(rand({1, 6, 4, 4})).mean().abs().item<float>() < 1e-5);
class GroupNorm final : public Layer {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true);
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;

 private:
  int64_t groups_;
  double eps_;
};

// Rows of `weight` (count, size) by index: int64 or int32 indices (...) give (..., size). The row
// `padding` starts at zero and gets no gradient. IndexError for indices outside.
//
//   const nn::Embedding rows(10, 4);
//   assert(equal(rows(tensor({7, 7}))[1], rows.weight[7]));
class Embedding final : public Layer {
 public:
  Embedding(int64_t count, int64_t size, OptInt padding = std::nullopt);
  Tensor forward(const Tensor& indices) const override;
  Tensor weight;

 private:
  int64_t padding_;
};

// The maximum of each window of (n, c, h, w) or (c, h, w); padding counts as minus infinity, and a
// NaN wins. The result's height is (h + 2 padding - kernel) / stride + 1, rounded down. The
// gradient goes to the first of equal maxima. RuntimeError for padding above half the kernel.
//
//   const nn::MaxPool2d pool(2);
//   assert(pool(arange(16, DType::kFloat32).view({1, 4, 4}))[0][1][1].item<float>() == 15);
class MaxPool2d final : public Layer {
 public:
  // `stride` defaults to the kernel's size.
  explicit MaxPool2d(Size2 kernel, std::optional<Size2> stride = std::nullopt, Size2 padding = 0)
      : kernel_(kernel), stride_(stride.value_or(kernel)), padding_(padding) {}
  Tensor forward(const Tensor& x) const override;

 private:
  Size2 kernel_, stride_, padding_;
};

// The mean of each window of (n, c, h, w) or (c, h, w); padding counts as zeros, and its elements
// are counted. Sizes and errors are MaxPool2d's.
class AvgPool2d final : public Layer {
 public:
  explicit AvgPool2d(Size2 kernel, std::optional<Size2> stride = std::nullopt, Size2 padding = 0)
      : kernel_(kernel), stride_(stride.value_or(kernel)), padding_(padding) {}
  Tensor forward(const Tensor& x) const override;

 private:
  Size2 kernel_, stride_, padding_;
};

// The means of windows that divide the image evenly into `output`.
//
//   const nn::AdaptiveAvgPool2d whole(1);
//   assert(whole(ones({2, 8, 5, 7})).sizes() == IntSpan({2, 8, 1, 1}));
class AdaptiveAvgPool2d final : public Layer {
 public:
  explicit AdaptiveAvgPool2d(Size2 output) : output_(output) {}
  Tensor forward(const Tensor& x) const override;

 private:
  Size2 output_;
};

// Zeroes elements with probability p and scales the others by 1 / (1 - p), in training mode, so
// that the mean stays; x itself in evaluation. Srivastava et al. 2014. Draws one number an element
// from the default generator.
//
//   nn::Dropout drop(0.5);
//   const Tensor y = drop(ones({1000}));
//   assert(((y == 0) | (y == 2)).all().item<bool>());
class Dropout final : public Layer {
 public:
  // ValueError unless p is in [0, 1].
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

// Merges dimensions start to end, both included, into one: (n, c, h, w) becomes (n, c h w). A view
// where the memory allows it. IndexError for dimensions that x has not.
//
//   assert(nn::Flatten()(ones({2, 3, 4, 5})).sizes() == IntSpan({2, 60}));
class Flatten final : public Layer {
 public:
  explicit Flatten(int64_t start = 1, int64_t end = -1) : start_(start), end_(end) {}
  Tensor forward(const Tensor& x) const override;

 private:
  int64_t start_, end_;
};

// Elementwise functions, without parameters: x itself, max(x, 0), tanh x, 1 / (1 + exp(-x)),
// x Phi(x) (Hendrycks & Gimpel 2016), x sigmoid(x), and x or slope x where x is negative. The
// result has the sizes and dtype of x, which is floating; ReLU takes integers too. At the kink ReLU
// and LeakyReLU have the derivative of the negative side, as in PyTorch.
//
//   const Tensor x = tensor({-2.0, 0.0, 3.0});
//   assert(equal(nn::ReLU()(x), tensor({0.0, 0.0, 3.0})));
//   assert(equal(nn::LeakyReLU(0.5)(x), tensor({-1.0, 0.0, 3.0})));
class Identity final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return x; }
};
class ReLU final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
};
class Tanh final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
};
class Sigmoid final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
};
class GELU final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
};
class SiLU final : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
};
class LeakyReLU final : public Layer {
 public:
  explicit LeakyReLU(double slope = 0.01) : slope_(slope) {}
  Tensor forward(const Tensor& x) const override;

 private:
  double slope_;
};
// exp(x) / sum of exp(x) along a dimension, and its logarithm, which is what losses want: the
// logarithm of a small probability is exact. The largest element is subtracted first, so no finite
// x overflows. IndexError for a dimension that x has not.
//
//   const Tensor p = nn::Softmax(-1)(zeros({1, 2}));
//   assert(p[0][0].item<float>() == 0.5);
class Softmax final : public Layer {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) const override;

 private:
  int64_t dim_;
};
class LogSoftmax final : public Layer {
 public:
  explicit LogSoftmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) const override;

 private:
  int64_t dim_;
};

// Losses: functions of a prediction and a target. The reduction "mean" divides the sum of all
// elements' losses by their number, "sum" does not, "none" gives a tensor of them; ValueError for
// others when the loss is computed.
//
//   const nn::MSELoss loss("sum");
//   assert(loss(tensor({1.0, 2.0}), tensor({1.0, 5.0})).item<float>() == 9);
class Loss {
 public:
  explicit Loss(std::string_view reduction = "mean") : reduction_(reduction) {}
  virtual ~Loss() = default;
  virtual Tensor operator()(const Tensor& input, const Tensor& target) const = 0;

 protected:
  std::string reduction_;
};
// (input - target)^2; sizes broadcast, which is seldom what is meant: (n, 1) beside (n) is n^2
// differences.
class MSELoss final : public Loss {
 public:
  using Loss::Loss;
  Tensor operator()(const Tensor& input, const Tensor& target) const override;
};
// |input - target|
class L1Loss final : public Loss {
 public:
  using Loss::Loss;
  Tensor operator()(const Tensor& input, const Tensor& target) const override;
};
// -log softmax(input)[target]: input (n, c, ...) of scores, target (n, ...) of int64 classes or
// (n, c, ...) of probabilities. The class -100 counts for nothing, also in the mean; IndexError for
// others outside [0, c). Scores go in as they are: a Softmax layer before it is a mistake.
//
//   const Tensor scores = tensor({0.0, 0.0, 100.0, 0.0}, {2, 2});
//   const Tensor loss = nn::CrossEntropyLoss("none")(scores, tensor({1, 0}));
//   assert(std::abs(loss[0].item<float>() - std::log(2.0f)) < 1e-6 && loss[1].item<float>() == 0);
class CrossEntropyLoss final : public Loss {
 public:
  using Loss::Loss;
  Tensor operator()(const Tensor& input, const Tensor& target) const override;
};
// -input[target]: input (n, c, ...) of log-probabilities, as LogSoftmax gives them.
class NLLLoss final : public Loss {
 public:
  using Loss::Loss;
  Tensor operator()(const Tensor& input, const Tensor& target) const override;
};
// Binary cross-entropy of sigmoid(input) and target in [0, 1], exact for large inputs:
// max(x, 0) - x y + log(1 + exp(-|x|)). Sizes must be equal: ValueError.
class BCEWithLogitsLoss final : public Loss {
 public:
  using Loss::Loss;
  Tensor operator()(const Tensor& input, const Tensor& target) const override;
};

// torch.nn.functional's: triplet_margin_loss with any distance of rows, mean(max(0,
// d(anchor, positive) - d(anchor, negative) + margin)). `swap` takes the smaller of the distances
// from anchor and positive to the negative. ValueError unless `margin` is positive.
//
//   const auto taxicab = [](const Tensor& x, const Tensor& y) {
//     return abs(x - y).sum(DimVector{1});
//   };
//   const Tensor x = zeros({1, 2}), near = ones({1, 2}), far = near * 1.25;
//   assert(nn::triplet_margin_with_distance_loss(x, near, far, taxicab).item<float>() == 0.5);
Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const std::function<Tensor(const Tensor&, const Tensor&)>& distance, double margin = 1,
    bool swap = false, std::string_view reduction = "mean");

namespace init {

// Both fill `weight` in place, unrecorded, from the default generator. fan_in is its size along
// dimension 1 times those after it, fan_out the same with dimension 0. ValueError below 2
// dimensions.
//
// He et al. 2015, for leaky ReLU of slope a: uniform in +- sqrt(6 / ((1 + a^2) fan_in)). Keeps the
// variance of activations from layer to layer.
//
//   const nn::Linear layer(6, 4);
//   nn::init::kaiming_uniform_(layer.weight);
//   assert(layer.weight.abs().max().item<float>() <= 1 && layer.weight.requires_grad());
void kaiming_uniform_(const Tensor& weight, double a = 0);
// Glorot & Bengio 2010: uniform in +- gain * sqrt(6 / (fan_in + fan_out)).
void xavier_uniform_(const Tensor& weight, double gain = 1);

}  // namespace init

// Scales all gradients in place so that their common 2-norm is at most `max_norm`; returns the norm
// before. Parameters without a gradient are left out. Call it between backward() and the
// optimizer's step. A NaN in one of them makes all of them NaN.
//
//   const Tensor p = zeros({2}).requires_grad_();
//   (p * tensor({3.0, 4.0})).sum().backward();
//   assert(nn::clip_grad_norm_({p}, 1.0) == 5);
//   assert(std::abs(p.grad().norm().item<float>() - 1) < 1e-5);
double clip_grad_norm_(const TensorList& parameters, double max_norm);

}  // namespace taeda::nn
