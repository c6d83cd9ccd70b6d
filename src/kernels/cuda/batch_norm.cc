// batch_norm and its gradient: sums by channel, then a pass over the elements (text/norm.cuh).
#include "kernels/cpu/norm/batch_norm.h"
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/reduce.h"

namespace taeda::cuda {
namespace {

DType compute_type(const View& x) { return dtype_info(x.dtype).compute; }

// The pass: out = a gy + b (x - mean) + c by channel; without sums the forward one.
void apply(const View& out, const View& x, const View& gy, const View& weight, const View& bias,
           const View& mean, const View& var, const Workspace* sums, bool training, double eps) {
  const int64_t channels = x.sizes[1], bytes = item_size(compute_type(x));
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

}  // namespace

void batch_norm(const View& out, const View& x, const View& weight, const View& bias,
                const View& mean, const View& var, double eps) {
  if (x.numel)
    apply(out, x, View(), Dense(weight), Dense(bias), Dense(mean), Dense(var), nullptr, false, eps);
}

void batch_norm_train(const View& out, const View& mean, const View& var, const View& x,
                      const View& weight, const View& bias, double eps) {
  DimVector dims{0};
  for (int64_t d = 2; d < x.ndim(); d++) dims.push_back(d);
  reduce({"var", compute_type(x), 0}, &var, &mean, x, dims);
  batch_norm(out, x, weight, bias, mean, var, eps);
}

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
  if (gx.present) apply(gx, x, gy, Dense(weight), View(), mean, var, &sums, training, eps);
}

}  // namespace taeda::cuda
