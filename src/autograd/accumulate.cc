#include "autograd/accumulate.h"

#include <limits>
#include <mutex>

#include "autograd/math.h"
#include "autograd/record.h"
#include "base/fork.h"
#include "core/layout.h"
#include "core/sparse.h"
#include "taeda/autograd.h"

namespace taeda::autograd {
namespace {

using Guard = std::lock_guard<SpinLock>;

// Two threads may run backward into the same leaf. Leaves share a few locks.
constexpr size_t kLocks = 64;
struct GradLocks {
  GradLocks() {
    for (std::mutex& m : mutexes) protect_over_fork(m);
  }
  std::mutex mutexes[kLocks];
};
std::mutex& grad_lock(const TensorImpl* leaf) {
  static GradLocks& locks = *new GradLocks;
  return locks.mutexes[reinterpret_cast<uintptr_t>(leaf) / 256 % kLocks];
}

// The strides that a grad should have: the leaf's where it is dense, else row-major. Its memory is
// what it reads.
bool has_leaf_layout(const Tensor& gradient, const Tensor& leaf) {
  if (gradient.is_conj() || gradient.is_neg()) return false;
  if (gradient.is_sparse()) return true;
  if (!leaf.is_sparse() && is_dense_layout(leaf.sizes(), leaf.strides())) {
    return gradient.strides() == leaf.strides() ||
           (gradient.is_contiguous() && leaf.is_contiguous());
  }
  return gradient.is_contiguous();
}

Tensor with_leaf_layout(const Tensor& gradient, const Tensor& leaf) {
  if (gradient.is_sparse() || leaf.is_sparse()) return math::clone(gradient);
  const bool dense = is_dense_layout(leaf.sizes(), leaf.strides());
  return math::clone_with_strides(
      gradient, dense ? DimVector(leaf.strides()) : contiguous_strides(leaf.sizes()));
}

// Whether the caller's handle is the only use of this memory.
bool owned_alone(const Tensor& t) {
  if (t.impl()->use_count() != 1) return false;
  if (!t.is_sparse()) return t.storage() && t.storage()->use_count() == 1;
  const SparseParts& parts = sparse_parts(t);
  return parts.use_count() == 1 && parts.indices.is_contiguous() && parts.values.is_contiguous();
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor leaf) : leaf_(std::move(leaf)) {
  set_input_metadata(0, leaf_);
  set_sequence(std::numeric_limits<uint64_t>::max());  // before everything else that is ready
}

bool (*is_held_in_python)(const Tensor& t) = [](const Tensor&) { return false; };

void AccumulateGrad::last_release() const {
  AutogradMeta& meta = *meta_of(leaf_);
  {
    const Guard lock(meta.lock);
    if (meta.accumulator == this) meta.accumulator = nullptr;
  }
  Node::last_release();
}

Ref<Node> accumulator_of(const Tensor& leaf) {
  AutogradMeta& meta = make_meta(leaf.impl());
  {
    const Guard lock(meta.lock);
    if (meta.accumulator && try_retain(meta.accumulator)) return Ref<Node>::adopt(meta.accumulator);
  }
  // Made outside of the lock: in anomaly mode it looks at Python's stack.
  Ref<AccumulateGrad> fresh = make_ref<AccumulateGrad>(leaf);
  const Guard lock(meta.lock);
  if (meta.accumulator && try_retain(meta.accumulator)) return Ref<Node>::adopt(meta.accumulator);
  meta.accumulator = fresh.get();
  return fresh;
}

void forget_accumulator(const Tensor& leaf) {
  AutogradMeta* meta = meta_of(leaf);
  if (!meta) return;
  const Guard lock(meta->lock);
  meta->accumulator = nullptr;
}

// Whether nobody else uses a tensor whose class answers for its operators but its Python object.
static bool is_only_use_of_class(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  return impl.keys.has(Key::kPython) && impl.use_count() <= (impl.python_object() ? 2 : 1);
}

// Whether nobody else uses a tensor, and its memory, that a TorchDispatchMode has seen and let go.
static bool is_let_go(const Tensor& t) {
  return t.impl()->python_object() && t.impl()->use_count() == 2 && t.storage() &&
         t.storage()->use_count() == 1 && !is_held_in_python(t);
}

// What a leaf keeps: where Python has seen the gradient, another tensor of the same memory.
static Tensor own(const Tensor& t) {
  return t.impl()->keys.has(Key::kPython) || t.impl()->python_object() ? math::alias(t) : t;
}

// Where operators may run Python code, which must not happen under the lock: that code waits for
// the GIL, whose holder may wait for the lock. Of two threads that do this at once for one leaf,
// one may lose its gradient.
static void accumulate_by_dispatch(const Tensor& leaf, AutogradMeta& meta, Tensor gradient) {
  Tensor grad;
  {
    const std::lock_guard<std::mutex> lock(grad_lock(leaf.impl()));
    grad = meta.grad;
  }
  const bool keeps = is_only_use_of_class(gradient) || owned_alone(gradient) || is_let_go(gradient);
  if (!grad.defined() && thread_modes.grad_enabled)
    grad = math::clone(gradient);
  else if (!grad.defined())
    grad = keeps && has_leaf_layout(gradient, leaf) ? own(gradient) : math::clone(gradient);
  else if (thread_modes.grad_enabled || (grad.is_sparse() && !gradient.is_sparse()))
    grad = math::add(grad, gradient);
  else
    math::accumulate(grad, gradient);
  const std::lock_guard<std::mutex> lock(grad_lock(leaf.impl()));
  meta.grad = std::move(grad);
}

void accumulate_grad(const Tensor& leaf, Tensor gradient) {
  AutogradMeta& meta = make_meta(leaf.impl());
  const bool differentiable = thread_modes.grad_enabled;
  if ((gradient.impl()->keys | thread_modes.included).has(Key::kPython)) [[unlikely]]
    return accumulate_by_dispatch(leaf, meta, std::move(gradient));
  std::lock_guard<std::mutex> lock(grad_lock(leaf.impl()));
  if (!meta.grad.defined()) {
    if (!differentiable && owned_alone(gradient) && has_leaf_layout(gradient, leaf)) {
      meta.grad = std::move(gradient);
    } else {
      meta.grad = with_leaf_layout(gradient, leaf);
    }
  } else if (differentiable || (meta.grad.is_sparse() && !gradient.is_sparse())) {
    meta.grad = math::add(meta.grad, gradient);
  } else {
    math::accumulate(meta.grad, gradient);
  }
}

TensorList AccumulateGrad::apply(TensorList&& grads) {
  Tensor gradient = std::move(grads[0]);
  if (!gradient.defined()) return {};
  // A leaf that no longer requires grad, or became part of a graph by an in-place operator, is left
  // alone.
  AutogradMeta* meta = meta_of(leaf_);
  if (!meta || !requires_grad(leaf_)) return {};
  accumulate_grad(leaf_, std::move(gradient));
  if (meta->hooks && !meta->hooks->post_accumulate.empty()) {
    const auto hooks = meta->hooks->post_accumulate;  // a hook may remove itself
    for (const Ref<AccumulateHook>& hook : hooks) hook->run(leaf_);
  }
  return {};
}

}  // namespace taeda::autograd
