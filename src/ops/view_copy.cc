// Views as copies: the bodies behind ops/view_copy.yaml.
#include "op/alias.h"
#include "op/arange.h"
#include "op/as_strided.h"
#include "op/clone.h"
#include "op/copy_.h"
#include "op/detach.h"
#include "op/diagonal.h"
#include "op/expand.h"
#include "op/index_select.h"
#include "op/narrow.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/split.h"
#include "op/split_with_sizes.h"
#include "op/squeeze.h"
#include "op/t.h"
#include "op/transpose.h"
#include "op/unbind.h"
#include "op/unfold.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "op/view_as_complex.h"
#include "op/view_as_real.h"
#include "ops/allocate.h"
#include "ops/contract.h"

namespace taeda::impl {
namespace {
Tensor copied(const Tensor& view) { return op::clone(view, MemoryFormat::kContiguous); }
TensorList copied(TensorList views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}
}  // namespace

Tensor alias_copy(const Tensor& self) { return copied(self); }
Tensor as_strided_copy(const Tensor& self, IntSpan size, IntSpan stride, OptInt storage_offset) {
  return copied(op::as_strided(self, size, stride, storage_offset));
}
// With the memory between and before self's elements, which the other view may show.
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          OptInt storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  TD_CHECK(src.sizes() == size,
           "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
           src.sizes(), size);
  Tensor out;
  if (internal_overlap(self.sizes(), self.strides()) != Overlap::kNo) {
    out = copied(self);
  } else {
    impl::as_strided(self, size, stride, offset);  // refuses what lies outside of the storage
    const int64_t bytes = std::max(
        storage_bytes_needed(self.sizes(), self.strides(), self.storage_offset(), self.dtype()),
        storage_bytes_needed(size, stride, offset, self.dtype()));
    const Tensor memory = copied(alias_tensor(self, {{bytes / self.itemsize()}}, {{1}}, 0));
    out = alias_tensor(memory, self.sizes(), self.strides(), self.storage_offset());
  }
  op::copy_(impl::as_strided(out, size, stride, offset), src, false);
  return out;
}
Tensor detach_copy(const Tensor& self) { return copied(self); }
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(op::diagonal(self, offset, dim1, dim2));
}
Tensor expand_copy(const Tensor& self, IntSpan size, bool implicit) {
  return copied(op::expand(self, size, implicit));
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  // A RuntimeError, as PyTorch raises for such a dim here alone.
  TD_CHECK(
      dim < self.dim(),
      "narrow_copy: Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got "
      "false: dim {} of a tensor of {} dimensions",
      dim, self.dim());
  dim = contract::wrap_dim(dim, self.dim());
  if (!self.is_sparse()) return copied(op::narrow(self, dim, start, length));
  TensorOptions integers(DType::kInt64);
  integers.device = self.device();
  // Of all indices those that a dense tensor's slice would have, which also checks them.
  const Tensor all = op::arange(Scalar(self.size(dim)), integers);
  return op::index_select(self, dim, op::narrow(all, 0, start, length));
}
Tensor permute_copy(const Tensor& self, IntSpan dims) { return copied(op::permute(self, dims)); }
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copied(op::select(self, dim, index));
}
Tensor slice_copy(const Tensor& self, int64_t dim, OptInt start, OptInt end, int64_t step) {
  return copied(op::slice(self, dim, start, end, step));
}
TensorList split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(op::split(self, split_size, dim));
}
TensorList split_with_sizes_copy(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return copied(op::split_with_sizes(self, split_sizes, dim));
}
Tensor squeeze_all_copy(const Tensor& self) { return copied(op::squeeze(self)); }
Tensor squeeze_dims_copy(const Tensor& self, IntSpan dim) {
  return copied(op::squeeze_dim(self, dim));
}
Tensor t_copy(const Tensor& self) { return copied(op::t(self)); }
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(op::transpose(self, dim0, dim1));
}
TensorList unbind_copy(const Tensor& self, int64_t dim) { return copied(op::unbind(self, dim)); }
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(op::unfold(self, dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) { return copied(op::unsqueeze(self, dim)); }
Tensor view_copy(const Tensor& self, IntSpan size) { return copied(op::reshape(self, size)); }
Tensor view_dtype_copy(const Tensor& self, DType dtype) {
  return copied(op::view_dtype(self, dtype));
}
Tensor view_as_complex_copy(const Tensor& self) { return copied(op::view_as_complex(self)); }
Tensor view_as_real_copy(const Tensor& self) { return copied(op::view_as_real(self)); }

}  // namespace taeda::impl
