#include "nn/init.h"

#include <cmath>

#include "op/empty.h"
#include "op/mul.h"
#include "op/sum.h"
#include "op/uniform_.h"
#include "taeda/autograd.h"
#include "taeda/nn.h"

namespace taeda::nn {

Fans fans_of(const Tensor& weight) {
  TD_CHECK_VALUE(weight.dim() >= 2,
                 "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < weight.dim(); d++) field *= weight.size(d);
  return {weight.size(1) * field, weight.size(0) * field};
}

namespace init {

void kaiming_uniform_(const Tensor& weight, double a) {
  const NoGrad no_grad;
  // In the order of PyTorch's operations, so that the bound has the same bits.
  const double deviation =
      std::sqrt(2.0 / (1 + a * a)) / std::sqrt(static_cast<double>(fans_of(weight).in));
  const double bound = std::sqrt(3.0) * deviation;
  op::uniform_(weight, -bound, bound, nullptr);
}

void xavier_uniform_(const Tensor& weight, double gain) {
  const NoGrad no_grad;
  const Fans fans = fans_of(weight);
  const double bound =
      std::sqrt(3.0) * gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
  op::uniform_(weight, -bound, bound, nullptr);
}

}  // namespace init

Tensor initial_weight(IntSpan sizes) {
  Tensor weight = op::empty(sizes, {}, {});
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  return weight;
}

Tensor initial_bias(const Tensor& weight, int64_t size) {
  const double bound = 1 / std::sqrt(static_cast<double>(fans_of(weight).in));
  Tensor bias = op::empty({size}, {}, {});
  op::uniform_(bias, -bound, bound, nullptr);
  return bias;
}

double clip_grad_norm_(const TensorList& parameters, double max_norm) {
  const NoGrad no_grad;
  double square = 0;
  for (const Tensor& p : parameters) {
    const Tensor g = p.grad();
    if (g.defined()) square += op::sum(op::mul(g, g), {}, false, {}).item<double>();
  }
  const double norm = std::sqrt(square);
  const double scale = max_norm / (norm + 1e-6);
  if (scale >= 1) return norm;
  for (const Tensor& p : parameters) {
    const Tensor g = p.grad();
    if (g.defined()) op::mul_inplace(g, scale);
  }
  return norm;
}

}  // namespace taeda::nn
