// What the launchers of normalisations share (text/norm.cuh).
#pragma once

#include <optional>
#include <string>

#include "kernels/cuda/text/norm_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {

// A View's elements in row-major order: its own, or a copy.
class Dense {
 public:
  explicit Dense(const View& v);
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  const View& view() const { return view_; }
  operator const View&() const { return view_; }

 private:
  View view_;
  DimVector strides_;
  std::optional<Workspace> copy_;
};

device::Array array(const View& v);
std::string norm_kernel_name(std::string_view kernel, const View& x);

// What a launch touches; Views that are left out count for nothing.
using Accesses = SmallVector<Access, 12>;
Accesses accesses(Span<const View> written, Span<const View> read);

// Sums of gy and of gy xhat. The walks' operands: x, gy, the index of the statistics.
struct SumsPlan {
  WalkPlan<3> kept, reduced;
};
void norm_sums(SumsPlan& plan, device::NormSumsArgs& args, const View& x, Accesses touched);

}  // namespace taeda::cuda
