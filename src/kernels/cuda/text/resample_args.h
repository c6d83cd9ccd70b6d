// The arguments of resizing's kernels (resample.cuh), which launchers fill (../resample.cc).
#pragma once
#include "kernels/cuda/text/place_args.h"
#include "kernels/resample_taps.h"

namespace taeda::device {

// Row-major planes; a thread has an element of the result.
template <class A>
struct ResampleArgs {
  ResampleAxis<A> axes[3];
  Planes each;
  char* result;
  const char* x;
  ElementType type;
  uint8_t itemsize;
};

// One dimension of bytes [outer, in, inner], weighed in fixed point with `bits` after the point.
struct ResampleBytesArgs {
  ResampleAxis<double> axis;
  Planes each;  // [outer, 1, out, inner]
  uint8_t* result;
  const uint8_t* x;
  int32_t bits;
};

}  // namespace taeda::device
