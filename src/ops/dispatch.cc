#include "ops/dispatch.h"

#include "core/layout.h"
#include "kernels/copy.h"

namespace taeda {

namespace {

bool (*tangent_test)(const Tensor&) = nullptr;

template <class Test>
bool any_of(const Tensor& out, Span<const TensorSpan> inputs, Test test) {
  bool found = test(out);
  for (const TensorSpan list : inputs)
    for (const Tensor& t : list) found = found || (t.defined() && test(t));
  return found;
}

}  // namespace

void dispatch::set_tangent_test(bool (*carries_tangent)(const Tensor&)) {
  tangent_test = carries_tangent;
}

void dispatch::check_out_keys(std::string_view op, const Tensor& out,
                              Span<const TensorSpan> inputs) {
  KeySet all = keys(out);
  for (const TensorSpan list : inputs) all = all | keys(list);
  TD_CHECK(!all.has(Key::kBatched),
           "vmap: {}(): functions with out=... arguments are not supported inside vmap; use the "
           "result instead",
           op);
  TD_CHECK_IMPLEMENTED(
      thread_modes.excluded.has(Key::kForward) || !any_of(out, inputs, tangent_test),
      "Trying to use forward AD with {}_out that does not support it because it is an out= "
      "function",
      op);
  if (!all.has(Key::kAutograd) || thread_modes.excluded.has(Key::kAutograd)) return;
  TD_CHECK(!thread_modes.grad_enabled ||
               !any_of(out, inputs, [](const Tensor& t) { return t.requires_grad(); }),
           "{}(): functions with out=... arguments don't support automatic differentiation, but "
           "one of the arguments "
           "requires grad.",
           op);
  TD_CHECK(!out.is_inference() || thread_modes.inference,
           "{}(): Inplace update to inference tensor outside InferenceMode is not allowed: out= "
           "was made in it. clone() gives a normal tensor to write into",
           op);
}

void dispatch::check_overlap(Overlap overlap, const Tensor& out, const Tensor& input) {
  if (!input.defined() || out.storage().get() != input.storage().get()) return;
  const bool same_memory = out.numel() == input.numel() && out.dtype() == input.dtype() &&
                           out.is_contiguous() && input.is_contiguous() &&
                           out.storage_offset() == input.storage_offset();
  if (same_memory && overlap == Overlap::kExact) return;  // perhaps in another shape
  if (overlap == Overlap::kNone)
    check_no_overlap(out, input);
  else
    check_no_partial_overlap(out, input);
}
void dispatch::check_overlap(Overlap overlap, const Tensor& out, TensorSpan inputs) {
  for (const Tensor& input : inputs) check_overlap(overlap, out, input);
}

View host_view(const Tensor& t) {
  TD_CHECK(!t.defined() || t.device().is_cpu(), "the elements of a tensor on {} are not the host's",
           t.device());
  return view_of(t);
}

Tensor dense_input(const Tensor& t) {
  if (!t.defined() || t.impl()->contiguous) return t;
  Tensor dense = empty_tensor(t.sizes(), t.dtype(), t.device());
  kernels::copy(view_of(dense), view_of(t));
  return dense;
}

ViewList::ViewList(TensorSpan tensors, bool dense) {
  kept_.reserve(tensors.size());
  views_.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    kept_.push_back(dense ? dense_input(t) : t);
    views_.push_back(view_of(kept_.back()));
  }
}

}  // namespace taeda
