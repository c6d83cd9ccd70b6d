// Walks over dimensions (text/walk_args.h), and what launches say of the memory that they touch.
#pragma once

#include <cstdint>

#include "device/api.h"
#include "kernels/cuda/text/walk_args.h"
#include "kernels/view.h"

namespace taeda::cuda {

// Dimensions of N operands, from the outermost to the innermost.
template <int N>
class WalkPlan {
 public:
  // Strides in bytes. RuntimeError for more dimensions than memory is held for.
  void add(int64_t size, const int64_t (&strides)[N]);
  // Orders them by the strides of operand k: sequences of indices then follow its memory.
  void sort_by(int k);
  // RuntimeError where more dimensions than kernels know do not merge, or all but the outermost
  // have more elements than 32 bits count.
  device::Walk<N> walk();
  // The stride of operand k in the innermost dimension; 0 for none.
  int64_t innermost(int k) const { return ndim_ ? dims_[ndim_ - 1].strides[k] : 0; }

 private:
  struct Dim {
    int64_t size, strides[N];
  };
  void merge();

  static constexpr int kMaxDims = 64;
  Dim dims_[kMaxDims];
  int ndim_ = 0;
  uint64_t count_ = 1;
};

// A complex View's real parts; others as they are. `strides` holds those of the result.
View real_part(const View& view, DimVector& strides);

// All bytes between a View's first and last element.
Access access(const View& view, bool writes);

}  // namespace taeda::cuda
