// The arguments of compaction (compact.cuh), which launchers fill (../compact.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

inline constexpr int kMaxNonzeroDims = 64;
inline constexpr uint32_t kTile = 1024;  // elements that a block takes at a time

// The operands are the flags and the tensor that is read or written where they are true.
struct CompactArgs {
  Walk<2> walk;
  Walk<1> source;  // scatter: the elements that are put there
  const char* flags;
  char* x;
  char* out;        // nonzero, select: the k-th element; scatter: the source
  int64_t* starts;  // [chunks + 1]: how many are true in each chunk, then before it; at the end all
  uint64_t chunk;   // elements that a block goes through, whole tiles
  uint64_t chunks;
  int64_t sizes[kMaxNonzeroDims];  // nonzero: the dimensions, and strides of the result in bytes
  int64_t stride, dim_stride;
  int32_t ndim;
  uint64_t available;  // scatter: elements of the source
  BoundsMessage message;
  ElementType type;  // of the flags
};

}  // namespace taeda::device
