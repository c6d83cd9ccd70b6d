// logcumsumexp, and the gradients and tangents of it and of cumprod (text/scan_gradient.cuh).
#include "kernels/copy.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/rows.h"

namespace taeda::cuda {
namespace {

DType compute_type(const View& v) { return dtype_info(v.dtype).compute; }
DType wide(const View& v) { return is_complex(v.dtype) ? DType::kComplex128 : DType::kFloat64; }

void run(std::string_view kernel, DType type, int64_t dim, const View& out, const View& a,
         const View& b) {
  const View in[] = {a, b};
  launch_rows(kernel_name(kernel, type, "_any"), dim, out, in);
}

// logcumsumexp, anew where half precision rounded it: exp() makes a factor of a rounding error.
void unround(const View& y, const View& x, const View& output, int64_t dim) {
  if (!is_reduced_floating(output.dtype)) return kernels::copy(y, output);
  launch_rows(kernel_name("logcumsumexp", y.dtype, "_any"), dim, y, {&x, 1});
}

}  // namespace

void logcumsumexp(const View& out, const View& self, int64_t dim) {
  launch_rows(kernel_name("logcumsumexp", compute_type(self), "_any"), dim, out, {&self, 1});
}
void logcumsumexp_jvp(const View& out, const View& tangent, const View& self, const View& output,
                      int64_t dim) {
  const DType type = wide(self);
  const Dense sums(out.device, type, out.sizes), y(out.device, type, out.sizes);
  unround(y, self, output, dim);
  kernels::copy(sums, tangent);
  run("exp_difference", type, dim, sums, self, y);
  run("recurrence_decrease", type, dim, sums, sums, y);
  kernels::copy(out, sums);
}
void logcumsumexp_backward(const View& out, const View& gy, const View& self, const View& output,
                           int64_t dim) {
  const DType type = wide(self);
  const Dense sums(out.device, type, out.sizes), y(out.device, type, out.sizes);
  unround(y, self, output, dim);
  const IntSpan dims(&dim, 1);
  const Reversed s(sums, dims), g(gy, dims), end(y, dims);
  run("recurrence_increase", type, dim, s, g, end);
  run(is_complex(type) ? "exp_difference_conj" : "exp_difference", type, dim, sums, self, y);
  kernels::copy(out, sums);
}

void cumprod_jvp(const View& out, const View& tangent, const View& self, int64_t dim) {
  run("cumprod_tangent", compute_type(self), dim, out, tangent, self);
}
void cumprod_backward(const View& out, const View& gy, const View& self, const View&, int64_t dim) {
  const DType type = compute_type(self);
  const Dense sums(out.device, type, out.sizes);
  const IntSpan dims(&dim, 1);
  const Reversed s(sums, dims), g(gy, dims), x(self, dims);
  run("recurrence_element", type, dim, s, g, x);
  launch_rows(kernel_name("products_before", type, "_any"), dim, sums, {&self, 1});
  kernels::copy(out, sums);
}

}  // namespace taeda::cuda
