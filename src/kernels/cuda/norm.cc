// layer_norm and group_norm (text/norm.cuh).
#include "kernels/cuda/norm.h"

#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/rows.h"
#include "kernels/product.h"

namespace taeda::cuda {

std::string norm_kernel_name(std::string_view kernel, const View& x) {
  return kernel_name(kernel, dtype_info(x.dtype).compute, "_any");
}

void fill_zero(const View& v) {
  if (v.present && v.numel) kernels::fill(v, Scalar(0.0));
}

RowShape layer_shape(const View& x, IntSpan normalized) {
  const int64_t n = kernels::product(normalized);
  return {x.numel / n, n, 1, n, 1};
}
RowShape group_shape(const View& x, int64_t groups) {
  const int64_t per_group = x.sizes[1] / groups;
  const int64_t positions = x.numel / (x.sizes[0] * x.sizes[1]);
  return {x.sizes[0] * groups, per_group * positions, groups, per_group, positions};
}

device::NormArgs norm_arguments(const RowShape& s, const View& x) {
  TD_CHECK(s.n < INT32_MAX, "a row of {} elements is too long for a CUDA kernel", s.n);
  device::NormArgs args{};
  args.x = array(x);
  args.rows = static_cast<uint64_t>(s.rows);
  args.n = static_cast<uint32_t>(s.n);
  args.groups = static_cast<uint32_t>(s.groups);
  args.per_group = static_cast<uint32_t>(s.per_group);
  args.positions = device::divisor(static_cast<uint32_t>(s.positions));
  args.threads = group_size(s.n, item_size(x.dtype), 0);
  return args;
}

namespace {

void forward(const RowShape& s, const View& out, const View& mean, const View& rstd, const View& x,
             const View& weight, const View& bias, double eps) {
  device::NormArgs args = norm_arguments(s, x);
  args.out = array(out), args.mean = array(mean), args.rstd = array(rstd);
  args.weight = array(weight), args.bias = array(bias), args.eps = eps;
  const View written[] = {out, mean, rstd}, read[] = {x, weight, bias};
  launch(x.device.index, norm_kernel_name("norm", x), s.rows * args.threads, &args,
         accesses(written, read));
}

}  // namespace

void layer_norm(const View& out, const View& mean, const View& rstd, const View& x,
                IntSpan normalized_shape, const View& weight, const View& bias, double eps) {
  if (x.numel == 0) return fill_zero(mean), fill_zero(rstd);
  forward(layer_shape(x, normalized_shape), out, mean, rstd, x, Dense(weight), Dense(bias), eps);
}
void group_norm(const View& out, const View& mean, const View& rstd, const View& x, int64_t groups,
                const View& weight, const View& bias, double eps) {
  if (x.numel == 0) return fill_zero(mean), fill_zero(rstd);
  forward(group_shape(x, groups), out, mean, rstd, x, Dense(weight), Dense(bias), eps);
}

}  // namespace taeda::cuda
