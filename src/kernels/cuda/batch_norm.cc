// batch_norm: statistics by a reduction, then a pass over the elements (text/norm.cuh).
#include "kernels/cpu/norm/batch_norm.h"

#include "device/launch.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/reduce.h"

namespace taeda::cuda {

void apply_by_channel(const View& out, const View& x, const View& gy, const View& weight,
                      const View& bias, const View& mean, const View& var, const Workspace* sums,
                      bool training, double eps) {
  const int64_t channels = x.sizes[1], bytes = item_size(dtype_info(x.dtype).compute);
  const Workspace coefficients(x.device, 4 * channels * bytes);
  device::ChannelArgs by{};
  by.mean = array(mean), by.var = array(var), by.weight = array(weight), by.bias = array(bias);
  by.sums = sums ? reinterpret_cast<const double*>(sums->data()) : nullptr;
  by.coefficients = coefficients.data();
  by.channels = static_cast<uint32_t>(channels);
  by.training = training;
  by.eps = eps;
  by.count = static_cast<double>(x.numel / channels);
  const View read[] = {mean, var, weight, bias};
  Accesses touched = accesses({}, read);
  touched.push_back(coefficients.access(true));
  if (sums) touched.push_back(sums->access(false));
  launch(x.device.index, norm_kernel_name("norm_channel", x), channels, &by, touched);

  device::ApplyArgs args{};
  args.out = array(out), args.x = array(x), args.gy = array(gy);
  args.coefficients = coefficients.data();
  args.channels = by.channels;
  WalkPlan<4> walk;
  for (size_t d = 0; d < x.sizes.size(); d++) {
    const auto stride = [&](const View& v) {
      return v.present ? v.strides[d] * item_size(v.dtype) : 0;
    };
    walk.add(x.sizes[d], {stride(out), stride(x), stride(gy), d == 1});
  }
  walk.sort_by(0);
  args.walk = walk.walk();
  const View written[] = {out}, inputs[] = {x, gy};
  touched = accesses(written, inputs);
  touched.push_back(coefficients.access(false));
  launch(x.device.index, norm_kernel_name("norm_apply", x), x.numel, &args, touched);
}

void batch_norm(const View& out, const View& x, const View& weight, const View& bias,
                const View& mean, const View& var, double eps) {
  if (x.numel)
    apply_by_channel(out, x, View(), Dense(weight), Dense(bias), Dense(mean), Dense(var), nullptr,
                     false, eps);
}

void batch_norm_train(const View& out, const View& mean, const View& var, const View& x,
                      const View& weight, const View& bias, double eps) {
  DimVector dims{0};
  for (int64_t d = 2; d < x.ndim(); d++) dims.push_back(d);
  reduce({"var", dtype_info(x.dtype).compute, 0}, &var, &mean, x, dims);
  batch_norm(out, x, weight, bias, mean, var, eps);
}

}  // namespace taeda::cuda
