// Gradients of views: the cotangent put back into zeros of the base's shape.
#include <algorithm>
#include <numeric>

#include "core/layout.h"
#include "op/add.h"
#include "op/arange.h"
#include "op/clone.h"
#include "op/copy_.h"
#include "op/diagonal.h"
#include "op/index_add_.h"
#include "op/new_zeros.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/stack.h"
#include "op/unfold.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/expr.h"
#include "ops/rules.h"
#include "ops/view_rules.h"

namespace taeda::impl {

Tensor select_backward(const Tensor& gy, IntSpan sizes, int64_t dim, int64_t index) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::select(gx, dim, index), gy, false);
  return gx;
}
Tensor slice_backward(const Tensor& gy, IntSpan sizes, int64_t dim, OptInt start, OptInt end,
                      int64_t step) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::slice(gx, dim, start, end, step), gy, false);
  return gx;
}
// Where what was unbound is a permuted view of a dense tensor (the query, key and value of one
// product), the gradient can be seen as that tensor without another copy.
Tensor unbind_backward(TensorSpan gy, IntSpan strides, int64_t dim) {
  const auto stride = [&](int64_t d) { return strides[static_cast<size_t>(d)]; };
  DimVector order(strides);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
  if (std::is_sorted(order.begin(), order.end())) return op::stack(gy, dim);
  DimVector parts_order, back(order);
  for (size_t i = 0; i < order.size(); i++) {
    if (order[i] != dim) parts_order.push_back(order[i] - (order[i] > dim));
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  TensorList parts;
  for (const Tensor& g : gy) parts.push_back(op::permute(g, parts_order));
  return op::permute(op::stack(parts, back[static_cast<size_t>(dim)]), back);
}
Tensor diagonal_backward(const Tensor& gy, IntSpan sizes, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::diagonal(gx, offset, dim1, dim2), gy, false);
  return gx;
}
// Windows may overlap, so their cotangents add up.
Tensor unfold_backward(const Tensor& gy, IntSpan sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  const Tensor windows = impl::unfold(gx, dim, size, step);
  for (int64_t i = 0; i < size; i++) {
    const Tensor target = impl::select(windows, windows.dim() - 1, i);
    op::add_inplace(target, op::select(gy, gy.dim() - 1, i), Scalar(int64_t{1}));
  }
  return gx;
}
// The base may itself be strided or overlapping: work on the storage range that it covers.
Tensor as_strided_backward(const Tensor& gy, IntSpan base_size, IntSpan base_stride,
                           int64_t base_offset, IntSpan size, IntSpan stride,
                           OptInt storage_offset) {
  const int64_t offset = storage_offset.value_or(base_offset);
  const int64_t item = item_size(gy.dtype());
  const int64_t needed =
      std::max(storage_bytes_needed(base_size, base_stride, base_offset, gy.dtype()),
               storage_bytes_needed(size, stride, offset, gy.dtype())) /
      item;
  Tensor flat = op::new_zeros(gy, IntSpan({needed}), {});
  Tensor target = alias_tensor(flat, size, stride, offset);
  if (internal_overlap(size, stride) == Overlap::kNo) {
    op::copy_(target, gy, false);
  } else {
    const Tensor index =
        op::reshape(alias_tensor(op::arange(Scalar(needed), DType::kInt64), size, stride, offset),
                    IntSpan({int64_t{-1}}));
    op::index_add_(flat, 0, index, op::reshape(gy, IntSpan({int64_t{-1}})), Scalar(int64_t{1}));
  }
  return op::clone(alias_tensor(flat, base_size, base_stride, base_offset),
                   MemoryFormat::kContiguous);
}

}  // namespace taeda::impl
