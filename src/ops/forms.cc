#include "ops/forms.h"

#include "core/layout.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"
#include "ops/operator.h"

namespace taeda::forms {

using Flags = OperatorRecord::Flags;

namespace {

// out= as it lies when it has the sizes of the index, the last argument, where the record says so:
// it may overlap an argument then.
Tensor as_resized(const OperatorRecord& record, const Tensor& out, Span<const TensorSpan> inputs) {
  const Tensor* index = nullptr;
  for (const TensorSpan list : inputs)
    for (const Tensor& input : list) index = &input;
  if (!index || record.out_shape != OutShape::kIndex) return out;
  const IntSpan sizes = index->sizes();
  if (out.sizes() == sizes) return out;
  return alias_tensor(out, sizes, contiguous_strides(sizes), out.storage_offset());
}

// The record's policy, or what it says of these arguments.
OutPolicy policy_for(const OperatorRecord& record, const Tensor& out, Span<const TensorSpan> inputs,
                     bool of_all) {
  OutPolicy policy = record.out_policy();
  const TensorSpan first = inputs[0];
  if (policy.dtype == OutDtype::kAveraged && of_all)
    TD_CHECK(can_cast(first[0].dtype(), out.dtype()),
             "{}(): input types can't be cast to the desired output type {}",
             short_name(record.name()), scalar_type_name(out.dtype()));
  if (policy.dtype == OutDtype::kDeviation && first[0].is_complex())
    policy.dtype = OutDtype::kCastable;
  const bool of_number = policy.dtype == OutDtype::kAnyNumber;
  if (!of_number && policy.dtype != OutDtype::kOfReal) return policy;
  policy.dtype = OutDtype::kSame;
  for (const TensorSpan list : inputs)
    for (const Tensor& input : list)
      if (of_number ? input.dim() == 0 : input.is_complex()) policy.dtype = OutDtype::kCastable;
  return policy;
}

// An out= of an elementwise operator that has to be resized is laid out as the result, also where
// its dtype is another one, as those of PyTorch's that are not written in terms of others.
void resize_in_order(std::string_view op, const Tensor& out, const Tensor& result,
                     OutPolicy policy) {
  const TensorImpl& r = *result.impl();
  const bool is_row_major = r.contiguous || !is_dense_layout(r.sizes, r.strides);
  if (is_row_major || out.sizes() == result.sizes() || out.device() != result.device()) return;
  check_out_dtype(op, policy.dtype, result.dtype(), out.dtype());
  resize_out(op, out, result.sizes());
  out.impl()->set_layout(DimVector(r.sizes), DimVector(r.strides), out.impl()->offset);
}

}  // namespace

OutPolicy check_outs(const OperatorRecord& record, Tensors outs, Span<const TensorSpan> inputs,
                     bool of_all) {
  const bool exact = record.has(Flags::kOutExactOverlap), none = record.has(Flags::kOutNoOverlap);
  for (const Tensor* out : outs) {
    dispatch::check_out_keys(short_name(record.name()), *out, inputs);
    if (!exact && !none) continue;
    if (none) check_no_internal_overlap(*out);
    const Tensor written = as_resized(record, *out, inputs);
    const auto allowed = none ? dispatch::Overlap::kNone : dispatch::Overlap::kExact;
    for (const TensorSpan list : inputs) {
      dispatch::check_overlap(allowed, written, list);
      for (const Tensor& input : list)  // empty, and an input: both would grow
        TD_CHECK(!none || !out->is_same(input) || out->numel() > 0,
                 "unsupported operation: the input tensor cannot be the written-to tensor, which "
                 "refer to a single memory location. Please clone() the tensor before performing "
                 "the operation.");
    }
  }
  return policy_for(record, *outs[0], inputs, of_all);
}

void write_outs(const OperatorRecord& record, Tensors outs, Tensors results, OutPolicy policy) {
  const bool ordered = record.has(Flags::kElementwise) && policy.shape == OutShape::kWarned;
  for (size_t i = 0; i < outs.size(); i++) {
    if (ordered) resize_in_order(short_name(record.name()), *outs[i], *results[i], policy);
    write_out(short_name(record.name()), *outs[i], *results[i], policy);
  }
}

KeySet excluded(const OperatorRecord& record) {
  return record.autocast == OperatorRecord::kNoRule ? kDifferentiationKeys
                                                    : kDifferentiationKeys | Key::kAutocast;
}

}  // namespace taeda::forms
