// The arguments of normalisations' kernels (norm.cuh), which launchers fill (../norm.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// layer_norm and group_norm: rows of n elements; element i of row r has parameter
// r % groups * per_group + i / positions.
struct NormArgs {
  Array out, x, gy, mean, rstd, weight, bias;
  uint64_t rows;
  uint32_t n, groups, per_group;
  Divisor positions;
  uint32_t threads;  // of the group that has a row
  double eps;
};

// Sums over gy and over gy (x - mean) rstd, by parameter. The walks' operands: x, gy, the index of
// the statistics.
struct NormSumsArgs {
  Walk<3> kept, reduced;
  Array x, gy, mean, scale, gw, gb;
  char* partial;  // [splits, parameters] states; null for one
  double* sums;   // [2, parameters]; null: not wanted
  uint64_t split;
  uint32_t splits, threads;
  bool is_variance;  // `scale` is not rstd
  double eps;
};

// By channel, what batch_norm multiplies and adds: out = a gy + b (x - mean) + c.
struct ChannelArgs {
  Array mean, var, weight, bias;
  const double* sums;  // of the gradient: null for the forward pass
  char* coefficients;  // [4, channels] in the compute type: a, b, mean, c
  uint32_t channels;
  bool training;
  double eps, count;  // elements of a channel
};
// The walk's operands: out, x, gy, the channel.
struct ApplyArgs {
  Walk<4> walk;
  Array out, x, gy;
  const char* coefficients;
  uint32_t channels;
};

}  // namespace taeda::device
