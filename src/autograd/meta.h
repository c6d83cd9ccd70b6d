// AutogradMeta: what autograd knows of one tensor. Hangs on TensorImpl::autograd once there is
// something to know.
//
// The key kAutograd is in a tensor's keys exactly when it requires grad, is a differentiable view
// (its base may start to require grad at any time) or is an inference tensor (which must not be
// saved or changed outside inference mode). kForward is there when it carries a tangent, or is a
// view made in forward mode, whose base may be given one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "autograd/node.h"
#include "base/spin_lock.h"

namespace taeda::autograd {

// TensorImpl::view_flags. How a view came about decides whether it may be written in place.
enum ViewFlags : uint32_t {
  kMadeWithoutGrad = 1,  // under no_grad
  kMadeInInference = 2,  // under inference_mode, of a normal tensor
  kOneOfSeveral = 4,     // split, unbind, chunk: the operator returned several views
  kMadeInFunction = 8,   // returned by a custom Function
};

class AccumulateGrad;

struct TensorHooks {
  std::vector<Ref<PreHook>> pre_hooks;  // of a leaf; those of other tensors hang on their grad_fn
  std::vector<Ref<AccumulateHook>> post_accumulate;
};

// The tangents of a tensor, one a level of forward mode, shared with the aliases of it that nodes
// have saved.
class TangentSlot final : public RefCounted {
 public:
  ~TangentSlot() override;
  // Undefined where there is none.
  Tensor at(uint64_t level) const;
  void put(uint64_t level, Tensor tangent);
  Tensor take(uint64_t level);
  // The highest level below `limit` with a tangent; 0 where there is none.
  uint64_t highest_below(uint64_t limit) const;
  bool empty() const;

 private:
  bool listed_ = false;                                // a level may list this slot
  mutable SpinLock lock_;                              // taken after that of the levels
  std::vector<std::pair<uint64_t, Tensor>> tangents_;  // in the order of levels
};

// The grad of a tensor with retain_grad(), shared with the hook that fills it.
class GradSlot final : public RefCounted {
 public:
  std::mutex mutex;
  Tensor grad;
};

struct AutogradMeta final : AutogradMetaBase {
  ~AutogradMeta() override;

  Tensor grad;  // of a leaf
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of a leaf; other tensors require grad by having a grad_fn
  mutable SpinLock lock;       // guards accumulator
  AccumulateGrad* accumulator = nullptr;  // borrowed: it clears this when it dies
  std::unique_ptr<TensorHooks> hooks;
  Ref<GradSlot> retained;  // retain_grad() was called
  Ref<TangentSlot> forward;
  uint64_t follows_below = ~uint64_t{0};  // of a view: up to which level it has its base's tangents

  static void* operator new(size_t size);
  static void operator delete(void* object);
};

inline AutogradMeta* meta_of(const TensorImpl* impl) {
  return static_cast<AutogradMeta*>(impl->autograd.get());
}
inline AutogradMeta* meta_of(const Tensor& t) { return meta_of(t.impl()); }
AutogradMeta& make_meta(TensorImpl* impl);

// Sets or clears kAutograd as the rule above says.
void refresh_keys(TensorImpl* impl);

}  // namespace taeda::autograd
