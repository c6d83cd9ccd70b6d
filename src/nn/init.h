// Initial values of the layers' parameters, as torch.nn draws them.
#pragma once

#include "taeda/tensor.h"

namespace taeda::nn {

// Elements that one output sums over, and outputs that one input reaches.
struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& weight);

// Uniform in +- 1 / sqrt(fan_in), written as the Kaiming bound for a slope of sqrt(5).
Tensor initial_weight(IntSpan sizes);
// Uniform in +- 1 / sqrt(fan_in of weight).
Tensor initial_bias(const Tensor& weight, int64_t size);

}  // namespace taeda::nn
