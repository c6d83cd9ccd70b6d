// What is made of two values for one element.
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/runs_args.h"

namespace taeda::device {

// A NaN wins; integers wrap around.
template <class T>
TD_FN T combined(Combine how, T a, T b) {
  using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  if (how == Combine::kSum)
    return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
  if (how == Combine::kProd)
    return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
  if constexpr (kIsComplex<T>)
    return b;
  else
    return how == Combine::kMin ? (b < a || b != b ? b : a) : (b > a || b != b ? b : a);
}

// Into an element that other threads add to, too.
TD_FN void add_atomically(float* p, float x) { atomicAdd(p, x); }
TD_FN void add_atomically(double* p, double x) { atomicAdd(p, x); }
TD_FN void add_atomically(std::complex<float>* p, std::complex<float> x) {
  atomicAdd(reinterpret_cast<float*>(p), x.real());
  atomicAdd(reinterpret_cast<float*>(p) + 1, x.imag());
}
TD_FN void add_atomically(std::complex<double>* p, std::complex<double> x) {
  atomicAdd(reinterpret_cast<double*>(p), x.real());
  atomicAdd(reinterpret_cast<double*>(p) + 1, x.imag());
}
TD_FN void add_atomically(int64_t* p, int64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x));
}

}  // namespace taeda::device
