// Everything that generated autograd and forward-mode layers use.
#pragma once

#include <functional>
#include <tuple>

#include "autograd/forward.h"
#include "autograd/record.h"
#include "autograd/steps.h"
#include "ops/last_use.h"

namespace taeda {

using autograd::needs_grad;
using autograd::Node;
using autograd::rebase_history;
using autograd::SavedTensor;
using autograd::set_history;
using autograd::stored;
using autograd::unpacked;

namespace autograd {

// What generated nodes do with their fields, each of which has the name that Python shows.
struct Release {
  [[gnu::always_inline]] void operator()(const char*, SavedTensor& t) const { t.reset(); }
  void operator()(const char*, std::vector<SavedTensor>& list) const {
    for (SavedTensor& t : list) t.reset();
  }
  template <class T>
  [[gnu::always_inline]] void operator()(const char*, T&) const {}
};
struct Show {
  SavedVisitor& visitor;
  template <class T>
  [[gnu::always_inline]] void operator()(const char* name, T& value) const {
    visitor.show(name, value);
  }
};

// Tensors of the same sizes and dtypes without memory: what a gradient that reads no values keeps.
TensorList layouts(TensorSpan tensors);

// The gradients of an operator that returns a list, zeros where one is undefined; empty when all
// are.
TensorList all_gradients(const Node& node, TensorList&& grads);

// Puts the gradients that one formula gives of several tensors, those that are wanted, where `out`
// has them; of a list of tensors, one after the other from an index on.
template <class Gradients, size_t N>
void store(const Node& node, Gradients&& gradients, TensorList& out, const size_t (&indices)[N]) {
  const auto store_one = [&](size_t index, Tensor& gradient) {
    if (node.should_compute(index)) out[index] = std::move(gradient);
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    (store_one(indices[I], std::get<I>(gradients)), ...);
  }
  (std::make_index_sequence<N>());
}
void store_list(TensorList&& gradients, TensorList& out, size_t index, size_t count);

// The gradients of `function`, which maps `inputs` to results, at `inputs`, for the results'
// gradients `gys` (undefined: zero): one an input, undefined for inputs that require none.
// Differentiable where grad mode is on.
TensorList replay(const TensorList& inputs, const TensorList& gys,
                  const std::function<TensorList(const TensorList&)>& function);

// The node of an operator without a gradient, called on tensors that require grad: backward through
// it raises. It has the edges of a real node, so that a search for the way to an input finds it.
Ref<Node> not_differentiable_node(std::string_view op, EdgeList edges);

// The node of an operator whose result has a derivative of zero by all of its arguments.
Ref<Node> zero_gradient_node(const char* name, EdgeList edges);

void mark_not_differentiable(const Ref<Node>& node, const Tensor& result);
Tensor not_differentiable_inplace(const Ref<Node>& node, const Tensor& self);

}  // namespace autograd
}  // namespace taeda
