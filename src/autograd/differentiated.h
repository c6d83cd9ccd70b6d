// Whether a gradient is differentiated in turn, also by what stands outside of vmap or
// functionalize: the question that chooses between a gradient in one pass, which has no derivative,
// and its formula.
#pragma once

#include "autograd/forward.h"

namespace taeda::autograd {

// `t` as a tensor of the innermost level of vmap or functionalize, which has a history and tangents
// of its own there: what a transform inside differentiates by.
Tensor lift(const Tensor& t);

template <class... Tensors>
bool differentiated_anywhere(const Tensors&... tensors) {
  return differentiated(tensors...) || (!(thread_modes.included & kLevelKeys).empty() &&
                                        (differentiated_outside_of_level(tensors) || ...));
}

// Whether a gradient is computed by its formula. Under a TorchDispatchMode it is too, which then
// sees operators of PyTorch's, not the table's own of the gradient in one pass.
template <class... Tensors>
bool takes_formula(const Tensors&... tensors) {
  return thread_modes.included.has(Key::kPython) || differentiated_anywhere(tensors...);
}

}  // namespace taeda::autograd
