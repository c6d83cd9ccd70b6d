// batch_norm on tensors: statistics, and the choice of memory layout.
#include "core/layout.h"
#include "kernels/copy.h"
#include "kernels/cpu/norm/batch_norm.h"
#include "op/zero_.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"
#include "ops/reduce_rules.h"

namespace taeda::impl {
namespace {

// Dense and row-major, or channels last where `like` is: x itself or a copy.
Tensor in_layout_of(const Tensor& x, const Tensor& like) {
  const bool last = is_channels_last_layout(like.sizes(), like.strides()) &&
                    !is_contiguous_layout(like.sizes(), like.strides());
  const DimVector strides = last ? channels_last_strides(x.sizes()) : contiguous_strides(x.sizes());
  if (last ? is_channels_last_layout(x.sizes(), x.strides())
           : is_contiguous_layout(x.sizes(), x.strides()))
    return x;
  Tensor dense = empty_strided_tensor(x.sizes(), strides, x.dtype(), x.device());
  kernels::copy(view_of(dense), view_of(x));
  return dense;
}
Tensor empty_in_layout_of(const Tensor& dense) {
  return empty_strided_tensor(dense.sizes(), dense.strides(), dense.dtype(), dense.device());
}
Tensor empty_channels(const Tensor& input, DType dtype) {
  return empty_tensor({input.sizes()[1]}, dtype, input.device());
}
DType weight_dtype(const Tensor& input, const Tensor& weight) {
  return weight.defined() ? weight.dtype() : input.dtype();
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _batch_norm_train(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, double eps) {
  const DType dtype = rules::statistics_dtype(input.dtype());
  Tensor mean = empty_channels(input, dtype), var = empty_channels(input, dtype);
  const Tensor x = in_layout_of(input, input);
  Tensor out = empty_in_layout_of(x);
  kernels::batch_norm_train(view_of(out), view_of(mean), view_of(var), view_of(x), view_of(weight),
                            view_of(bias), eps);
  return {out, mean, var};
}

Tensor _batch_norm_eval(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& var, double eps) {
  const Tensor x = in_layout_of(input, input);
  Tensor out = empty_in_layout_of(x);
  kernels::batch_norm(view_of(out), view_of(x), view_of(weight), view_of(bias), view_of(mean),
                      view_of(var), eps);
  return out;
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& gy, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& var, bool training,
                                                       double eps) {
  Tensor gw = empty_channels(input, weight_dtype(input, weight)),
         gb = empty_channels(input, weight_dtype(input, weight));
  const Tensor x = in_layout_of(input, input), g = in_layout_of(gy, x);
  Tensor gx = empty_in_layout_of(x);
  if (input.numel() == 0) {
    op::zero_(gw);
    op::zero_(gb);
  }
  kernels::batch_norm_backward(view_of(gx), view_of(gw), view_of(gb), view_of(g), view_of(x),
                               view_of(weight), view_of(mean), view_of(var), training, eps);
  return {gx, gw, gb};
}

}  // namespace taeda::impl
