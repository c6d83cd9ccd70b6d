// frexp: x = mantissa 2^exponent, |mantissa| in [1/2, 1); 0, infinities and NaN are their own
// mantissa with exponent 0. A thread has an element, which is read once; both results are written
// once.
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/frexp_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

TD_FN float mantissa_of(float x, int* exponent) { return ::frexpf(x, exponent); }
TD_FN double mantissa_of(double x, int* exponent) { return ::frexp(x, exponent); }

template <class T>
TD_FN void frexp_kernel(const FrexpArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const T x = get<T>(a.x, i);
    int exponent = 0;
    const T mantissa = std::isfinite(x) ? mantissa_of(x, &exponent) : x;
    set(a.mantissa, i, mantissa);
    a.exponent[i] = exponent;
  }
}

TD_GLOBAL(frexp_f32_any, FrexpArgs, frexp_kernel<float>)
TD_GLOBAL(frexp_f64_any, FrexpArgs, frexp_kernel<double>)

}  // namespace taeda::device
