// batch_norm on Views: x, out, gy and gx are [samples, channels, ...], dense and of one layout
// (row-major or channels last); weight, bias, mean and var have one element a channel. Empty
// tensors are left alone.
#pragma once

#include "kernels/launch.h"

namespace taeda::cpu {

// out = (x - mean) / sqrt(var + eps) * weight + bias
void batch_norm(const View& out, const View& x, const View& weight, const View& bias,
                const View& mean, const View& var, double eps);
// The same by x's own mean and variance, which it gives.
void batch_norm_train(const View& out, const View& mean, const View& var, const View& x,
                      const View& weight, const View& bias, double eps);
// `training`: mean and var are x's own and depend on it. gx may be absent.
void batch_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& weight, const View& mean, const View& var,
                         bool training, double eps);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(batch_norm);
TD_KERNEL(batch_norm_train);
TD_KERNEL(batch_norm_backward);
}  // namespace taeda
