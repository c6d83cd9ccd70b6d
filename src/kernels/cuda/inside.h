// Launches that show a part of a tensor, and a number around it (text/inside.cuh).
#pragma once

#include "kernels/cuda/text/inside_args.h"
#include "kernels/cuda/walk.h"
#include "taeda/scalar.h"

namespace taeda::cuda {

// out = x where each counter is in [low, high), else `fill`. First the bounds of counters, then
// each dimension of the result in turn, then run().
class Inside {
 public:
  Inside(const View& out, const View& x, const Scalar& fill);
  void bound(int counter, int64_t low, int64_t high) {
    args_.low[counter] = low;
    args_.high[counter] = high;
  }
  // The next dimension, along which a counter grows by `step`.
  void add(int counter = 0, int64_t step = 0);
  // The result's first element stands for the one of x that is `shift` elements behind x's first.
  void run(int64_t shift = 0);

 private:
  const View &out_, &x_;
  size_t dim_ = 0;
  device::InsideArgs args_{};
  WalkPlan<2 + device::kBounds> plan_;
};

}  // namespace taeda::cuda
