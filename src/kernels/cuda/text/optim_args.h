// The arguments of optimizers' kernels (optim.cuh), which launchers fill (../optim.cc).
#pragma once
#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

inline constexpr int kOptimTensors = 52;       // of one launch
inline constexpr uint32_t kOptimChunk = 4096;  // elements that a block works on at a time

// A parameter, its gradient and up to three arrays of state; those that are not used are null.
struct OptimTensor {
  char* param;
  const char* grad;
  char* states[3];
  const char* step;   // how many steps it has made, this one included; or null
  double step_value;  // where the host knows it
  uint64_t n;
  uint32_t first;  // number of its first chunk
  bool aligned;    // every address is a multiple of four elements
};

struct SgdRule {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first_step;
};
struct AdamRule {
  double lr, beta1, beta2, log_beta1, log_beta2, eps, weight_decay;
  bool decoupled;
};
struct RmspropRule {
  double lr, alpha, eps, weight_decay, momentum;
};

template <class Rule>
struct OptimArgs {
  OptimTensor tensors[kOptimTensors];
  Rule rule;
  double factor;           // of gradients: 1, or -1 to go up
  const char* lr;          // what stands for rule.lr; or null
  const char* grad_scale;  // what they are divided by; or null
  const char* found_inf;   // nonzero: nothing is done; or null
  uint32_t count, chunks;
  ElementType scale_type, found_type, step_type, lr_type;
};

// What multiplies gradients: factor alone; where one is not finite, *not_finite becomes 1.
struct UnscaleRule {
  float* not_finite;
};

// One-element tensors that grow by 1, but for a nonzero `found_inf`.
struct AddOneArgs {
  char* tensors[256];
  const char* found_inf;
  uint32_t count;
  ElementType type, found_type;
};

}  // namespace taeda::device
