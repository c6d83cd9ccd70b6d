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

}  // namespace taeda::autograd
