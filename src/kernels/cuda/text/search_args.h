// The arguments of searches (search.cuh), which launchers fill (../search.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Rows of n values and of m sorted elements; all dense and of one type.
struct SearchArgs {
  const char* sorted;
  const char* values;  // null: they are 0, 1, 2, ...
  char* out;           // int64 places, or whether a value was found
  uint64_t count, n, m;
  int64_t row;  // bytes from a row of sorted elements to the next, 0 where one is for all
  int64_t itemsize;
  ElementType type;
  bool right;   // behind equal elements
  bool found;   // asked is whether there is an equal one
  bool invert;  // or whether there is none
};

// The bins of n elements, between m + 1 edges; all dense.
struct BinsArgs {
  const char *x, *edges;
  int64_t* out;
  uint64_t n;
  int64_t m;
};

inline constexpr int64_t kSharedBins = 2048;  // 8 KiB, beside which a device runs full of threads

// Counts of x in `bins` equal bins over [low, high].
struct HistogramArgs {
  Walk<1> walk;
  const char* x;
  int64_t* counts;
  int64_t bins;
  double low, high;
  ElementType type;
  bool shared;  // in a block's memory first: at most kSharedBins, 2^32 - 1 elements
};

}  // namespace taeda::device
