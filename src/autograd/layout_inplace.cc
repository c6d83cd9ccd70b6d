#include "autograd/layout_inplace.h"

#include "autograd/forward.h"
#include "autograd/record.h"
#include "autograd/view.h"
#include "op/detach.h"
#include "op/detach_.h"

namespace taeda {

namespace autograd {

Tensor take_layout(std::string_view op, const Tensor& self, const Tensor& view) {
  const bool recorded = thread_modes.grad_enabled && requires_grad(self);
  check_inplace(op, self, recorded);
  const Edge history = recorded ? gradient_edge(view) : Edge();
  self.impl()->wrapped = view.impl()->wrapped;
  self.impl()->set_layout(view.sizes(), view.strides(), view.storage_offset());
  self.impl()->bump_version();
  share_tangent(self, view);
  // A view's base stays as it was. A layout that may reach beyond the old one (as_strided_) leaves
  // the view behind its storage's version: its history is made of the base's when it is asked for.
  if (!recorded || (view_base(self).defined() && op == "as_strided_")) return self;
  history.node->set_input_metadata(history.input_nr, self);  // the new sizes
  move_history(self, history.node, history.input_nr);
  self.impl()->view_version = self.impl()->version();
  return self;
}

}  // namespace autograd

Tensor impl::detach_(const Tensor& self) {
  TD_CHECK(!autograd::view_base(self).defined(),
           "Can't detach views in-place. Use detach() instead. If you are using "
           "DistributedDataParallel (DDP) for training, "
           "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
           "hence detach_() cannot be "
           "called on these gradients.");
  // What it stands for in a transform is cut off from the history and the tangents outside.
  TensorImpl& impl = *self.impl();
  if (impl.keys.has(Key::kBatched) || impl.keys.has(Key::kFunctionalize)) {
    const Tensor cut = op::detach(self);
    impl.wrapped = cut.impl()->wrapped;
    if (impl.keys.has(Key::kFunctionalize)) impl.storage = cut.storage();
  }
  if (auto* meta = autograd::meta_of(self)) {
    meta->grad_fn = nullptr;
    meta->output_nr = 0;
    meta->requires_grad = false;
    meta->forward = {};
    autograd::refresh_keys(self.impl());
  }
  return self;
}

}  // namespace taeda
