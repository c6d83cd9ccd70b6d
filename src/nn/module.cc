#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "base/fix_line.h"
#include "op/copy_.h"
#include "op/detach.h"
#include "op/to_dtype.h"
#include "taeda/autograd.h"
#include "taeda/nn.h"

namespace taeda::nn {

struct Module::State {
  NamedTensors parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<State>>> children;
  bool training = true;

  // Calls visit(path, state) for this state and all below it, each once.
  template <class Visit>
  void walk(const Visit& visit) const {
    std::vector<const State*> seen;
    walk("", seen, visit);
  }

  bool has(std::string_view name) const {
    const auto is_name = [&](const auto& entry) { return entry.first == name; };
    return std::any_of(parameters.begin(), parameters.end(), is_name) ||
           std::any_of(buffers.begin(), buffers.end(), is_name) ||
           std::any_of(children.begin(), children.end(), is_name);
  }

 private:
  template <class Visit>
  void walk(const std::string& prefix, std::vector<const State*>& seen, const Visit& visit) const {
    if (std::find(seen.begin(), seen.end(), this) != seen.end()) return;
    seen.push_back(this);
    visit(prefix, *this);
    for (const auto& [name, child] : children) child->walk(prefix + name + ".", seen, visit);
  }
};

namespace {

template <class State>
NamedTensors collect(const State& state, NamedTensors State::*list) {
  NamedTensors all;
  state.walk([&](const std::string& prefix, const State& s) {
    for (const auto& [name, tensor] : s.*list) {
      const auto same = [&t = tensor](const auto& entry) { return entry.second.is_same(t); };
      if (std::none_of(all.begin(), all.end(), same)) all.emplace_back(prefix + name, tensor);
    }
  });
  return all;
}

}  // namespace

Module::Module() : state_(std::make_shared<State>()) {}
Module::~Module() = default;

NamedTensors Module::named_parameters() const { return collect(*state_, &State::parameters); }
NamedTensors Module::named_buffers() const { return collect(*state_, &State::buffers); }

TensorList Module::parameters() const {
  TensorList all;
  for (auto& [name, tensor] : named_parameters()) all.push_back(tensor);
  return all;
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  state_->walk([&](const std::string& prefix, const State& s) {
    for (const NamedTensors* list : {&s.parameters, &s.buffers}) {
      for (const auto& [name, tensor] : *list) all.emplace_back(prefix + name, op::detach(tensor));
    }
  });
  return all;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  const NoGrad no_grad;
  const NamedTensors own = state_dict();
  const auto find = [](const NamedTensors& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& entry) { return entry.first == name; });
  };
  std::string problems;
  for (const auto& [name, tensor] : own) {
    const auto given = find(state, name);
    if (given == state.end()) {
      if (strict) problems += format("\n\tMissing key in state_dict: \"{}\".", name);
    } else if (given->second.sizes() != tensor.sizes()) {
      problems += format(
          "\n\tsize mismatch for {}: copying a param with shape {}, the shape in current model is "
          "{}.",
          name, given->second.sizes(), tensor.sizes());
    }
  }
  for (const auto& [name, tensor] : state) {
    if (strict && find(own, name) == own.end())
      problems += format("\n\tUnexpected key in state_dict: \"{}\".", name);
  }
  TD_CHECK(
      problems.empty(),
      "Error(s) in loading state_dict:{}\nFix: build the model as it was when it was saved, or "
      "rename the keys; strict = false lets keys be missing or unexpected, sizes never differ",
      problems);
  for (const auto& [name, tensor] : own) {
    const auto given = find(state, name);
    if (given != state.end()) op::copy_(tensor, given->second, false);
  }
}

void Module::train(bool on) {
  state_->walk([&](const std::string&, const State& s) { const_cast<State&>(s).training = on; });
}
bool Module::is_training() const { return state_->training; }

