// Gradients of views: the cotangent put back into zeros of the base's shape.
#include <algorithm>
#include <numeric>

#include "core/layout.h"
#include "op/add.h"
#include "op/arange.h"
#include "op/clamp_min.h"
#include "op/clone.h"
#include "op/copy_.h"
#include "op/diagonal.h"
#include "op/div.h"
#include "op/index_add_.h"
#include "op/new_ones.h"
#include "op/new_zeros.h"
#include "op/permute.h"
#include "op/real.h"
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
namespace {

// IndexError where `dim`, not counted from the end, is none of these sizes'.
void check_dim(std::string_view op, IntSpan sizes, int64_t dim) {
  TD_CHECK_INDEX(dim >= 0 && dim < static_cast<int64_t>(sizes.size()),
                 "{}: dimension {} of a tensor of size {}", op, dim, sizes);
}

}  // namespace

Tensor select_backward(const Tensor& gy, IntSpan sizes, int64_t dim, int64_t index) {
  check_dim("select_backward", sizes, dim);
  Tensor gx = op::new_zeros(gy, sizes, {});  // refuses sizes below zero
  const int64_t n = gx.size(dim);
  TD_CHECK_INDEX(index >= -n && index < n,
                 "select_backward: index {} out of range for size {} at dimension {}", index, sizes,
                 dim);
  op::copy_(impl::select(gx, dim, index), gy, false);
  return gx;
}
Tensor slice_backward(const Tensor& gy, IntSpan sizes, int64_t dim, OptInt start, OptInt end,
                      int64_t step) {
  check_dim("slice_backward", sizes, dim);
  TD_CHECK(step > 0, "slice_backward: step {}", step);
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::slice(gx, dim, start, end, step), gy, false);
  return gx;
}
// Where what was unbound is a permuted view of a dense tensor (the query, key and value of one
// product), the gradient can be seen as that tensor without another copy.
Tensor unbind_backward(TensorSpan gy, IntSpan strides, int64_t dim) {
  check_dim("unbind_backward", strides, dim);
  const auto ndim = static_cast<int64_t>(strides.size());
  for (const Tensor& g : gy)
    TD_CHECK(g.dim() + 1 == ndim, "unbind_backward: gradients of {} dimensions for {} strides",
             g.dim(), ndim);
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
  check_dim("diagonal_backward", sizes, dim1);
  check_dim("diagonal_backward", sizes, dim2);
  TD_CHECK(dim1 != dim2, "diagonal_backward: dimension {} twice", dim1);
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::diagonal(gx, offset, dim1, dim2), gy, false);
  return gx;
}
// Windows may overlap, so their cotangents add up.
Tensor unfold_backward(const Tensor& gy, IntSpan sizes, int64_t dim, int64_t size, int64_t step) {
  if (!sizes.empty() || dim != 0) check_dim("unfold_backward", sizes, dim);
  Tensor gx = op::new_zeros(gy, sizes, {});
  const Tensor windows = impl::unfold(gx, dim, size, step);
  for (int64_t i = 0; i < size; i++) {
    const Tensor target = impl::select(windows, windows.dim() - 1, i);
    op::add_inplace(target, op::select(gy, gy.dim() - 1, i), Scalar(int64_t{1}));
  }
  return gx;
}

namespace {

// Where the elements of a strided tensor lie in a storage of which only a part is looked at.
struct Layout {
  IntSpan size, stride;
  int64_t offset;

  Tensor in(const Tensor& storage) const { return alias_tensor(storage, size, stride, offset); }
  Tensor values(const Tensor& storage) const {
    return op::clone(in(storage), MemoryFormat::kContiguous);
  }
  bool overlaps() const { return internal_overlap(size, stride) != Overlap::kNo; }
};

// Elements that lie in the same place add up.
void add_to(const Tensor& storage, const Layout& layout, const Tensor& values) {
  if (!layout.overlaps()) return void(op::copy_(layout.in(storage), values, false));
  const DimVector flat{-1};
  TensorOptions integers(DType::kInt64);
  integers.device = storage.device();
  const Tensor index = layout.in(op::arange(Scalar(storage.numel()), integers));
  op::index_add_(storage, 0, op::reshape(index, flat), op::reshape(values, flat),
                 Scalar(int64_t{1}));
}

// A storage as long as both layouts need.
Tensor common_storage(const Tensor& like, const Layout& a, const Layout& b) {
  const int64_t bytes = std::max(storage_bytes_needed(a.size, a.stride, a.offset, like.dtype()),
                                 storage_bytes_needed(b.size, b.stride, b.offset, like.dtype()));
  return op::new_zeros(like, IntSpan({bytes / item_size(like.dtype())}), {});
}

// Moves values from one layout to another. One of the two is the base's: several of its elements in
// one place are one variable, of which each has its share.
Tensor move_values(const Tensor& values, const Layout& from, const Layout& to, const Layout& base) {
  Tensor storage = common_storage(values, from, to);
  add_to(storage, from, values);
  if (base.overlaps()) {
    const Tensor count = op::new_zeros(values, storage.sizes(), {});
    add_to(count, base, op::new_ones(values, base.size, {}));
    storage = op::div(storage, op::clamp_min(op::real(count), Scalar(int64_t{1})));
  }
  return to.values(storage);
}

// A view and the tensor that it was made of, in the part of the storage from the first of both on.
struct Strided {
  Layout base, view;

  Strided(IntSpan base_size, IntSpan base_stride, int64_t base_offset, IntSpan size, IntSpan stride,
          OptInt storage_offset)
      : base{base_size, base_stride, base_offset},
        view{size, stride, storage_offset.value_or(base_offset)} {
    TD_CHECK(base.offset >= 0 && view.offset >= 0,
             "as_strided: storage offsets {} and {}, expected none below 0", base.offset,
             view.offset);
    const int64_t start = std::min(base.offset, view.offset);
    base.offset -= start;
    view.offset -= start;
  }
};

}  // namespace

Tensor as_strided_backward(const Tensor& gy, IntSpan base_size, IntSpan base_stride,
                           int64_t base_offset, IntSpan size, IntSpan stride,
                           OptInt storage_offset) {
  const Strided in(base_size, base_stride, base_offset, size, stride, storage_offset);
  return move_values(gy, in.view, in.base, in.base);
}
Tensor as_strided_values(const Tensor& self, IntSpan base_size, IntSpan base_stride,
                         int64_t base_offset, IntSpan size, IntSpan stride, OptInt storage_offset) {
  const Strided in(base_size, base_stride, base_offset, size, stride, storage_offset);
  return move_values(self, in.base, in.view, in.base);
}

}  // namespace taeda::impl
