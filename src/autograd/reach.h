// What a graph leads to.
#pragma once

#include "taeda/tensor.h"

namespace taeda::autograd {

// Whether the outputs' histories lead to a leaf that requires grad and is none of `known`.
bool reaches_other_leaves(const TensorList& outputs, const TensorList& known);

}  // namespace taeda::autograd
