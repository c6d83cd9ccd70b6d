// The arguments of advanced indexing (indexing.cuh, index_runs.cuh), which launchers fill
// (../indexing.cc, ../index_runs.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/runs_args.h"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

inline constexpr int kIndices = 4;  // tensors of one launch

// The operands of the walk are the other tensor, self without its indexed dimensions, and the index
// tensors.
struct IndexingArgs {
  Walk<2 + kIndices> walk;
  Walk<1> flat;  // is_flat: from an index to self's element, in row-major order
  char* self;
  char* other;
  const char* index[kIndices];
  int64_t size[kIndices], stride[kIndices];  // of the indexed dimensions, in bytes
  int64_t dim[kIndices];                     // as a message has them
  int64_t* order;                            // of offsets: gets their numbers
  int64_t skipped;                           // an index that counts for nothing; -1 for none
  BoundsMessage message;
  ElementType types[kIndices];  // int64 or int32
  uint8_t count;
  bool wrap;  // negative indices count from the end
  bool is_flat;
  bool are_offsets;  // the one index tensor has offsets in bytes; those below 0 are skipped
  bool added;        // offsets are added to those that are there
};

// Slices of self that indices name, sorted: keys are the slices' offsets, columns their elements.
struct IndexRunsArgs {
  Runs runs;
  Walk<2> slice;      // self and the values
  Walk<1> positions;  // the values of an index
  char* self;
  const char* values;                    // null: all are `number`
  alignas(16) unsigned char number[16];  // as it is stored
  int64_t* last;                         // offsets, by number; -1 for all but the last of a run
  ElementType type;
};

}  // namespace taeda::device
