// A tensor that is read for the last time: a pointwise operator may write its result over it.
//
// Backward formulas say so of the gradient they were given (gen/nodes.py). Where nobody else holds
// that gradient, the operator runs as its in-place form would: backward through an activation then
// touches one tensor less, and a training step needs one buffer less. Of the calling thread, until
// the end of the expression; costs two stores.
#pragma once

#include "taeda/tensor.h"

namespace taeda {

class LastUse {
 public:
  explicit LastUse(const Tensor& tensor, bool last = true) : tensor(tensor) {
    expiring_ = last ? tensor.impl() : nullptr;
  }
  ~LastUse() { expiring_ = nullptr; }
  LastUse(const LastUse&) = delete;
  LastUse& operator=(const LastUse&) = delete;

  // Whether the memory of `t` is free for a dense result of its sizes and dtype.
  static bool frees(const Tensor& t) { return t.impl() == expiring_ && owned_alone(t); }

  const Tensor& tensor;

 private:
  static bool owned_alone(const Tensor& t);

  static constinit thread_local const TensorImpl* expiring_
      __attribute__((tls_model("initial-exec")));
};

}  // namespace taeda
