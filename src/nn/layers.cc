#include "nn/init.h"
#include "op/_triplet_loss_of_distances.h"
#include "op/adaptive_avg_pool2d.h"
#include "op/add.h"
#include "op/avg_pool2d.h"
#include "op/batch_norm.h"
#include "op/binary_cross_entropy_with_logits.h"
#include "op/conv1d.h"
#include "op/conv2d.h"
#include "op/conv_transpose2d.h"
#include "op/cross_entropy.h"
#include "op/dropout.h"
#include "op/embedding.h"
#include "op/flatten.h"
#include "op/gelu.h"
#include "op/group_norm.h"
#include "op/gt.h"
#include "op/l1_loss.h"
#include "op/layer_norm.h"
#include "op/linear.h"
#include "op/log_softmax.h"
#include "op/max_pool2d.h"
#include "op/minimum.h"
#include "op/mse_loss.h"
#include "op/mul.h"
#include "op/nll_loss.h"
#include "op/ones.h"
#include "op/randn.h"
#include "op/relu.h"
#include "op/select.h"
#include "op/sigmoid.h"
#include "op/softmax.h"
#include "op/tanh.h"
#include "op/where.h"
#include "op/zero_.h"
#include "op/zeros.h"
#include "taeda/autograd.h"
#include "taeda/nn.h"

namespace taeda::nn {
namespace {

DimVector pair_of(Size2 size) { return {size.h, size.w}; }

void check_channels(int64_t in, int64_t out, int64_t groups) {
  TD_CHECK_VALUE(groups > 0, "groups must be a positive integer");
  TD_CHECK_VALUE(in % groups == 0, "in_channels must be divisible by groups");
  TD_CHECK_VALUE(out % groups == 0, "out_channels must be divisible by groups");
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias) {
  weight = add_parameter("weight", initial_weight({out, in}));
  if (with_bias) bias = add_parameter("bias", initial_bias(weight, out));
}
Tensor Linear::forward(const Tensor& x) const { return op::linear(x, weight, bias); }

Conv1d::Conv1d(int64_t in, int64_t out, int64_t kernel, Conv1dOptions options) : options(options) {
  check_channels(in, out, options.groups);
  weight = add_parameter("weight", initial_weight({out, in / options.groups, kernel}));
  if (options.bias) bias = add_parameter("bias", initial_bias(weight, out));
}
Tensor Conv1d::forward(const Tensor& x) const {
  return op::conv1d(x, weight, bias, {options.stride}, {options.padding}, {options.dilation},
                    options.groups);
}

Conv2d::Conv2d(int64_t in, int64_t out, Size2 kernel, Conv2dOptions options) : options(options) {
  check_channels(in, out, options.groups);
  weight = add_parameter("weight", initial_weight({out, in / options.groups, kernel.h, kernel.w}));
  if (options.bias) bias = add_parameter("bias", initial_bias(weight, out));
}
Tensor Conv2d::forward(const Tensor& x) const {
  return op::conv2d(x, weight, bias, pair_of(options.stride), pair_of(options.padding),
                    pair_of(options.dilation), options.groups);
}

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, Size2 kernel,
                                 ConvTranspose2dOptions options)
    : options(options) {
  check_channels(in, out, options.groups);
  weight = add_parameter("weight", initial_weight({in, out / options.groups, kernel.h, kernel.w}));
  if (options.bias) bias = add_parameter("bias", initial_bias(weight, out));
}
Tensor ConvTranspose2d::forward(const Tensor& x) const {
  return op::conv_transpose2d(x, weight, bias, pair_of(options.stride), pair_of(options.padding),
                              pair_of(options.output_padding), options.groups,
                              pair_of(options.dilation));
}

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions options) : options(options) {
  if (options.affine) {
    weight = add_parameter("weight", op::ones({channels}, {}));
    bias = add_parameter("bias", op::zeros({channels}, {}));
  }
  if (options.track_running_stats) {
    running_mean = add_buffer("running_mean", op::zeros({channels}, {}));
    running_var = add_buffer("running_var", op::ones({channels}, {}));
    num_batches_tracked = add_buffer("num_batches_tracked", op::zeros({}, DType::kInt64));
  }
}
Tensor BatchNorm::forward(const Tensor& x) const {
  check(x);
  const bool batch_statistics = is_training() || !running_mean.defined();
  if (is_training() && num_batches_tracked.defined()) {
    const NoGrad no_grad;
    op::add_inplace(num_batches_tracked, int64_t{1}, 1);
  }
  return op::batch_norm(x, running_mean, running_var, weight, bias, batch_statistics,
                        options.momentum, options.eps);
}
void BatchNorm1d::check(const Tensor& x) const {
  TD_CHECK_VALUE(x.dim() == 2 || x.dim() == 3, "expected 2D or 3D input (got {}D input)", x.dim());
}
void BatchNorm2d::check(const Tensor& x) const {
  TD_CHECK_VALUE(x.dim() == 4, "expected 4D input (got {}D input)", x.dim());
}

