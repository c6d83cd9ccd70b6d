// Autograd for operators that a program has registered without a gradient of their own: what their
// kernels call is recorded, and backward through a result that has no history of that says what is
// missing.
#include "autograd/layer.h"
#include "ops/modes.h"

namespace taeda::autograd {
namespace {

TensorList tensors_of(const Stack& stack) {
  TensorList found;
  for (const Value& value : stack) {
    if (value.is_tensor()) found.push_back(value.tensor());
    if (value.is_tensors())
      found.insert(found.end(), value.tensors().begin(), value.tensors().end());
  }
  return found;
}

bool is_among(const TensorList& list, const Tensor& t) {
  for (const Tensor& other : list)
    if (t.is_same(other)) return true;
  return false;
}

void run_below(const Operator& op, KeySet keys, Stack& stack) {
  const TensorList inputs = tensors_of(stack);
  const bool needs = needs_grad(TensorSpan(inputs));
  Ref<Node> node;
  if (needs) node = not_differentiable_node(op.name(), edges(TensorSpan(inputs)));
  op.redispatch(keys - kDifferentiationKeys, stack);
  if (!needs) return;
  for (const Tensor& result : tensors_of(stack))
    if (!is_among(inputs, result) && !result.requires_grad()) mark_not_differentiable(node, result);
}

// One store while the library is loaded: the layer below cannot name this function.
const bool known = (dispatch::set_handler(Key::kAutograd, run_below),
                    dispatch::set_handler(Key::kForward, run_below), true);

}  // namespace
}  // namespace taeda::autograd
