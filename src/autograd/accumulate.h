// AccumulateGrad: the node at a leaf; adds what arrives to the leaf's grad.
#pragma once

#include "autograd/meta.h"

namespace taeda::autograd {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf);
  const char* name() const override { return "AccumulateGrad"; }
  TensorList apply(TensorList&& grads) override;
  TensorImpl* leaf() const override { return leaf_.impl(); }
  const Tensor& variable() const { return leaf_; }

 protected:
  void last_release() const override;

 private:
  Tensor leaf_;
};

// The node of a leaf: the one in use, else a new one.
Ref<Node> accumulator_of(const Tensor& leaf);

// After a leaf changed its shape or dtype: graphs recorded from now on get a new node, which checks
// against the new one.
void forget_accumulator(const Tensor& leaf);

// Adds `gradient` to leaf.grad(), taking over its memory where nobody else uses it. Safe from
// several threads.
void accumulate_grad(const Tensor& leaf, Tensor gradient);

// Whether code in Python holds a tensor's Python object; the bindings set it. Without them there is
// none.
extern bool (*is_held_in_python)(const Tensor& t);

}  // namespace taeda::autograd
