// What the launchers of normalisations share (text/norm.cuh).
#pragma once

#include <string>

#include "kernels/cuda/array.h"
#include "kernels/cuda/text/norm_args.h"

namespace taeda::cuda {

std::string norm_kernel_name(std::string_view kernel, const View& x);

// Sums of gy and of gy xhat. The walks' operands: x, gy, the index of the statistics.
struct SumsPlan {
  WalkPlan<3> kept, reduced;
};
void norm_sums(SumsPlan& plan, device::NormSumsArgs& args, const View& x, Accesses touched);

// Rows of x, and which parameter an element has.
struct RowShape {
  int64_t rows, n, groups, per_group, positions;
};
RowShape layer_shape(const View& x, IntSpan normalized);
RowShape group_shape(const View& x, int64_t groups);
device::NormArgs norm_arguments(const RowShape& shape, const View& x);
void fill_zero(const View& v);  // where it is present

// batch_norm's pass over the elements: out = a gy + b (x - mean) + c by channel, of the gradient
// where there are `sums` and gy, else of the result.
void apply_by_channel(const View& out, const View& x, const View& gy, const View& weight,
                      const View& bias, const View& mean, const View& var, const Workspace* sums,
                      bool training, double eps);

}  // namespace taeda::cuda
