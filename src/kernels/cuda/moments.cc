// Moments, norms and logsumexp by the kernels of reductions (text/reducers.cuh).
#include <cmath>

#include "kernels/cuda/reduce.h"
#include "kernels/optional.h"
#include "taeda/scalar.h"

namespace taeda::cuda {
namespace {

IntSpan dims_or_all(const OptInts& dims) { return dims ? *dims : IntSpan(); }

void moments(std::string_view name, const View& out, const View& x, const OptInts& dims,
             const OptScalar& correction) {
  const double lessened = correction ? correction->to_double() : 1;
  reduce({name, dtype_info(x.dtype).compute, lessened}, &out, nullptr, x, dims_or_all(dims));
}

}  // namespace

void var(const View& out, const View& x, OptInts dims, const OptScalar& correction, bool) {
  moments("var", out, x, dims, correction);
}
void stddev(const View& out, const View& x, OptInts dims, const OptScalar& correction, bool) {
  moments("std", out, x, dims, correction);
}

// Elements are converted to the type that out is the real part of.
void vector_norm(const View& out, const View& x, double order, OptInts dims, bool, OptDType) {
  const bool wide = out.dtype == DType::kFloat64;
  const DType complex = wide ? DType::kComplex128 : DType::kComplex64;
  const DType real = wide ? DType::kFloat64 : DType::kFloat32;
  const DType compute = is_complex(x.dtype) ? complex : real;
  const double sign = order > 0 ? 1 : -1;
  if (std::isinf(order))
    reduce({"maxnorm", compute, sign}, &out, nullptr, x, dims_or_all(dims));
  else
    reduce({"norm", compute, order}, &out, nullptr, x, dims_or_all(dims));
}

void logsumexp(const View& out, const View& x, int64_t dim, bool) {
  reduce({"logsumexp", dtype_info(x.dtype).compute}, &out, nullptr, x, {&dim, 1});
}

}  // namespace taeda::cuda
