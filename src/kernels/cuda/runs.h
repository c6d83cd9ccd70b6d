// Offsets that index tensors stand for, sorted, so that those of one element are combined in their
// order (text/runs.cuh).
#pragma once

#include <optional>

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/sorter.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {

class SortedRuns {
 public:
  // Each offset is that of `columns` elements, which are combined in type `compute`.
  SortedRuns(const Indices& what, int64_t columns, DType compute, Combine combine);
  // What launches touch for it: keys, their order and partial results.
  SmallVector<Access, 12> accesses(bool writes) const;
  // Runs a kernel on `args`, which has `runs`, in a thread for each value.
  void combine(std::string_view kernel, void* args, Span<const Access> touched) const;
  // Then what pieces of runs came to, if there are such: into self at the offsets, where columns
  // lie as the first operand of `slice`.
  void combine_partials(const View& self, const device::Walk<2>& slice) const;

  device::Runs runs{};

 private:
  Device device_;
  DType compute_;
  Sorter sorter_;
  std::optional<Workspace> partials_;
};

}  // namespace taeda::cuda
