// Sums, products and counts by the kernels of reductions (text/reducers.cuh).
#include "kernels/cuda/reduce.h"
#include "kernels/optional.h"
#include "taeda/scalar.h"

namespace taeda::cuda {
namespace {

IntSpan dims_or_all(const OptInts& dims) { return dims ? *dims : IntSpan(); }

// What elements are added in.
DType sum_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }
DType number_type(DType t) {
  return is_complex(t) ? DType::kComplex128 : is_inexact(t) ? DType::kFloat64 : DType::kInt64;
}

int64_t reduced_count(const View& x, const View& out) {
  return out.numel ? x.numel / out.numel : 0;
}

void nonzero_by(const View& out, const View& x, IntSpan dims, double parameter) {
  reduce({"nonzero", number_type(x.dtype), parameter}, &out, nullptr, x, dims);
}

}  // namespace

void sum(const View& out, const View& x, OptInts dims, bool, OptDType) {
  reduce({"sum", sum_type(out.dtype), 1}, &out, nullptr, x, dims_or_all(dims));
}
void mean(const View& out, const View& x, OptInts dims, bool, OptDType) {
  const auto count = static_cast<double>(reduced_count(x, out));
  reduce({"sum", sum_type(out.dtype), count}, &out, nullptr, x, dims_or_all(dims));
}
void nansum(const View& out, const View& x, OptInts dims, bool, OptDType) {
  reduce({is_floating(out.dtype) ? "nansum" : "sum", sum_type(out.dtype), 1}, &out, nullptr, x,
         dims_or_all(dims));
}
void prod(const View& out, const View& x, OptInts dims, bool, OptDType) {
  reduce({"prod", sum_type(out.dtype)}, &out, nullptr, x, dims_or_all(dims));
}

void count_nonzero(const View& out, const View& x, OptInts dims) {
  nonzero_by(out, x, dims_or_all(dims), 0);
}
void any(const View& out, const View& x, OptInts dims, bool) {
  nonzero_by(out, x, dims_or_all(dims), 1);
}
void all(const View& out, const View& x, OptInts dims, bool) {
  nonzero_by(out, x, dims_or_all(dims), 2);
}

}  // namespace taeda::cuda
