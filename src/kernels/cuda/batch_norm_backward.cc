// The gradient of batch_norm: sums by channel, then a pass over the elements (text/norm.cuh).
#include "kernels/cpu/norm/batch_norm.h"

#include "kernels/cuda/norm.h"

namespace taeda::cuda {

void batch_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, const View& weight, const View& given_mean,
                         const View& given_var, bool training, double eps) {
  if (x.numel == 0) return;
  const Dense mean(given_mean), var(given_var);
  const int64_t channels = x.sizes[1];
  const Workspace sums(x.device, 2 * channels * static_cast<int64_t>(sizeof(double)));
  device::NormSumsArgs of{};
  of.x = array(x), of.gy = array(gy), of.mean = array(mean.view()), of.scale = array(var.view());
  of.gw = array(gw), of.gb = array(gb);
  of.sums = reinterpret_cast<double*>(sums.data());
  of.is_variance = true;
  of.eps = eps;
  SumsPlan plan;
  for (size_t d = 0; d < x.sizes.size(); d++) {
    const int64_t xs = x.strides[d] * item_size(x.dtype), gs = gy.strides[d] * item_size(gy.dtype);
    (d == 1 ? plan.kept : plan.reduced).add(x.sizes[d], {xs, gs, d == 1});
  }
  const View written[] = {gw, gb}, read[] = {x, gy, mean.view(), var.view()};
  Accesses touched = accesses(written, read);
  touched.push_back(sums.access(true));
  norm_sums(plan, of, x, touched);
  if (gx.present)
    apply_by_channel(gx, x, gy, Dense(weight), View(), mean, var, &sums, training, eps);
}

}  // namespace taeda::cuda
