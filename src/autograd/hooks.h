// Hooks on tensors.
#pragma once

#include "autograd/meta.h"

namespace taeda::autograd {

// Runs `hook` on the gradient of `t`: at a leaf's accumulator, or at the node that made `t`.
// RuntimeError for tensors that do not require grad.
void add_tensor_hook(const Tensor& t, Ref<PreHook> hook);
// The same of any tensor: the hook runs once it requires grad.
void keep_tensor_hook(const Tensor& t, Ref<PreHook> hook);
void remove_tensor_hook(const Tensor& t, const PreHook* hook);

// RuntimeError unless `leaf` is a leaf that requires grad.
void add_post_accumulate_hook(const Tensor& leaf, Ref<AccumulateHook> hook);
void remove_post_accumulate_hook(const Tensor& leaf, const AccumulateHook* hook);

}  // namespace taeda::autograd
