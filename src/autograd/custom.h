// Functions with a gradient written by the user: what C++'s Function and Python's autograd.Function
// share.
#pragma once

#include "autograd/record.h"

namespace taeda::autograd {

// Base of the nodes of user-defined functions.
class CustomNode : public Node {
 public:
  bool materialize_grads = true;
  std::vector<bool> differentiable_outputs;

 protected:
  // Zeros for the undefined gradients of differentiable results, where wanted.
  void materialize(TensorList& grads) const;
};

// Turns what forward returned into results with history. `node` is null when nothing requires grad.
// Inputs returned as they are become views; those marked dirty are rebased; results marked
// non-differentiable are cut off.
TensorList wrap_results(const Ref<CustomNode>& node, const TensorList& inputs, TensorList results,
                        const TensorList& dirty, const TensorList& non_differentiable);

}  // namespace taeda::autograd
