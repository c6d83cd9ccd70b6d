// Views and in-place writes: how a write through a view reaches its base's history, and the other
// way round.
//
// A view remembers its base (never another view) and its own layout. An operator that writes into a
// view is wrapped in a CopySlices node, which becomes the base's history: the gradient of the
// base's new value goes to its old value outside the view and through the operator inside. Views
// whose memory was written since their history was made get a new one: as_strided of the base. Both
// work on layouts alone, so they need not know how a view was made.
#pragma once

#include "autograd/meta.h"

namespace taeda::autograd {

// Where a view lies in its base's storage.
struct ViewGeometry {
  DimVector sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::kFloat32;
  KeySet bits;  // of kMathBits

  ViewGeometry() = default;
  explicit ViewGeometry(const Tensor& t)
      : sizes(t.sizes()),
        strides(t.strides()),
        offset(t.storage_offset()),
        dtype(t.dtype()),
        bits(t.impl()->keys & kMathBits) {}
};

// Makes (node, output_nr) the history of `t`; null removes it.
void set_gradient_edge(const Tensor& t, Ref<Node> node, uint32_t output_nr);

// The same for a tensor that an operator has just written: retain_grad moves along, hooks stay with
// the old history.
void move_history(const Tensor& t, const Ref<Node>& node, uint32_t output_nr);

// Gives `alias`, which has a view's layout, the history "this part of the result of `base_node`".
void attach_view_history(const Tensor& alias, Node& base_node);

// A view's grad_fn as of its version now. RuntimeError where the view may not follow its base.
Ref<Node> view_grad_fn(const Tensor& view);

// Takes the history of the write `node` into `view` up into its base.
void rebase_view(const Tensor& view, const Ref<Node>& node, uint32_t output_nr);

// RuntimeError when a view's making forbids that it (or, `indirect`, its base) is written under
// grad mode.
void check_view_writable(const Tensor& view, bool indirect);

}  // namespace taeda::autograd
