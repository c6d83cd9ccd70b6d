// Whether a gradient is differentiated in turn, also by what stands outside of vmap or
// functionalize: the question that chooses between a gradient in one pass, which has no derivative,
// and its formula.
#pragma once

#include "autograd/forward.h"

namespace taeda::autograd {

// Those whose levels keep apart what is differentiated inside and outside.
inline constexpr KeySet kLevelKeys = KeySet(Key::kBatched) | Key::kFunctionalize;

// Inside of a level: whether what `t` is to the code outside requires grad or carries a tangent.
bool differentiated_outside_of_level(const Tensor& t);
inline bool differentiated_outside_of_level(TensorSpan list) {
  for (const Tensor& t : list)
    if (differentiated_outside_of_level(t)) return true;
  return false;
}

// `t` as a tensor of the innermost level of vmap or functionalize, which has a history and tangents
// of its own there: what a transform inside differentiates by.
Tensor lift(const Tensor& t);

template <class... Tensors>
bool differentiated_anywhere(const Tensors&... tensors) {
  return differentiated(tensors...) || (!(thread_modes.included & kLevelKeys).empty() &&
                                        (differentiated_outside_of_level(tensors) || ...));
}

}  // namespace taeda::autograd
