#include "autograd/custom.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/math.h"
#include "autograd/view.h"
#include "taeda/autograd.h"
#include "taeda/warning.h"

namespace taeda {
namespace autograd {
namespace {

bool contains(const TensorList& list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Tensor& other) { return t.defined() && other.is_same(t); });
}

}  // namespace

void CustomNode::materialize(TensorList& grads) const {
  if (!materialize_grads) return;
  for (size_t i = 0; i < grads.size(); i++) {
    const ResultMetadata& metadata = input_metadata(static_cast<uint32_t>(i));
    if (!grads[i].defined() && metadata.known) grads[i] = metadata.zeros();
  }
}

TensorList wrap_results(const Ref<CustomNode>& node, const TensorList& inputs, TensorList results,
                        const TensorList& dirty, const TensorList& non_differentiable) {
  for (const Tensor& t : dirty) {
    TD_CHECK(contains(results, t),
             "Some elements marked as dirty during the forward method were not returned as output. "
             "The inputs that are "
             "modified inplace must all be outputs of the Function.");
  }
  size_t differentiable_count = 0;
  for (size_t i = 0; i < results.size(); i++) {
    Tensor& y = results[i];
    const uint32_t nr = static_cast<uint32_t>(i);
    if (!y.defined()) {
      if (node) node->set_input_metadata(nr, y);
      continue;
    }
    const bool is_input = contains(inputs, y), is_dirty = contains(dirty, y);
    const bool differentiable = node && !contains(non_differentiable, y) && is_inexact(y.dtype());
    if (node) {
      node->set_input_metadata(nr, y);
      node->differentiable_outputs.resize(results.size());
      node->differentiable_outputs[i] = differentiable;
    }
    if (!differentiable) {
      if (!is_input && y.impl()->view_base && thread_modes.grad_enabled)
        y.impl()->view_flags = kMadeInFunction;
      if (is_input && !is_dirty && !requires_grad(y)) {
        const NoGrad guard;
        y = math::view(y);
      } else if (requires_grad(y) && (is_input || !y.impl()->view_base)) {
        y = math::alias(y);
      }
      continue;
    }
    differentiable_count++;
    if (is_dirty) {
      if (!is_input)
        warn(
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, "
            "there is no need to pass it to mark_dirty().");
      TD_CHECK(!requires_grad(y) || grad_fn(y),
               "a leaf Variable that requires grad has been used in an in-place operation.");
      TD_CHECK(!y.impl()->view_base || results.size() == 1,
               "If your Function modifies inplace an input that is a view of another Tensor, your "
               "Function cannot return more "
               "than one Tensor. This is not supported by the current autograd engine. You should "
               "either make sure the input "
               "is not a view (using .clone() for example) or make your Function only return one "
               "Tensor (potentially "
               "splitting it into two Functions: one doing the inplace that returns a single "
               "Tensor and a second one that "
               "does the other operations).");
      rebase_history(y, node, nr);
      continue;
    }
    if (is_input) {
      const NoGrad guard;
      y = math::view(y);
    }
    set_gradient_edge(y, node, nr);
    if (y.impl()->view_base) {
      y.impl()->view_version = y.version();
      y.impl()->view_flags = kMadeInFunction;
    }
  }
  if (differentiable_count > 1) {
    for (const Tensor& y : results)
      if (y.defined() && (y.impl()->view_flags & kMadeInFunction))
        y.impl()->view_flags = kOneOfSeveral;
  }
  return results;
}

}  // namespace autograd

// The node of a C++ Function.
class FunctionNode final : public autograd::CustomNode {
 public:
  FunctionContext context;
  std::function<TensorList(FunctionContext&, const TensorList&)> backward;
  const char* title = "";
  std::vector<autograd::SavedTensor> saved;

  const char* name() const override { return title; }
  void release_saved() override {
    for (autograd::SavedTensor& t : saved) t.reset();
  }
  TensorList apply(TensorList&& grads) override {
    materialize(grads);
    TensorList out = backward(context, grads);
    const size_t wanted = next_edges().size();
    while (out.size() > wanted && !out.back().defined()) out.pop_back();
    TD_CHECK(out.size() == wanted,
             "function {} returned an incorrect number of gradients (expected {}, got {})", title,
             wanted, out.size());
    return out;
  }
};

TensorList FunctionContext::saved_tensors() const {
  TD_CHECK(node_, "saved_tensors: there are none before forward has returned");
  return autograd::unpack_all_recorded(node_->saved, *node_);
}

bool FunctionContext::needs_input_grad(size_t input) const {
  return node_ && node_->should_compute(input);
}

TensorList apply_function(
    const TensorList& inputs,
    const std::function<TensorList(FunctionContext&, const TensorList&)>& forward,
    std::function<TensorList(FunctionContext&, const TensorList&)> backward, const char* name) {
  Ref<FunctionNode> node;
  FunctionContext unused;
  FunctionContext* context = &unused;
  if (autograd::needs_grad(inputs)) {
    node = make_ref<FunctionNode>();
    node->title = name;
    node->backward = std::move(backward);
    autograd::set_edges(*node, inputs);
    context = &node->context;
    context->node_ = node.get();
  }
  TensorList results;
  {
    const NoGrad guard;
    results = forward(*context, inputs);
  }
  if (node) node->materialize_grads = context->materialize_grads_;
  results = autograd::wrap_results(node, inputs, std::move(results), context->dirty_,
                                   context->non_differentiable_);
  if (node) {
    for (const Tensor& t : context->to_save_) {
      const bool is_result = std::any_of(results.begin(), results.end(), [&](const Tensor& r) {
        return r.defined() && t.defined() && r.is_same(t);
      });
      node->saved.push_back(is_result ? autograd::SavedTensor::output(t, node)
                                      : autograd::SavedTensor::input(t));
    }
    context->to_save_.clear();
    context->dirty_.clear();
    context->non_differentiable_.clear();
  }
  return results;
}

}  // namespace taeda
