#include "ops/elementwise.h"

#include <algorithm>

#include "core/element_order.h"
#include "core/strides.h"
#include "kernels/copy.h"
#include "ops/dispatch.h"

namespace taeda {

namespace {

constexpr size_t kMaxInputs = 6;
using Layouts = Span<const DimVector>;

// The layout of inputs that have the result's sizes, where all have the same; empty for others.
DimVector common_layout(IntSpan sizes, Layouts strides) {
  const auto all = [&](auto&& is) { return std::ranges::all_of(strides, is); };
  if (all([&](const DimVector& s) { return is_contiguous_layout(sizes, s); }))
    return contiguous_strides(sizes);
  // Of four dimensions only, as PyTorch has it.
  if (sizes.size() == 4 &&
      all([&](const DimVector& s) { return is_channels_last_layout(sizes, s); }))
    return channels_last_strides(sizes);
  const bool equal = all([&](const DimVector& s) { return s == strides[0]; });
  return equal && is_dense_layout(sizes, strides[0]) ? strides[0] : DimVector();
}

// Strides of dimensions of these sizes, seen with the sizes of the result.
DimVector broadcast_strides(IntSpan own, IntSpan strides, IntSpan sizes) {
  DimVector result(sizes.size(), 0);
  const size_t first = sizes.size() - own.size();
  for (size_t i = 0; i < own.size(); i++)
    if (own[i] == sizes[first + i]) result[first + i] = strides[i];
  return result;
}

}  // namespace

DimVector elementwise_strides(IntSpan sizes, Span<const Tensor* const> inputs, Converted to) {
  DimVector strides[kMaxInputs];
  const Layouts all(strides, inputs.size());
  bool broadcast = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    const Tensor& t = *inputs[i];
    const bool kept = t.dtype() == to.dtype || (to.masks && t.dtype() == DType::kBool);
    strides[i] = kept || !t.device().is_cpu() ? DimVector(t.strides())
                                              : preserved_strides(t.sizes(), t.strides());
    broadcast |= t.sizes() != sizes;
  }
  if (!broadcast) {
    const DimVector common = common_layout(sizes, all);
    if (common.size() == sizes.size()) return common;
  }
  for (size_t i = 0; i < inputs.size(); i++)
    strides[i] = broadcast_strides(inputs[i]->sizes(), strides[i], sizes);
  return elementwise_strides(sizes, all);
}

Tensor ordered_input(const Tensor& t, const Tensor& result) {
  if ((t.is_contiguous() && result.is_contiguous()) || t.strides() == result.strides()) return t;
  Tensor ordered = empty_strided_tensor(t.sizes(), result.strides(), t.dtype(), t.device());
  kernels::copy(view_of(ordered), view_of(t));
  return ordered;
}

DimVector rules::elementwise_strides(const Tensor& a) {
  const Tensor* const inputs[] = {&a};
  return taeda::elementwise_strides(a.sizes(), inputs, {a.dtype()});
}

DimVector rules::elementwise_strides(const Tensor& a, const Tensor& b) {
  const Tensor* const inputs[] = {&a, &b};
  return taeda::elementwise_strides(a.sizes(), inputs, {a.dtype()});
}

}  // namespace taeda
