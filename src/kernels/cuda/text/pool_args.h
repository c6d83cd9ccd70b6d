// The arguments of pooling's kernels (pool.cuh), which launchers fill (../pool.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/place_args.h"

namespace taeda::device {

inline constexpr int64_t kMaxWindow = 1 << 29;  // positions that windows reach, and of padding

// One dimension's windows: window o covers o * stride - padding + k * dilation, k in [0, kernel).
// Adaptive ones, of kernel 0, cover [o in / out, ceil((o + 1) in / out)).
struct Windows {
  int32_t in, out, kernel, stride, padding, dilation;
};

// Row-major planes of three dimensions; a thread has an element of the results, or of the inputs.
struct PoolArgs {
  Windows dims[3];
  Planes each;      // of results or inputs: one a thread
  int64_t in, out;  // elements of a plane
  char* result;
  const char* x;        // the inputs, or gradients of the results
  char* argmax;         // taps: bytes or 32-bit integers; null: not wanted
  int64_t* indices;     // in a plane; null: not wanted
  const char* samples;  // random numbers of fractional windows: `spatial` of a plane
  int32_t spatial;
  int64_t divisor;        // of averages; 0: the elements of the window
  int64_t lowest;         // what an empty window of integers has
  BoundsMessage message;  // for indices that are not in a plane
  ElementType type;       // of integers
  uint8_t itemsize;
  bool bytes;  // taps are
  bool include_padding;
};

}  // namespace taeda::device
