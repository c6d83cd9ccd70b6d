// Loops in parts that a kernel can index: with 32-bit numbers and few dimensions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/pointwise/loop_plan.h"
#include "kernels/cuda/text/pointwise_args.h"

namespace taeda::cuda {

struct PartLimits {
  int ndim = device::kMaxDims;
  int64_t elements = device::kMaxElements;
  int64_t reach = INT32_MAX;  // bytes between element 0 and any other
};

// The bytes of an operand's elements, from its element 0: [below, above).
struct Extent {
  int64_t below = 0, above = 0;
};
template <int N>
Extent extent(const cpu::LoopPlan<N>& plan, int operand, int64_t itemsize) {
  Extent found{0, itemsize};
  for (int d = 0; d < plan.ndim; d++) {
    const int64_t span = (plan.sizes[d] - 1) * plan.strides[d][operand];
    (span < 0 ? found.below : found.above) += span;
  }
  return found;
}

template <int N>
bool is_within(const cpu::LoopPlan<N>& plan, const PartLimits& limits) {
  if (plan.ndim > limits.ndim || plan.numel > limits.elements) return false;
  for (int k = 0; k < plan.operands; k++) {
    const Extent e = extent(plan, k, 0);
    if (e.below < -limits.reach || e.above > limits.reach) return false;
  }
  return true;
}

// Calls launch(plan) for parts of the plan that together are all of it: index by index of the
// outermost dimension while there are too many dimensions, else by halves of it.
template <int N, class Launch>
void for_each_part(const cpu::LoopPlan<N>& plan, const Launch& launch,
                   const PartLimits& limits = {}) {
  if (is_within(plan, limits)) return launch(plan);
  const int outer = plan.ndim - 1;
  const int64_t size = plan.sizes[outer];
  const int64_t step = plan.ndim > limits.ndim ? 1 : (size + 1) / 2;
  for (int64_t begin = 0; begin < size; begin += step) {
    cpu::LoopPlan<N> part = plan;
    part.sizes[outer] = std::min(step, size - begin);
    part.numel = plan.numel / size * part.sizes[outer];
    for (int k = 0; k < plan.operands; k++) part.data[k] += begin * plan.strides[outer][k];
    if (part.sizes[outer] == 1 && outer > 0) part.ndim = outer;
    for_each_part(part, launch, limits);
  }
}

}  // namespace taeda::cuda
