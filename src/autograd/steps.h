// Nodes that are one step here and several in PyTorch's graph.
//
// A fused operator records one node: Linear is one, where PyTorch transposes the weight, views the
// input as a matrix, multiplies, and views the result. Who only calls backward pays for one. When a
// Python program first looks at such a node, show_steps() puts PyTorch's nodes in its place: the
// node keeps its identity, hooks and results, and hands what it saved, and its work, to the steps
// (NodeExtras::steps), whose edges and saved attributes are seen from then on and through which the
// engine goes, so hooks on them run. The gradients are computed by the same formulas as before.
// While a backward pass runs anywhere, graphs stay as they are.
#pragma once

#include "autograd/saved.h"

namespace taeda::autograd {

// Puts the steps of `node` in its place where it has some, once, unless a pass runs. Called under
// Python's lock.
void show_steps(Node& node);

// A backward pass runs: no graph changes.
class PassScope {
 public:
  PassScope();
  ~PassScope();
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
};

// The steps of linear, which `node` recorded: view, addmm or mm, and before that the weight's
// transpose and the input's view. `linear` has taken over the node's edges (input, weight, bias)
// and what it saved, `input` and `weight`.
Ref<Node> linear_steps(const Node& node, Ref<Node> linear, SavedTensor& input, SavedTensor& weight);
// Whether the sizes are known that these need: of the result, and where the edges lead.
bool has_linear_steps(const Node& node);

// The base of linear's node N (`steps: LinearSteps` in its entry).
template <class N>
struct LinearSteps : Node {
  Ref<Node> make_steps() override {
    N& self = static_cast<N&>(*this);
    if (self.weight__dim != 2 || !has_linear_steps(self)) return {};
    Ref<N> linear = make_ref<N>();
    linear->input_ = std::move(self.input_);
    linear->weight_ = std::move(self.weight_);
    linear->weight__dim = self.weight__dim;
    linear->bias__sizes = self.bias__sizes;
    linear->title = self.title;
    linear->set_sequence(sequence());
    linear->set_next_edges(std::move(edges_to_fill()));
    SavedTensor &input = linear->input_, &weight = linear->weight_;
    return linear_steps(self, std::move(linear), input, weight);
  }
};

}  // namespace taeda::autograd
