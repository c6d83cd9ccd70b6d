// Views whose layouts do not say which part of their base they are: those of tensors without
// memory, of a class with a __torch_dispatch__, which may claim any strides and offset. Each
// remembers the operator that made it, in TensorImpl::wrapped.
#pragma once

#include "taeda/operator.h"

namespace taeda::autograd {

// How a view is made of its base.
class ViewReplay : public RefCounted {
 public:
  // That view of `base`, or of a tensor with the base's sizes.
  virtual Tensor run(const Tensor& base) const = 0;
};
// Null for a view whose layout says it.
Ref<const ViewReplay> replay_of(const Tensor& view);

// Makes `view`, which `op` has made with `arguments` of the first of them, a view that is made anew
// by that operator wherever autograd needs the same part of another tensor. `output`: which one of
// several results it is.
void remember_view(const Tensor& view, const Operator& op, const Stack& arguments, size_t output);

// A tensor of the class of `like` with a layout's sizes and strides, and `like`'s elements.
Tensor copied_to_layout(const Tensor& like, IntSpan sizes, IntSpan strides);
// The same with zeros.
Tensor zeros_in_layout(const Tensor& like, IntSpan sizes, IntSpan strides);
void zero_(const Tensor& t);

}  // namespace taeda::autograd
