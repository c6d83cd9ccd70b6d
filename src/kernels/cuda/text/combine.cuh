// What is made of two values for one element.
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/runs_args.h"

namespace taeda::device {

// A NaN wins.
template <class T>
TD_FN T combined(Combine how, T a, T b) {
  if (how == Combine::kSum) return a + b;
  if (how == Combine::kProd) return a * b;
  if constexpr (kIsComplex<T>)
    return b;
  else
    return how == Combine::kMin ? (b < a || b != b ? b : a) : (b > a || b != b ? b : a);
}

}  // namespace taeda::device
