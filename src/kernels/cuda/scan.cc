// cumsum, cumprod, cummax and cummin (text/scan.cuh).
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/rows.h"

namespace taeda::cuda {
namespace {

DType sum_type(DType t) { return is_inexact(t) ? dtype_info(t).compute : DType::kInt64; }

void extremes(std::string_view name, const View& values, const View& indices, const View& x,
              int64_t dim) {
  const View operands[] = {x, indices};
  launch_rows(kernel_name(name, sum_type(x.dtype), "_any"), dim, values, operands, 2);
}

}  // namespace

void cumsum(const View& out, const View& x, int64_t dim, OptDType) {
  launch_rows(kernel_name("cumsum", sum_type(out.dtype), "_any"), dim, out, {&x, 1});
}
void cumprod(const View& out, const View& x, int64_t dim, OptDType) {
  launch_rows(kernel_name("cumprod", sum_type(out.dtype), "_any"), dim, out, {&x, 1});
}
void cummax(const View& values, const View& indices, const View& x, int64_t dim) {
  extremes("cummax", values, indices, x, dim);
}
void cummin(const View& values, const View& indices, const View& x, int64_t dim) {
  extremes("cummin", values, indices, x, dim);
}

}  // namespace taeda::cuda
