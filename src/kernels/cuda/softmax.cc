// softmax, log_softmax and their gradients (text/softmax.cuh).
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/rows.h"
#include "kernels/optional.h"

namespace taeda::cuda {
namespace {

// Computed in float, or in double where a tensor is.
DType compute_type(const View& out, const View& x) {
  const bool wide = out.dtype == DType::kFloat64 || x.dtype == DType::kFloat64;
  return wide ? DType::kFloat64 : DType::kFloat32;
}

void forward(std::string_view name, const View& out, const View& x, int64_t dim) {
  launch_rows(kernel_name(name, compute_type(out, x), "_any"), dim, out, {&x, 1});
}
void backward(std::string_view name, const View& gx, const View& gy, const View& y, int64_t dim) {
  const View in[] = {gy, y};
  launch_rows(kernel_name(name, compute_type(gx, y), "_any"), dim, gx, in);
}

}  // namespace

void softmax(const View& out, const View& x, int64_t dim, OptDType) {
  forward("softmax", out, x, dim);
}
void log_softmax(const View& out, const View& x, int64_t dim, OptDType) {
  forward("log_softmax", out, x, dim);
}
void softmax_backward(const View& gx, const View& gy, const View& y, int64_t dim, DType) {
  backward("softmax_backward", gx, gy, y, dim);
}
void log_softmax_backward(const View& gx, const View& gy, const View& y, int64_t dim, DType) {
  backward("log_softmax_backward", gx, gy, y, dim);
}

}  // namespace taeda::cuda