LayerNorm::LayerNorm(DimVector shape, double eps, bool affine)
    : shape_(std::move(shape)), eps_(eps) {
  if (!affine) return;
  weight = add_parameter("weight", op::ones(shape_, {}));
  bias = add_parameter("bias", op::zeros(shape_, {}));
}
Tensor LayerNorm::forward(const Tensor& x) const {
  return op::layer_norm(x, shape_, weight, bias, eps_, true);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine)
    : groups_(groups), eps_(eps) {
  TD_CHECK_VALUE(groups > 0 && channels % groups == 0,
                 "num_channels must be divisible by num_groups");
  if (!affine) return;
  weight = add_parameter("weight", op::ones({channels}, {}));
  bias = add_parameter("bias", op::zeros({channels}, {}));
}
Tensor GroupNorm::forward(const Tensor& x) const {
  return op::group_norm(x, groups_, weight, bias, eps_, true);
}

Embedding::Embedding(int64_t count, int64_t size, OptInt padding) : padding_(-1) {
  Tensor rows = op::randn({count, size}, nullptr, {});
  if (padding) {
    TD_CHECK_VALUE(*padding >= -count && *padding < count,
                   "Padding_idx must be within num_embeddings");
    padding_ = *padding < 0 ? *padding + count : *padding;
    op::zero_(op::select(rows, 0, padding_));
  }
  weight = add_parameter("weight", rows);
}
Tensor Embedding::forward(const Tensor& indices) const {
  return op::embedding(weight, indices, padding_, false, false);
}

Tensor MaxPool2d::forward(const Tensor& x) const {
  return op::max_pool2d(x, pair_of(kernel_), pair_of(stride_), pair_of(padding_), {1, 1}, false);
}
Tensor AvgPool2d::forward(const Tensor& x) const {
  return op::avg_pool2d(x, pair_of(kernel_), pair_of(stride_), pair_of(padding_), false, true, {});
}
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) const {
  return op::adaptive_avg_pool2d(x, pair_of(output_));
}

Dropout::Dropout(double p) : p_(p) {
  TD_CHECK_VALUE(
      p >= 0 && p <= 1,
      "dropout probability has to be between 0 and 1, but got {}\nFix: p is the share of elements "
      "that become 0, such as 0.5",
      p);
}
Tensor Dropout::forward(const Tensor& x) const { return op::dropout(x, p_, is_training()); }
Tensor Flatten::forward(const Tensor& x) const { return op::flatten(x, start_, end_); }

Tensor ReLU::forward(const Tensor& x) const { return op::relu(x); }
Tensor Tanh::forward(const Tensor& x) const { return op::tanh(x); }
Tensor Sigmoid::forward(const Tensor& x) const { return op::sigmoid(x); }
Tensor GELU::forward(const Tensor& x) const { return op::gelu(x, "none"); }
Tensor SiLU::forward(const Tensor& x) const { return op::mul(x, op::sigmoid(x)); }
Tensor LeakyReLU::forward(const Tensor& x) const {
  return op::where(op::gt(x, 0), x, op::mul(x, slope_));
}
Tensor Softmax::forward(const Tensor& x) const { return op::softmax(x, dim_, {}); }
Tensor LogSoftmax::forward(const Tensor& x) const { return op::log_softmax(x, dim_, {}); }

Tensor MSELoss::operator()(const Tensor& input, const Tensor& target) const {
  return op::mse_loss(input, target, {}, {}, reduction_, {});
}
Tensor L1Loss::operator()(const Tensor& input, const Tensor& target) const {
  return op::l1_loss(input, target, {}, {}, reduction_, {});
}
Tensor CrossEntropyLoss::operator()(const Tensor& input, const Tensor& target) const {
  return op::cross_entropy(input, target, {}, {}, -100, {}, reduction_, 0);
}
Tensor NLLLoss::operator()(const Tensor& input, const Tensor& target) const {
  return op::nll_loss(input, target, {}, {}, -100, {}, reduction_);
}
Tensor BCEWithLogitsLoss::operator()(const Tensor& input, const Tensor& target) const {
  return op::binary_cross_entropy_with_logits(input, target, {}, {}, {}, reduction_, {});
}

Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const std::function<Tensor(const Tensor&, const Tensor&)>& distance, double margin, bool swap,
    std::string_view reduction) {
  Tensor far = distance(anchor, negative);
  if (swap) far = op::minimum(far, distance(positive, negative));
  return op::_triplet_loss_of_distances(distance(anchor, positive), far, margin, reduction);
}

}  // namespace taeda::nn
