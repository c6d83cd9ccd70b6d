// The arguments of bags of rows (bags.cuh), which launchers fill (../bags.cc).
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/element_type.h"
#include "kernels/cuda/text/runs_args.h"

namespace taeda::device {

// Bags of more indices are summed in pieces of kBagPiece indices, which threads share. A guess: on
// no card has it been measured from which length on that is faster.
inline constexpr int64_t kLongBag = 1024, kBagPiece = 256;

// Dense tensors: `count` indices in `bags` bags, bag b having those from starts[b] to starts[b +
// 1].
struct BagsArgs {
  Runs runs;  // backward: the offsets of rows of `out`, sorted
  char* out;
  const char* rows;    // the weight; backward the gradient, a row for each bag
  const char* other;   // dots: a row for each bag
  const char* scales;  // of the indices, or null
  char* partials;      // sums of pieces of long bags: two for each kBagPiece indices, by columns
  const int64_t* indices;
  const int64_t* starts;
  int64_t count, bags, width, weights, itemsize;
  BoundsMessage message, starts_message;
  ElementType type;
};

}  // namespace taeda::device
