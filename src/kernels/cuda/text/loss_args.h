// The arguments of losses' kernels (loss.cuh), which launchers fill (../cross_entropy.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/array_args.h"

namespace taeda::device {

// Rows x [n, classes] with a class each. The gradient's kernel writes `out`, else that is each
// row's loss, where it is wanted.
struct CrossEntropyArgs {
  Array x, weight, out, lse, gy, total;
  const int64_t* target;
  double* sums;  // [2, n]: losses, and the weights of their classes
  uint64_t n;
  int64_t classes, ignored;
  double smoothing;
  BoundsMessage message;
  uint32_t threads;  // of the group that has a row
  bool is_mean;      // gy is divided by the total
  bool has_each;     // gy has an element for each row
};

struct BinaryCrossEntropyArgs {
  Array out, x, target;
  uint64_t n;
  BoundsMessage message, target_message;  // for what is no probability
};

}  // namespace taeda::device
