// The arguments of reductions (reduce.cuh), which launchers fill (../reduce.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// `kept` has the results' indices, in x and in up to two results; `reduced` what each is made of.
struct ReduceArgs {
  Walk<3> kept;
  Walk<1> reduced;
  const char* x;
  char* out[2];    // the second may be null
  char* partial;   // states [splits, results]; null: a state is all of its result
  uint64_t split;  // elements of one state, and how many states a result has
  uint32_t splits;
  uint32_t threads;  // of a group
  ElementType x_type, out_types[2];
  double parameter;
};

}  // namespace taeda::device
