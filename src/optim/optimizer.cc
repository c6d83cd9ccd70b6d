#include <algorithm>

#include "op/copy_.h"
#include "taeda/autograd.h"
#include "taeda/optim.h"

namespace taeda::optim {

Optimizer::Optimizer(TensorList parameters, double lr, double weight_decay) {
  TD_CHECK_VALUE(!parameters.empty(), "optimizer got an empty parameter list");
  add_group(std::move(parameters), lr, weight_decay);
}

void Optimizer::add_group(TensorList parameters, double lr, double weight_decay) {
  TD_CHECK_VALUE(lr >= 0, "Invalid learning rate: {}", lr);
  TD_CHECK_VALUE(weight_decay >= 0, "Invalid weight_decay value: {}", weight_decay);
  for (size_t i = 0; i < parameters.size(); i++) {
    const Tensor& p = parameters[i];
    TD_CHECK_TYPE(p.defined(), "optimizer: parameter {} is undefined", i);
    TD_CHECK_VALUE(p.is_leaf(), "can't optimize a non-leaf Tensor");
    const auto same = [&](const Tensor& other) { return other.is_same(p); };
    bool twice = std::any_of(parameters.begin(), parameters.begin() + static_cast<long>(i), same);
    for (const Group& g : groups_)
      twice |= std::any_of(g.parameters.begin(), g.parameters.end(), same);
    TD_CHECK_VALUE(!twice,
                   "some parameters appear in more than one parameter group, or twice in one");
  }
  states_.emplace_back(parameters.size());
  groups_.push_back({std::move(parameters), lr, weight_decay});
}

TensorList Optimizer::Columns::state(size_t which) const {
  TensorList column;
  column.reserve(states.size());
  for (const State* s : states) column.push_back((*s)[which]);
  return column;
}

void Optimizer::step() {
  const NoGrad no_grad;
  for (size_t g = 0; g < groups_.size(); g++) {
    // Parameters that take their first step go apart: some rules treat it differently.
    Columns first, later;
    for (size_t i = 0; i < groups_[g].parameters.size(); i++) {
      const Tensor& p = groups_[g].parameters[i];
      Tensor gradient = p.grad();
      if (!gradient.defined()) continue;
      State& state = states_[g][i];
      Columns& columns = state.empty() ? first : later;
      if (state.empty()) state = fresh_state(p);
      columns.parameters.push_back(p);
      columns.gradients.push_back(std::move(gradient));
      columns.states.push_back(&state);
    }
    if (!first.parameters.empty()) update(groups_[g], first, true);
    if (!later.parameters.empty()) update(groups_[g], later, false);
  }
}

void Optimizer::zero_grad() {
  for (Group& group : groups_) {
    for (Tensor& p : group.parameters) p.set_grad({});
  }
}

Optimizer::NamedTensors Optimizer::state_dict() const {
  NamedTensors all;
  const std::vector<std::string> names = state_names();
  size_t index = 0;
  for (const auto& group : states_) {
    for (const State& state : group) {
      for (size_t k = 0; k < state.size(); k++)
        all.emplace_back(std::to_string(index) + "." + names[k], state[k]);
      index++;
    }
  }
  return all;
}

void Optimizer::load_state_dict(const NamedTensors& saved) {
  const NoGrad no_grad;
  const std::vector<std::string> names = state_names();
  size_t placed = 0, index = 0;
  std::vector<std::vector<State>> loaded(states_.size());
  for (size_t g = 0; g < groups_.size(); g++) {
    for (const Tensor& p : groups_[g].parameters) {
      State state;
      for (size_t k = 0; k < names.size(); k++) {
        const std::string name = std::to_string(index) + "." + names[k];
        const auto found = std::find_if(saved.begin(), saved.end(),
                                        [&](const auto& e) { return e.first == name; });
        if (found == saved.end()) {
          TD_CHECK(k == 0, "optimizer.load_state_dict: \"{}\" is missing", name);
          break;
        }
        if (k == 0) state = fresh_state(p);
        TD_CHECK(found->second.sizes() == state[k].sizes(),
                 "optimizer.load_state_dict: \"{}\" has shape {}, its parameter needs {}", name,
                 found->second.sizes(), state[k].sizes());
        op::copy_(state[k], found->second, false);
        placed++;
      }
      loaded[g].push_back(std::move(state));
      index++;
    }
  }
  TD_CHECK(placed == saved.size(),
           "optimizer.load_state_dict: {} entries belong to no parameter of this optimizer",
           saved.size() - placed);
  states_ = std::move(loaded);
}

}  // namespace taeda::optim
