// In-place operators that change a tensor's layout instead of its values: unsqueeze_, transpose_,
// squeeze_, t_, detach_.
#pragma once

#include "taeda/tensor.h"

namespace taeda::autograd {

// Gives `self` the layout of `view`, a view just made of it, and the view's history. RuntimeError
// for leaves that require grad and for views that may not be written while recording.
Tensor take_layout(std::string_view op, const Tensor& self, const Tensor& view);

}  // namespace taeda::autograd
