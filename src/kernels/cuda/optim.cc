// Optimizers' steps over lists of tensors (text/optim.cuh): some launches for all of them.
#include "kernels/cpu/optim/optim.h"

#include <algorithm>
#include <cmath>

#include "device/launch.h"
#include "kernels/cuda/optim_launch.h"

namespace taeda::cuda {

using cpu::Views;

void fused_sgd(Views params, Views grads, Views buffers, const cpu::SgdOptions& o) {
  device::OptimArgs<device::SgdRule> args{};
  args.rule = {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, o.first_step};
  launch_optim("optim_sgd", args, o, {params, grads, {buffers}});
}

void fused_adam(Views params, Views grads, Views averages, Views squares, Views max_squares,
                Views steps, const cpu::AdamOptions& o) {
  device::OptimArgs<device::AdamRule> args{};
  args.rule = {o.lr,  o.beta1,        o.beta2,    std::log(o.beta1), std::log(o.beta2),
               o.eps, o.weight_decay, o.decoupled};
  launch_optim("optim_adam", args, o, {params, grads, {averages, squares, max_squares}, steps});
}

void fused_rmsprop(Views params, Views grads, Views squares, Views means, Views buffers,
                   const cpu::RmspropOptions& o) {
  device::OptimArgs<device::RmspropRule> args{};
  args.rule = {o.lr, o.alpha, o.eps, o.weight_decay, o.momentum};
  launch_optim("optim_rmsprop", args, o, {params, grads, {squares, means, buffers}});
}

void unscale(Views grads, const View& found_inf, const View& inverse_scale) {
  const struct {
    double grad_scale = 1;
    bool maximize = false;
    View device_scale, device_lr{}, found_inf{};
  } options{.device_scale = inverse_scale};
  device::OptimArgs<device::UnscaleRule> args{};
  args.rule.not_finite = found_inf.as<float>();
  launch_optim("optim_unscale", args, options,
               {.params = grads, .grads = grads, .flag = found_inf});
}

void add_one(Views counters, const View& found_inf) {
  constexpr size_t kMost = std::size(device::AddOneArgs{}.tensors);
  for (size_t begin = 0, n; begin < counters.size(); begin += n) {
    device::AddOneArgs args{};
    SmallVector<Access, 16> touched;
    const DType type = counters[begin].dtype;
    const size_t left = std::min(kMost, counters.size() - begin);
    for (n = 0; n < left && counters[begin + n].dtype == type; n++) {
      args.tensors[n] = counters[begin + n].as<char>();
      touched.push_back({args.tensors[n], item_size(type), true});
    }
    args.count = static_cast<uint32_t>(n);
    args.type = element_type(type);
    if (found_inf.present) args.found_type = note_number(args.found_inf, found_inf, touched);
    launch(counters[0].device.index, "optim_add_one_f64_any", static_cast<int64_t>(n), &args,
           touched);
  }
}

}  // namespace taeda::cuda
