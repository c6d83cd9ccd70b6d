// The largest and smallest elements, and where they are (text/reducers.cuh).
#include "kernels/cuda/reduce.h"
#include "kernels/optional.h"

namespace taeda::cuda {
namespace {

// What elements are compared in: all integers as the largest.
DType order_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }

}  // namespace

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

}  // namespace taeda::cuda
