// Fused optimizer steps: the contracts and layouts behind ops/optim.yaml.
#include "kernels/cpu/optim/optim.h"

#include <vector>

#include "base/interrupt.h"
#include "core/layout.h"
#include "kernels/copy.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"

namespace taeda::impl {
namespace {

// The tensor lists of one call as Views with the layout of the parameters.
class StepLists {
 public:
  StepLists(std::string_view op, TensorSpan params) : op_(op), params_(params) {
    for (const Tensor& p : params) {
      TD_CHECK_TYPE(p.defined(), "{}: expected tensors, got an undefined one", op);
      TD_CHECK(is_floating(p.dtype()), "{}: expected floating-point parameters, got {}", op,
               p.dtype());
      TD_CHECK(p.device() == params[0].device(),
               "{}: expected parameters of one device, got {} and {}", op, params[0].device(),
               p.device());
    }
    dense_.resize(params.size());
    for (size_t i = 0; i < params.size(); i++)
      dense_[i] = is_dense_layout(params[i].sizes(), params[i].strides());
    params_views_ = written(params, "self");
  }

  cpu::Views params() const { return params_views_; }

  // Gradients: read; copied where their layout differs from the parameter's.
  std::vector<View> read(TensorSpan list, std::string_view name) {
    check(list, name);
    std::vector<View> views;
    views.reserve(list.size());
    for (size_t i = 0; i < list.size(); i++) {
      const bool same = dense_[i] && list[i].strides() == params_[i].strides();
      views.push_back(view_of(same ? list[i] : kept_.emplace_back(laid_out(list[i], i))));
    }
    return views;
  }

  // Parameters and state: written; staged in a copy where the layout differs.
  std::vector<View> written(TensorSpan list, std::string_view name) {
    check(list, name);
    std::vector<View> views;
    views.reserve(list.size());
    for (size_t i = 0; i < list.size(); i++) {
      const Tensor& t = list[i];
      check_no_internal_overlap(t);
      TD_CHECK(t.storage()->writable(), "{}: the memory of {}[{}] is read-only", op_, name, i);
      changed_.push_back(t);
      if (dense_[i] && t.strides() == params_[i].strides()) {
        views.push_back(view_of(t));
      } else {
        staged_.push_back({t, laid_out(t, i)});
        views.push_back(view_of(staged_.back().second));
      }
    }
    return views;
  }

  // After the kernel: copies staged results back, and tells autograd that the tensors changed.
  void finish() {
    for (const auto& [target, copy] : staged_) kernels::copy(view_of(target), view_of(copy));
    for (const Tensor& t : changed_) t.impl()->bump_version();
  }

 private:
  void check(TensorSpan list, std::string_view name) const {
    TD_CHECK(list.size() == params_.size(), "{}: expected {} tensors in {}, got {}", op_,
             params_.size(), name, list.size());
    for (size_t i = 0; i < list.size(); i++) {
      TD_CHECK_TYPE(list[i].defined(), "{}: {}[{}] is undefined", op_, name, i);
      TD_CHECK(list[i].dtype() == params_[i].dtype() && list[i].sizes() == params_[i].sizes() &&
                   list[i].device() == params_[i].device(),
               "{}: expected {}[{}] like its parameter ({} of shape {}), got {} of shape {}", op_,
               name, i, params_[i].dtype(), params_[i].sizes(), list[i].dtype(), list[i].sizes());
    }
  }

  Tensor laid_out(const Tensor& t, size_t i) const {
    const DimVector strides = preserved_strides(params_[i].sizes(), params_[i].strides());
    Tensor copy = empty_strided_tensor(t.sizes(), strides, t.dtype(), t.device());
    kernels::copy(view_of(copy), view_of(t));
    return copy;
  }

