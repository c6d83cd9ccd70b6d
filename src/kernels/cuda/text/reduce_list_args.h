// The arguments of reductions of several arrays (reduce_list.cuh), which ../reduce_list.cc fills.
#pragma once
#include "kernels/cuda/text/element_type.h"

namespace taeda::device {

inline constexpr int kReducedArrays = 120;       // of one launch
inline constexpr uint32_t kReducedChunk = 8192;  // elements that a block takes in at a time

// n elements, of which `out` is made.
struct ReducedArray {
  const char* x;
  char* out;
  uint64_t n;
  uint32_t first;  // number of its first chunk, of which it has one at least
};

struct ReduceListArgs {
  ReducedArray arrays[kReducedArrays];
  char* partial;  // states of chunks; null: each array is one
  double parameter;
  uint32_t count, chunks, itemsize;
  ElementType x_type, out_type;
};

}  // namespace taeda::device
