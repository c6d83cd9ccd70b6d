// The kernels of the operator table that are reductions, by their parameters.
#include <cmath>

#include "kernels/cuda/reduce.h"
#include "kernels/optional.h"
#include "taeda/scalar.h"

namespace taeda::cuda {
namespace {

IntSpan dims_or_all(const OptInts& dims) { return dims ? *dims : IntSpan(); }

// What elements are added in.
DType sum_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }
// What they are compared or counted in: all integers as the largest.
DType order_type(DType t) { return sum_type(t); }
DType number_type(DType t) {
  return is_complex(t) ? DType::kComplex128 : is_inexact(t) ? DType::kFloat64 : DType::kInt64;
}

int64_t reduced_count(const View& x, const View& out) {
  return out.numel ? x.numel / out.numel : 0;
}

void nonzero_by(const View& out, const View& x, IntSpan dims, double parameter) {
  reduce({"nonzero", number_type(x.dtype), parameter}, &out, nullptr, x, dims);
}
void moments(std::string_view name, const View& out, const View& x, const OptInts& dims,
             const OptScalar& correction) {
  const double lessened = correction ? correction->to_double() : 1;
  reduce({name, dtype_info(x.dtype).compute, lessened}, &out, nullptr, x, dims_or_all(dims));
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
  const bool integral = !is_inexact(out.dtype);
  reduce({integral ? "sum" : "nansum", sum_type(out.dtype), 1}, &out, nullptr, x,
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

void amax(const View& out, const View& x, IntSpan dims, bool) {
  reduce({"max", order_type(x.dtype)}, &out, nullptr, x, dims);
}
void amin(const View& out, const View& x, IntSpan dims, bool) {
  reduce({"min", order_type(x.dtype)}, &out, nullptr, x, dims);
}
void max_dim(const View& values, const View& indices, const View& x, int64_t dim, bool) {
  reduce({"max", order_type(x.dtype)}, &values, &indices, x, {&dim, 1});
}
void min_dim(const View& values, const View& indices, const View& x, int64_t dim, bool) {
  reduce({"min", order_type(x.dtype)}, &values, &indices, x, {&dim, 1});
}
void argmax(const View& out, const View& x, OptInt dim, bool) {
  reduce({"max", order_type(x.dtype)}, nullptr, &out, x, dim ? IntSpan(&*dim, 1) : IntSpan());
}
void argmin(const View& out, const View& x, OptInt dim, bool) {
  reduce({"min", order_type(x.dtype)}, nullptr, &out, x, dim ? IntSpan(&*dim, 1) : IntSpan());
}

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
