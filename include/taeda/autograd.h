// Automatic differentiation: gradients, and the modes that switch recording.
//
// Operators on tensors that require grad record a graph; backward() and grad() walk it. Both may be
// called from several threads at once. Modes hold for the calling thread until the end of the
// scope.
//
//   Tensor x = randn({3}).requires_grad_();
//   TensorList g = grad({(x * x).sum()}, {x});              // {2 * x}
//   { NoGrad guard; x -= 0.1 * g[0]; }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda {

// Accumulates d(sum(tensors . grad_tensors))/d(leaf) into the leaf's grad(), for all leaves or
// those of `inputs`. grad_tensors may be left out for one-element tensors. With create_graph the
// gradients can be differentiated again.
void backward(const TensorList& tensors, const TensorList& grad_tensors = {},
              bool retain_graph = false, bool create_graph = false, const TensorList& inputs = {});

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused =
      false;  // an input that the outputs do not depend on: undefined instead of RuntimeError
  bool materialize_grads = false;  // zeros instead of undefined
};
// d(sum(outputs . grad_outputs))/d(input) for each input; leaves' grad() stays untouched.
TensorList grad(const TensorList& outputs, const TensorList& inputs,
                const TensorList& grad_outputs = {}, GradOptions options = {});

// Switches recording on or off for the scope.
class GradMode {
 public:
  explicit GradMode(bool enabled) : saved_(thread_modes.grad_enabled) {
    thread_modes.grad_enabled = enabled;
  }
  ~GradMode() { thread_modes.grad_enabled = saved_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;
  static bool is_enabled() { return thread_modes.grad_enabled; }

 private:
  bool saved_;
};
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};
struct EnableGrad : GradMode {
  EnableGrad() : GradMode(true) {}
};

// Nothing is recorded, and tensors made here have no version counter and can take no part in
// recording later.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : saved_(thread_modes) {
    thread_modes.inference = enabled;
    thread_modes.grad_enabled = !enabled;
    thread_modes.excluded =
        enabled ? saved_.excluded | Key::kAutograd : saved_.excluded - Key::kAutograd;
  }
  ~InferenceMode() { thread_modes = saved_; }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  ThreadModes saved_;
};

// Finds the source of errors and NaNs in backward: records where each operator was called.
struct AnomalyMode {
  static bool enabled();
  static bool checks_nan();
  static void set(bool enabled, bool check_nan = true);
};

// Calls `hook` with the gradient of `t` each time it is computed; a defined result replaces it.
// Returns a number for remove_hook. RuntimeError for tensors that do not require grad.
using GradHook = std::function<Tensor(const Tensor& grad)>;
uint64_t register_hook(const Tensor& t, GradHook hook);
void remove_hook(const Tensor& t, uint64_t id);

// What a custom Function keeps between forward and backward.
class FunctionContext {
 public:
  // Tensors that are arguments or results of forward.
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  // In backward: what was saved. RuntimeError when one was modified since.
  TensorList saved_tensors() const;
  void mark_non_differentiable(const TensorList& outputs) { non_differentiable_ = outputs; }
  // Arguments that forward changed in place; it returns them.
  void mark_dirty(const TensorList& inputs) { dirty_ = inputs; }
  // Whether backward sees zeros (default) or undefined tensors for results without a gradient.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  bool needs_input_grad(size_t input) const;
  // Anything else, by name.
  std::map<std::string, Scalar> saved_data;

 private:
  friend class FunctionNode;
  friend TensorList apply_function(
      const TensorList& inputs,
      const std::function<TensorList(FunctionContext&, const TensorList&)>& forward,
      std::function<TensorList(FunctionContext&, const TensorList&)> backward, const char* name);
  TensorList to_save_, non_differentiable_, dirty_;
  bool materialize_grads_ = true;
  class FunctionNode* node_ = nullptr;
};

TensorList apply_function(
    const TensorList& inputs,
    const std::function<TensorList(FunctionContext&, const TensorList&)>& forward,
    std::function<TensorList(FunctionContext&, const TensorList&)> backward, const char* name);

// A differentiable function with a gradient of its own. F has static members
//   TensorList forward(FunctionContext&, const TensorList& inputs)
//   TensorList backward(FunctionContext&, const TensorList& grad_outputs)   // one an input;
//   undefined: zero const char* name
template <class F>
struct Function {
  static TensorList apply(const TensorList& inputs) {
    return apply_function(inputs, F::forward, F::backward, F::name);
  }
};

}  // namespace taeda
