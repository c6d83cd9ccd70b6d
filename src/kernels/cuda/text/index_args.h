// The arguments of kernels that address a tensor by indices (index.cuh), which launchers fill
// (../index.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/runs_args.h"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Lines of n elements along the indexed dimension. The operands are the addressed tensor, which is
// at the same place for all of a line, the other one, and the indices.
struct IndexArgs {
  Walk<3> lines;
  char* self;
  char* other;
  const char* index;
  uint64_t n;       // of a line
  uint64_t chunk;   // elements of a line that a thread handles, in their order
  uint64_t chunks;  // of a line
  int64_t other_stride, index_stride;
  int64_t size, stride;  // of the addressed dimension
  BoundsMessage message;
  ElementType index_type;  // int64 or int32
  ElementType type;        // of the elements
  Combine combine;
  bool wrap;        // negative indices count from the end
  bool atomic;      // additions by several threads
  bool along;       // neighbouring threads have neighbours of a line
  bool has_number;  // in the other tensor's place: `number`, as it is stored
  alignas(16) unsigned char number[16];
  int64_t skipped;  // an index that counts for nothing; -1 for none
};

// Indices, which must be in [0, size), or `except`; those below 0 have a message of their own.
struct BoundsArgs {
  Walk<1> walk;
  const char* index;
  int64_t size, except;
  BoundsMessage message, below;
  ElementType type;
  bool has_except;
};

}  // namespace taeda::device
