// The few lines around a dispatch table: collecting keys, and turning tensors into a kernel's
// Views.
#pragma once

#include <vector>

#include "kernels/view.h"
#include "ops/allocate.h"
#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda {

namespace dispatch {

[[gnu::always_inline]] inline KeySet keys(const Tensor& t) {
  return t.defined() ? t.impl()->keys : KeySet();
}
inline KeySet keys(TensorSpan list) {
  KeySet all;
  for (const Tensor& t : list) all = all | keys(t);
  return all;
}
// The keys of a call on this thread; calls without tensors run on the CPU.
[[gnu::always_inline]] inline KeySet effective(KeySet keys) {
  if (keys.empty()) keys = KeySet(Key::kCPU);
  return (keys | thread_modes.included) - thread_modes.excluded;
}

// Those of a call with out=, which is not differentiated: of `out` itself how it is read, and the
// class that answers for it.
[[gnu::always_inline]] inline KeySet effective(KeySet given, const Tensor& out) {
  return (effective(given) - kDifferentiationKeys) |
         ((keys(out) & (kMathBits | Key::kPython)) - thread_modes.excluded);
}

// out= takes no part in autograd, forward mode and vmap. RuntimeError when it or an argument is
// batched or, while recording, requires grad; NotImplementedError when one carries a tangent.
void check_out_keys(std::string_view op, const Tensor& out, Span<const TensorSpan> inputs);
template <class... Inputs>
void check_out(std::string_view op, const Tensor& out, const Inputs&... inputs) {
  const KeySet all = (keys(out) | ... | keys(inputs));
  const KeySet stops = kDifferentiationKeys | Key::kBatched;
  if (!((all | thread_modes.included) & stops).empty()) [[unlikely]] {
    const TensorSpan lists[] = {TensorSpan(&inputs, 1)..., {}};
    check_out_keys(op, out, lists);
  }
}
// Whether a tensor carries a tangent at a level that is seen: autograd, a layer above, puts it in.
void set_tangent_test(bool (*carries_tangent)(const Tensor&));

// For out= of operators that compute first and then copy: RuntimeError where `out` is known to
// overlap an argument as PyTorch does not allow it.
enum class Overlap { kExact, kNone };
void check_overlap(Overlap allowed, const Tensor& out, const Tensor& input);
void check_overlap(Overlap allowed, const Tensor& out, TensorSpan inputs);

}  // namespace dispatch

inline View view_of(const Tensor& t) {
  if (!t.defined()) return {};
  const TensorImpl& impl = *t.impl();
  return {impl.data(), impl.dtype, impl.sizes, impl.strides, impl.numel, true, impl.device};
}

// The same for functions of kernels/cpu that read or write elements themselves: RuntimeError where
// the memory is not the CPU's.
View host_view(const Tensor& t);

// The tensor itself when it is row-major, else a row-major copy; undefined stays undefined.
Tensor dense_input(const Tensor& t);

// Views of a tensor list; keeps row-major copies alive where the kernel wants them.
class ViewList {
 public:
  explicit ViewList(TensorSpan tensors, bool dense = false);
  Span<const View> span() const { return views_; }

 private:
  std::vector<Tensor> kept_;
  std::vector<View> views_;
};

}  // namespace taeda