void Module::to(DType dtype) {
  TD_CHECK_TYPE(is_inexact(dtype), "Module::to: expected a floating or complex dtype, got {}",
                dtype);
  const NoGrad no_grad;
  for (const NamedTensors& list : {named_parameters(), named_buffers()}) {
    for (auto [name, tensor] : list) {
      if (!is_inexact(tensor.dtype())) continue;
      tensor.set_data(op::to_dtype(tensor, dtype, false, std::nullopt));
      if (Tensor grad = tensor.grad(); grad.defined())
        tensor.set_grad(op::to_dtype(grad, dtype, false, std::nullopt));
    }
  }
}

void Module::requires_grad_(bool value) {
  for (auto [name, tensor] : named_parameters()) tensor.requires_grad_(value);
}

void Module::zero_grad() {
  for (auto [name, tensor] : named_parameters()) tensor.set_grad({});
}

namespace {

void check_name(std::string_view name, bool taken) {
  TD_CHECK_VALUE(!name.empty(), "module: a name can't be empty string \"\"");
  TD_CHECK_VALUE(name.find('.') == std::string_view::npos,
                 "module: a name can't contain \".\", got \"{}\"", name);
  TD_CHECK_VALUE(!taken, "module: attribute '{}' already exists", name);
}

}  // namespace

Tensor Module::add_parameter(std::string_view name, Tensor value) {
  check_name(name, state_->has(name));
  if (value.defined()) state_->parameters.emplace_back(name, value.requires_grad_());
  return value;
}

Tensor Module::add_buffer(std::string_view name, Tensor value) {
  check_name(name, state_->has(name));
  if (value.defined()) state_->buffers.emplace_back(name, value);
  return value;
}

void Module::add_child(std::string_view name, const Module& child) {
  check_name(name, state_->has(name));
  TD_CHECK_VALUE(child.state_ != state_, "module: \"{}\" cannot be a part of itself", name);
  state_->children.emplace_back(name, child.state_);
}

namespace {

// An error on its way out through the layers that call each other, with the path between the one
// where it was thrown and the outermost so far.
class InModule final : public Error {
 public:
  InModule(ErrorKind kind, const std::string& text, std::string leaf, std::string path,
           const std::string& outermost, const void* state)
      : Error(kind, path.empty() ? before_fix(text, format("\nIn module {}", leaf))
                                 : before_fix(text, format("\nIn module '{}' of {}: {}", path,
                                                           outermost, leaf))),
        text(text),
        leaf(std::move(leaf)),
        path(std::move(path)),
        state(state) {}
  std::string text, leaf, path;
  const void* state;  // of the outermost module
};

// The name of a class without its namespaces.
std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string_view name = text ? text.get() : type.name();
  return std::string(name.substr(name.rfind(':') + 1));
}

}  // namespace

Tensor Layer::operator()(const Tensor& x) const {
  try {
    return forward(x);
  } catch (const Error& error) {
    fail(error, x);
  }
}

void Layer::fail(const Error& error, const Tensor& x) const {
  const std::string name = class_name(typeid(*this));
  const auto* inner = dynamic_cast<const InModule*>(&error);
  if (!inner) {
    if (typeid(error) != typeid(Error)) throw;  // a device's errors are of classes of their own
    const std::string given = x.defined() ? format("{} {}", x.sizes(), x.dtype()) : "no tensor";
    throw InModule(error.kind(), error.what(), name + ", called with " + given, "", name,
                   state_.get());
  }
  if (inner->state == state_.get()) throw;
  std::string path = inner->path;
  state_->walk([&](const std::string& prefix, const State& state) {
    if (&state != inner->state || prefix.empty()) return;
    path = prefix.substr(0, prefix.size() - 1) + (inner->path.empty() ? "" : "." + inner->path);
  });
  throw InModule(inner->kind(), inner->text, inner->leaf, path, name, state_.get());
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const auto& layer : *layers_) y = (*layer)(y);
  return y;
}

void Sequential::append(std::shared_ptr<const Layer> layer) {
  add(std::to_string(layers_->size()), static_cast<const Module&>(*layer));
  layers_->push_back(std::move(layer));
}

}  // namespace taeda::nn
