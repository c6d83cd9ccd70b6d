#include "op/_add_one_.h"
#include "op/_fused_adam_.h"
#include "op/_fused_adamw_.h"
#include "op/_fused_rmsprop_.h"
#include "op/_fused_sgd_.h"
#include "op/zeros.h"
#include "op/zeros_like.h"
#include "taeda/optim.h"

namespace taeda::optim {
namespace {

void check_fraction(double value, std::string_view name) {
  TD_CHECK_VALUE(value >= 0 && value < 1, "Invalid {}: {}", name, value);
}

}  // namespace

SGD::SGD(TensorList parameters, SGDOptions options)
    : Optimizer(std::move(parameters), options.lr, options.weight_decay), options_(options) {
  TD_CHECK_VALUE(options.momentum >= 0, "Invalid momentum value: {}", options.momentum);
  TD_CHECK_VALUE(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                 "Nesterov momentum requires a momentum and zero dampening");
}
std::vector<std::string> SGD::state_names() const {
  return options_.momentum != 0 ? std::vector<std::string>{"momentum_buffer"}
                                : std::vector<std::string>{};
}
Optimizer::State SGD::fresh_state(const Tensor& parameter) const {
  return options_.momentum != 0 ? State{op::zeros_like(parameter, {}, {})} : State{};
}
void SGD::update(const Group& group, const Columns& columns, bool first) {
  const TensorList buffers = options_.momentum != 0 ? columns.state(0) : TensorList();
  op::_fused_sgd_(columns.parameters, columns.gradients, buffers, group.weight_decay,
                  options_.momentum, group.lr, options_.dampening, options_.nesterov,
                  options_.maximize, first, {}, {}, {});
}

Adam::Adam(TensorList parameters, AdamOptions options, bool decoupled)
    : Optimizer(std::move(parameters), options.lr, options.weight_decay),
      options_(options),
      decoupled_(decoupled) {
  check_fraction(options.beta1, "beta parameter at index 0");
  check_fraction(options.beta2, "beta parameter at index 1");
  TD_CHECK_VALUE(options.eps >= 0, "Invalid epsilon value: {}", options.eps);
}
std::vector<std::string> Adam::state_names() const {
  std::vector<std::string> names = {"step", "exp_avg", "exp_avg_sq"};
  if (options_.amsgrad) names.push_back("max_exp_avg_sq");
  return names;
}
Optimizer::State Adam::fresh_state(const Tensor& parameter) const {
  State state = {op::zeros({}, DType::kFloat32), op::zeros_like(parameter, {}, {}),
                 op::zeros_like(parameter, {}, {})};
  if (options_.amsgrad) state.push_back(op::zeros_like(parameter, {}, {}));
  return state;
}
void Adam::update(const Group& group, const Columns& columns, bool) {
  const TensorList steps = columns.state(0);
  op::_add_one_(steps, {});
  const auto step = decoupled_ ? op::_fused_adamw_ : op::_fused_adam_;
  step(columns.parameters, columns.gradients, columns.state(1), columns.state(2),
       options_.amsgrad ? columns.state(3) : TensorList(), steps, group.lr, options_.beta1,
       options_.beta2, group.weight_decay, options_.eps, options_.amsgrad, options_.maximize, {},
       {}, {});
}

RMSprop::RMSprop(TensorList parameters, RMSpropOptions options)
    : Optimizer(std::move(parameters), options.lr, options.weight_decay), options_(options) {
  check_fraction(options.alpha, "alpha value");
  TD_CHECK_VALUE(options.eps >= 0, "Invalid epsilon value: {}", options.eps);
  TD_CHECK_VALUE(options.momentum >= 0, "Invalid momentum value: {}", options.momentum);
}
std::vector<std::string> RMSprop::state_names() const {
  std::vector<std::string> names = {"square_avg"};
  if (options_.centered) names.push_back("grad_avg");
  if (options_.momentum != 0) names.push_back("momentum_buffer");
  return names;
}
Optimizer::State RMSprop::fresh_state(const Tensor& parameter) const {
  State state;
  for (size_t k = state_names().size(); k > 0; k--)
    state.push_back(op::zeros_like(parameter, {}, {}));
  return state;
}
void RMSprop::update(const Group& group, const Columns& columns, bool) {
  const size_t buffer = options_.centered ? 2 : 1;
  op::_fused_rmsprop_(columns.parameters, columns.gradients, columns.state(0),
                      options_.centered ? columns.state(1) : TensorList(),
                      options_.momentum != 0 ? columns.state(buffer) : TensorList(), group.lr,
                      options_.alpha, options_.eps, group.weight_decay, options_.momentum,
                      options_.centered, options_.maximize, {}, {}, {});
}

}  // namespace taeda::optim
