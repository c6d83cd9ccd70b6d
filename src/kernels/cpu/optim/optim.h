// Fused optimizer steps: one pass over parameters, gradients and state, for whole lists of tensors
// at once.
//
// Every list entry i belongs to parameter i; all of its tensors have the same dtype (floating),
// sizes and dense strides, which the caller has checked. Arithmetic is in the parameter's dtype,
// float for the 16-bit types. Work is cut into chunks across tensors, so a list of many small
// tensors is as fast as one large one.
#pragma once

#include "kernels/launch.h"

namespace taeda::cpu {

using Views = Span<const View>;

// Of all options: on a device, device_scale is what gradients are divided by besides, device_lr
// stands for lr, and nothing is done where found_inf is not 0; each a number there, or not present.

// g = grad (-grad when maximizing) * grad_scale, + weight_decay * p
// b = momentum * b + (1 - dampening) * g     (b = g in the first step)
// p -= lr * (nesterov ? g + momentum * b : b)
struct SgdOptions {
  double lr, momentum = 0, dampening = 0, weight_decay = 0, grad_scale = 1;
  bool nesterov = false, maximize = false, first_step = false;
  View device_scale{}, device_lr{}, found_inf{};
};
// `buffers` is empty without momentum.
void fused_sgd(Views params, Views grads, Views buffers, const SgdOptions& options);

// Kingma & Ba 2015; decoupled weight decay: Loshchilov & Hutter 2019; amsgrad: Reddi et al. 2018.
// m += (g - m)(1 - beta1);  v = beta2 v + (1 - beta2) g^2;  p -= lr / (1 - beta1^t) * m / (sqrt(v /
// (1 - beta2^t)) + eps)
struct AdamOptions {
  double lr, beta1, beta2, eps, weight_decay = 0, grad_scale = 1;
  bool decoupled = false;  // AdamW: p -= lr * weight_decay * p instead of a term in the gradient
  bool amsgrad = false, maximize = false;
  View device_scale{}, device_lr{}, found_inf{};
};
// `max_squares` is empty without amsgrad; steps[i] is t of parameter i, this step included: a
// double of the host's, or a number of any floating dtype on the parameters' device.
void fused_adam(Views params, Views grads, Views averages, Views squares, Views max_squares,
                Views steps, const AdamOptions& options);

// Tieleman & Hinton 2012, Graves 2013 (centered). v = alpha v + (1 - alpha) g^2;  d = sqrt(v -
// centered mean^2) + eps; b = momentum b + g / d;  p -= lr b
struct RmspropOptions {
  double lr, alpha, eps, weight_decay = 0, momentum = 0, grad_scale = 1;
  bool centered = false, maximize = false;
  View device_scale{}, device_lr{}, found_inf{};
};
// `means` is empty unless centered, `buffers` without momentum.
void fused_rmsprop(Views params, Views grads, Views squares, Views means, Views buffers,
                   const RmspropOptions& options);

// Multiplies arrays of floating dtypes by a number of theirs, and writes 1 to found_inf, a float of
// 0 or 1, where an element was not finite.
void unscale(Views grads, const View& found_inf, const View& inverse_scale);

// Adds 1 to one-element tensors of floating dtypes, unless found_inf is given and not 0.
void add_one(Views counters, const View& found_inf);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(fused_sgd);
TD_KERNEL(fused_adam);
TD_KERNEL(fused_rmsprop);
TD_KERNEL(unscale);
TD_KERNEL(add_one);
}  // namespace taeda