  const DeferInterrupts whole_step_;  // half a step is none that training can go on from
  std::string_view op_;
  TensorSpan params_;
  std::vector<char> dense_;
  std::vector<View> params_views_;
  std::vector<Tensor> changed_;
  std::vector<std::pair<Tensor, Tensor>> staged_;
  std::vector<Tensor> kept_;
};

// Numbers beside the parameters on a device are its kernels' to read, so that nothing waits.
bool stays_on_device(const Tensor& number, TensorSpan params) {
  return number.defined() && !number.device().is_cpu() && !params.empty() &&
         number.device() == params[0].device() && is_floating(number.dtype());
}
View left_on_device(const Tensor& number, TensorSpan params) {
  return stays_on_device(number, params) ? view_of(number) : View();
}

bool skips(const Tensor& found_inf, TensorSpan params) {
  return found_inf.defined() && !stays_on_device(found_inf, params) &&
         found_inf.item_scalar().to_double() != 0;
}

// The number in a tensor that is not left on the device, else the one that is given besides.
double number_or(double number, const Tensor& tensor, TensorSpan params) {
  const bool here = tensor.defined() && !stays_on_device(tensor, params);
  return here ? tensor.item_scalar().to_double() : number;
}

double inverse_scale(const Tensor& grad_scale, TensorSpan params) {
  const bool here = grad_scale.defined() && !stays_on_device(grad_scale, params);
  return here ? 1 / grad_scale.item_scalar().to_double() : 1.0;
}

// Step counters as kernels take them: on the device, or as doubles in `counts`.
std::vector<View> step_views(TensorSpan steps, TensorSpan params, std::vector<double>& counts) {
  std::vector<View> views;
  views.reserve(steps.size());
  counts.reserve(steps.size());
  for (const Tensor& step : steps) {
    if (stays_on_device(step, params)) {
      views.push_back(view_of(step));
      continue;
    }
    counts.push_back(step.item_scalar().to_double());
    views.push_back({&counts.back(), DType::kFloat64, {}, {}, 1, true, DeviceType::kCPU});
  }
  return views;
}

bool adam_step(std::string_view op, bool decoupled, TensorSpan params, TensorSpan grads,
               TensorSpan averages, TensorSpan squares, TensorSpan max_squares, TensorSpan steps,
               double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
               bool maximize, const Tensor& grad_scale, const Tensor& found_inf,
               const Tensor& lr_tensor) {
  StepLists lists(op, params);
  TD_CHECK(steps.size() == params.size(), "{}: expected {} tensors in state_steps, got {}", op,
           params.size(), steps.size());
  std::vector<double> counts;
  const std::vector<View> t = step_views(steps, params, counts);
  const std::vector<View> g = lists.read(grads, "grads"), m = lists.written(averages, "exp_avgs"),
                          v = lists.written(squares, "exp_avg_sqs"),
                          x = amsgrad ? lists.written(max_squares, "max_exp_avg_sqs")
                                      : std::vector<View>();
  if (skips(found_inf, params)) return false;
  cpu::AdamOptions options{.lr = number_or(lr, lr_tensor, params),
                           .beta1 = beta1,
                           .beta2 = beta2,
                           .eps = eps,
                           .weight_decay = weight_decay};
  options.grad_scale = inverse_scale(grad_scale, params);
  options.device_scale = left_on_device(grad_scale, params);
  options.device_lr = left_on_device(lr_tensor, params);
  options.found_inf = left_on_device(found_inf, params);
  options.decoupled = decoupled;
  options.amsgrad = amsgrad;
  options.maximize = maximize;
  kernels::fused_adam(lists.params(), g, m, v, x, t, options);
  lists.finish();
  return true;
}

}  // namespace

bool _fused_sgd_(TensorSpan self, TensorSpan grads, TensorSpan buffers, double weight_decay,
                 double momentum, double lr, double dampening, bool nesterov, bool maximize,
                 bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf,
                 const Tensor& lr_tensor) {
  StepLists lists("_fused_sgd_", self);
  const std::vector<View> g = lists.read(grads, "grads"),
                          b = momentum != 0 ? lists.written(buffers, "momentum_buffer_list")
                                            : std::vector<View>();
  if (skips(found_inf, self)) return false;
  cpu::SgdOptions options{.lr = number_or(lr, lr_tensor, self),
                          .momentum = momentum,
                          .dampening = dampening,
                          .weight_decay = weight_decay};
  options.grad_scale = inverse_scale(grad_scale, self);
  options.device_scale = left_on_device(grad_scale, self);
  options.device_lr = left_on_device(lr_tensor, self);
  options.found_inf = left_on_device(found_inf, self);
  options.nesterov = nesterov;
  options.maximize = maximize;
  options.first_step = is_first_step;
  kernels::fused_sgd(lists.params(), g, b, options);
  lists.finish();
  return true;
}

bool _fused_adam_(TensorSpan self, TensorSpan grads, TensorSpan averages, TensorSpan squares,
                  TensorSpan max_squares, TensorSpan steps, double lr, double beta1, double beta2,
                  double weight_decay, double eps, bool amsgrad, bool maximize,
                  const Tensor& grad_scale, const Tensor& found_inf, const Tensor& lr_tensor) {
  return adam_step("_fused_adam_", false, self, grads, averages, squares, max_squares, steps, lr,
                   beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf,
                   lr_tensor);
}

bool _fused_adamw_(TensorSpan self, TensorSpan grads, TensorSpan averages, TensorSpan squares,
                   TensorSpan max_squares, TensorSpan steps, double lr, double beta1, double beta2,
                   double weight_decay, double eps, bool amsgrad, bool maximize,
                   const Tensor& grad_scale, const Tensor& found_inf, const Tensor& lr_tensor) {
  return adam_step("_fused_adamw_", true, self, grads, averages, squares, max_squares, steps, lr,
                   beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf,
                   lr_tensor);
}

bool _fused_rmsprop_(TensorSpan self, TensorSpan grads, TensorSpan squares, TensorSpan means,
                     TensorSpan buffers, double lr, double alpha, double eps, double weight_decay,
                     double momentum, bool centered, bool maximize, const Tensor& grad_scale,
                     const Tensor& found_inf, const Tensor& lr_tensor) {
  StepLists lists("_fused_rmsprop_", self);
  const std::vector<View> g = lists.read(grads, "grads"), v = lists.written(squares, "square_avgs"),
                          m = centered ? lists.written(means, "grad_avgs") : std::vector<View>(),
                          b = momentum != 0 ? lists.written(buffers, "momentum_buffer_list")
                                            : std::vector<View>();
  if (skips(found_inf, self)) return false;
  cpu::RmspropOptions options{.lr = number_or(lr, lr_tensor, self),
                              .alpha = alpha,
                              .eps = eps,
                              .weight_decay = weight_decay,
                              .momentum = momentum};
  options.grad_scale = inverse_scale(grad_scale, self);
  options.device_scale = left_on_device(grad_scale, self);
  options.device_lr = left_on_device(lr_tensor, self);
  options.found_inf = left_on_device(found_inf, self);
  options.centered = centered;
  options.maximize = maximize;
  kernels::fused_rmsprop(lists.params(), g, v, m, b, options);
  lists.finish();
  return true;
}

bool _unscale_(TensorSpan self, const Tensor& found_inf, const Tensor& inv_scale) {
  StepLists lists("_unscale_", self);
  const Tensor* const numbers[] = {&found_inf, &inv_scale};
  for (const Tensor* t : numbers)
    TD_CHECK(t->numel() == 1 && t->dtype() == DType::kFloat32 &&
                 (self.size() == 0 || t->device() == self[0].device()),
             "_unscale_: expected float32 tensors of one element on the gradients' device, got {} "
             "of shape {} on {}",
             t->dtype(), t->sizes(), t->device());
  TD_CHECK(found_inf.storage()->writable(), "_unscale_: the memory of found_inf is read-only");
  if (self.size() == 0) return true;
  kernels::unscale(lists.params(), view_of(found_inf), view_of(inv_scale));
  lists.finish();
  found_inf.impl()->bump_version();
  return true;
}

bool _add_one_(TensorSpan self, const Tensor& found_inf) {
  std::vector<View> counters;
  counters.reserve(self.size());
  for (const Tensor& t : self) {
    TD_CHECK_TYPE(t.defined(), "_add_one_: expected tensors, got an undefined one");
    TD_CHECK(t.numel() == 1 && t.device() == self[0].device() && t.storage()->writable(),
             "_add_one_: expected writable one-element tensors of one device, got shape {} on {}",
             t.sizes(), t.device());
    TD_CHECK_IMPLEMENTED(is_floating(t.dtype()) && !is_narrow_floating(t.dtype()),
                         "\"_add_one_\" not implemented for '{}'", scalar_type_name(t.dtype()));
    counters.push_back(view_of(t));
  }
  if (skips(found_inf, self)) return false;
  kernels::add_one(counters, left_on_device(found_inf, self));
  for (const Tensor& t : self) t.impl()->bump_version();
  return true;
}

}  // namespace taeda::impl
