// Automatic differentiation: gradients, and the modes that switch recording.
//
// Operators on tensors that require grad record a graph; backward() and grad() walk it. Both may be
// called from several threads at once. Modes hold for the calling thread until the end of the
// scope.
//
//   Tensor x = tensor({1.0, 2.0, 3.0}).requires_grad_();
//   TensorList g = grad({(x * x).sum()}, {x});
//   assert(equal(g[0], tensor({2.0, 4.0, 6.0})));
//   { NoGrad guard; x -= 0.5 * g[0]; }
//   assert(x.sum().item<float>() == 0);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda {

// Accumulates d(sum(tensors . grad_tensors))/d(leaf) into the leaf's grad(), for all leaves or
// those of `inputs`. grad_tensors may be left out for one-element tensors.
//
// The graph is freed while it is walked, and a second pass over it is a RuntimeError, unless
// retain_graph. With create_graph the gradients can be differentiated again. RuntimeError also for
// tensors that do not require grad, for grad_tensors of other sizes, and where a tensor that the
// gradient reads was written in place since.
//
//   Tensor w = tensor({2.0}).requires_grad_();
//   backward({w * 3, w * 4}, {tensor({1.0}), tensor({10.0})});
//   assert(w.grad().item<float>() == 43);
void backward(const TensorList& tensors, const TensorList& grad_tensors = {},
              bool retain_graph = false, bool create_graph = false, const TensorList& inputs = {});

// How grad() goes about it; each is as in torch.autograd.grad.
struct GradOptions {
  bool retain_graph = false;  // keep the graph for another pass
  bool create_graph = false;  // record the gradients, too: for second derivatives
  // An input that the outputs do not depend on has an undefined gradient instead of being a
  // RuntimeError.
  bool allow_unused = false;
  bool materialize_grads = false;  // zeros instead of undefined; with allow_unused only
};
// d(sum(outputs . grad_outputs))/d(input) for each input, of its sizes and dtype; leaves' grad()
// stays untouched. Errors are those of backward(), and RuntimeError for an input that does not
// require grad or that the outputs do not depend on (see GradOptions).
//
//   Tensor x = tensor({3.0}).requires_grad_();
//   Tensor dy = grad({x * x * x}, {x}, {}, {.create_graph = true})[0];
//   assert(dy.item<float>() == 27);
//   assert(grad({dy}, {x})[0].item<float>() == 18);
TensorList grad(const TensorList& outputs, const TensorList& inputs,
                const TensorList& grad_outputs = {}, GradOptions options = {});

// Switches recording on or off for the calling thread until the end of the scope. Results made
// while it is off require no grad; views made then may not be written in place later while it is
// on.
//
//   const Tensor x = ones({2}).requires_grad_();
//   const GradMode off(false);
//   assert(!(x * 2).requires_grad());
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
// For evaluation, and for writing parameters in place.
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};
// Recording within a NoGrad scope.
struct EnableGrad : GradMode {
  EnableGrad() : GradMode(true) {}
};

// Nothing is recorded, and tensors made here have no version counter and can take no part in
// recording later: faster than NoGrad for many small operators. RuntimeError where such a tensor is
// saved for backward or gets requires_grad outside of the scope; a clone() of it may.
//
//   Tensor y;
//   { const InferenceMode guard; y = ones({2}) * 2; }
//   assert(y.is_inference() && !y.requires_grad());
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

// Finds the source of errors and NaNs in backward: records where each operator was called, and
// names that place when its gradient raises or, with check_nan, holds a NaN. For the whole process,
// and slow: every operator captures a stack.
struct AnomalyMode {
  static bool enabled();
  static bool checks_nan();
  static void set(bool enabled, bool check_nan = true);
};

// Calls `hook` with the gradient of `t` each time it is computed, on the thread of backward; a
// defined result replaces it. Hooks run in the order of registration. Returns a number for
// remove_hook. RuntimeError for tensors that do not require grad.
//
//   Tensor x = ones({2}).requires_grad_();
//   const uint64_t id = register_hook(x, [](const Tensor& g) { return g * 10; });
//   x.sum().backward();
//   assert(x.grad().sum().item<float>() == 20);
//   remove_hook(x, id);
using GradHook = std::function<Tensor(const Tensor& grad)>;
uint64_t register_hook(const Tensor& t, GradHook hook);
void remove_hook(const Tensor& t, uint64_t id);

// What a custom Function keeps between forward and backward; one for each call.
class FunctionContext {
 public:
  // Tensors that are arguments or results of forward.
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  // In backward: what was saved. RuntimeError when one was modified in place since, and when the
  // graph has been freed.
  TensorList saved_tensors() const;
  // Results that require no grad: indices, for example.
  void mark_non_differentiable(const TensorList& outputs) { non_differentiable_ = outputs; }
  // Arguments that forward changed in place; it returns them.
  void mark_dirty(const TensorList& inputs) { dirty_ = inputs; }
  // Whether backward sees zeros (the default) or undefined tensors for results without a gradient.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  // In backward: whether anybody wants the gradient of that input. Others may stay undefined.
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

// Function::apply for functions that are no members of a class. `forward` runs once, unrecorded;
// `backward` is kept with the graph and must own what it captures.
TensorList apply_function(
    const TensorList& inputs,
    const std::function<TensorList(FunctionContext&, const TensorList&)>& forward,
    std::function<TensorList(FunctionContext&, const TensorList&)> backward, const char* name);

// A differentiable function with a gradient of its own. F has the static members forward (inputs to
// results, unrecorded), backward (gradients of the results to those of the inputs, one an input,
// undefined for zero) and name, which stands in messages and in the graph. Second derivatives are
// those of what backward computes.
//
//   struct Cube {
//     static TensorList forward(FunctionContext& context, const TensorList& inputs) {
//       context.save_for_backward(inputs);
//       return {inputs[0] * inputs[0] * inputs[0]};
//     }
//     static TensorList backward(FunctionContext& context, const TensorList& grads) {
//       const Tensor x = context.saved_tensors()[0];
//       return {grads[0] * 3 * x * x};
//     }
//     static const char* title() { return "Cube"; }
//   };
//   Tensor x = tensor({2.0}).requires_grad_();
//   apply_function({x}, Cube::forward, Cube::backward, Cube::title())[0].backward();
//   assert(x.grad().item<float>() == 12);
template <class F>
struct Function {
  static TensorList apply(const TensorList& inputs) {
    return apply_function(inputs, F::forward, F::backward, F::name);
  }
};

}  // namespace taeda
