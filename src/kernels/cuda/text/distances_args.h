// The argument of the kernels of cdist and pdist (distances.cu), which the launcher fills
// (../distances.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"

namespace taeda::device {

// From each of `rows` rows of x to each of `others` rows of y, all of n elements, for every batch;
// of `pairs`, where x is y, from row i to row j > i. out has `count` elements.
struct DistancesArgs {
  const void *x, *y;
  Array out;
  uint64_t rows, others, n, count;
  double p;
  bool pairs;
};

}  // namespace taeda::device
