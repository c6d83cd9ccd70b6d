// Everything that generated autograd and forward-mode layers use.
#pragma once

#include <functional>
#include <tuple>

#include "autograd/forward.h"
#include "autograd/record.h"

namespace taeda {

using autograd::needs_grad;
using autograd::Node;
using autograd::rebase_history;
using autograd::ResultFacts;
using autograd::save_all;
using autograd::SavedTensor;
using autograd::set_history;
using autograd::stored;
using autograd::unpack_all;

namespace autograd {

// A copy of the value that an in-place operator is about to overwrite, with its history.
Tensor copy_for_backward(const Tensor& t);

// The gradients of an operator that returns a list, zeros where one is undefined; empty when all
// are.
TensorList all_gradients(const Node& node, TensorList&& grads);

// The gradients of `function`, which maps `inputs` to results, at `inputs`, for the results'
// gradients `gys` (undefined: zero): one an input, undefined for inputs that require none.
// Differentiable where grad mode is on.
TensorList replay(const TensorList& inputs, const TensorList& gys,
                  const std::function<TensorList(const TensorList&)>& function);

// A result of an operator without a gradient, called on tensors that require grad: backward through
// it raises.
void mark_not_differentiable(std::string_view op, const Tensor& result);
inline void mark_not_differentiable(std::string_view op, const TensorList& results) {
  for (const Tensor& t : results) mark_not_differentiable(op, t);
}
template <class... Ts>
void mark_not_differentiable(std::string_view op, const std::tuple<Ts...>& results) {
  std::apply([&](const auto&... r) { (mark_not_differentiable(op, r), ...); }, results);
}
template <class R>
R not_differentiable(std::string_view op, R result) {
  mark_not_differentiable(op, result);
  return result;
}
Tensor not_differentiable_inplace(std::string_view op, const Tensor& self);

}  // namespace autograd
}  // namespace taeda
