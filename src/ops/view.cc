// Views: the hand-written bodies behind ops/shape.yaml. Each computes a layout and aliases the
// storage; the generated code around it tracks the view.
#include <algorithm>

#include "core/layout.h"
#include "op/_unsafe_view.h"
#include "op/alias.h"
#include "op/as_strided.h"
#include "op/broadcast_tensors.h"
#include "op/clone.h"
#include "op/copy_.h"
#include "op/stack.h"
#include "op/view.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/rules.h"
#include "ops/view_rules.h"

namespace taeda::impl {

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, OptInt storage_offset) {
  TD_CHECK(size.size() == stride.size(),
           "as_strided: size {} and stride {} must have the same length", size, stride);
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  TD_CHECK(offset >= 0, "as_strided: storage_offset must be non-negative, got {}", offset);
  for (int64_t s : stride)
    TD_CHECK(s >= 0,
             "as_strided: Negative strides are not supported at the moment, got strides: {}",
             stride);
  const int64_t needed = storage_bytes_needed(size, stride, offset, self.dtype());
  TD_CHECK(needed <= self.storage()->nbytes(),
           "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a "
           "storage size of {} are out of "
           "bounds for storage of size {}",
           size, stride, offset, self.itemsize(), needed, self.storage()->nbytes());
  return alias_tensor(self, size, stride, offset);
}

Tensor alias(const Tensor& self) {
  return alias_tensor(self, self.sizes(), self.strides(), self.storage_offset());
}
Tensor detach(const Tensor& self) { return impl::alias(self); }

Tensor expand(const Tensor& self, IntSpan size, bool) {
  const size_t n = size.size(), m = self.sizes().size();
  TD_CHECK(n >= m,
           "expand: the number of sizes provided ({}) must be greater or equal to the number of "
           "dimensions in the tensor "
           "({})",
           n, m);
  DimVector sizes(n), strides(n);
  for (size_t i = 0; i < n; i++) {
    const size_t k = n - 1 - i;
    int64_t want = size[k];
    if (i < m) {
      const int64_t have = self.sizes()[m - 1 - i];
      if (want == -1) want = have;
      TD_CHECK(want >= 0 && (have == want || have == 1),
               "The expanded size of the tensor ({}) must match the existing size ({}) at "
               "non-singleton dimension {}.  "
               "Target sizes: {}.  Tensor sizes: {}",
               want, have, k, size, self.sizes());
      strides[k] = have == want ? self.strides()[m - 1 - i] : 0;
    } else {
      TD_CHECK(want >= 0,
               "The expanded size of the tensor ({}) isn't allowed in a leading, non-existing "
               "dimension {}",
               want, k);
      strides[k] = want == 1 && m > 0 ? sizes[k + 1] * strides[k + 1] : 0;
    }
    sizes[k] = want;
  }
  checked_numel(sizes);
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor permute(const Tensor& self, IntSpan dims) {
  TD_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
           "permute(sparse_coo): number of dimensions in the tensor input does not match the "
           "length of the desired "
           "ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
           self.dim(), dims.size());
  const DimVector wrapped = contract::wrap_dims("permute", dims, self.dim());
  DimVector sizes(dims.size()), strides(dims.size());
  for (size_t i = 0; i < dims.size(); i++) {
    sizes[i] = self.sizes()[static_cast<size_t>(wrapped[i])];
    strides[i] = self.strides()[static_cast<size_t>(wrapped[i])];
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  DimVector sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    std::swap(sizes[static_cast<size_t>(dim0)], sizes[static_cast<size_t>(dim1)]);
    std::swap(strides[static_cast<size_t>(dim0)], strides[static_cast<size_t>(dim1)]);
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor t(const Tensor& self) { return transpose(self, 0, self.dim() < 2 ? 0 : 1); }

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  const auto d = static_cast<size_t>(dim);
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t at = index < 0 ? index + sizes[d] : index;
  const int64_t offset = self.storage_offset() + at * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return alias_tensor(self, sizes, strides, offset);
}

namespace {
struct Bounds {
  int64_t start, count;
};
// Python's slice rules for a positive step.
Bounds clip(int64_t n, OptInt start, OptInt end, int64_t step) {
  const int64_t a = expr::clamp_index(start.value_or(0), n);
  const int64_t b = std::max(a, expr::clamp_index(end.value_or(expr::kEnd), n));
  return {a, (b - a) / step + ((b - a) % step != 0)};
}
}  // namespace

Tensor slice(const Tensor& self, int64_t dim, OptInt start, OptInt end, int64_t step) {
  const auto d = static_cast<size_t>(dim);
  DimVector sizes(self.sizes()), strides(self.strides());
  const Bounds bounds = clip(sizes[d], start, end, step);
  const int64_t offset = self.storage_offset() + bounds.start * strides[d];
  sizes[d] = bounds.count;
  // A step that cannot be taken twice needs no stride; this keeps huge steps from overflowing.
  if (bounds.count > 1) strides[d] *= step;
  return alias_tensor(self, sizes, strides, offset);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const auto d = static_cast<size_t>(contract::wrap_dim(dim, self.dim() + 1));
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t stride = d < sizes.size() ? sizes[d] * strides[d] : 1;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

namespace {
Tensor squeeze_where(const Tensor& self, IntSpan dims, bool all) {
  DimVector sizes, strides;
  for (int64_t i = 0; i < self.dim(); i++) {
    const auto k = static_cast<size_t>(i);
    const bool asked = all || std::find(dims.begin(), dims.end(), i) != dims.end();
    if (asked && self.sizes()[k] == 1) continue;
    sizes.push_back(self.sizes()[k]);
    strides.push_back(self.strides()[k]);
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}
}  // namespace

Tensor squeeze_all(const Tensor& self) { return squeeze_where(self, {}, true); }
Tensor squeeze_dims(const Tensor& self, IntSpan dim) { return squeeze_where(self, dim, false); }

Tensor view(const Tensor& self, IntSpan size) {
  const DimVector shape = rules::infer_size(size, self.numel());
  const auto strides = rules::view_strides(self.sizes(), self.strides(), shape);
  TD_CHECK(strides.has_value(),
           "view size is not compatible with input tensor's size and stride (at least one "
           "dimension spans across two "
           "contiguous subspaces). Use .reshape(...) instead.");
  return alias_tensor(self, shape, *strides, self.storage_offset());
}

Tensor _unsafe_view(const Tensor& self, IntSpan size) { return view(self, size); }

Tensor view_dtype(const Tensor& self, DType dtype) {
  TD_CHECK(!self.is_conj() || dtype == self.dtype(),
           "torch.Tensor.view is not supported for conjugate view tensors when converting to a "
           "different dtype.");
  TD_CHECK(!self.is_neg() || dtype == self.dtype(),
           "torch.Tensor.view is not supported for tensors with negative bit set when converting "
           "to a different dtype.");
  const std::string_view was = scalar_type_name(self.dtype()), is = scalar_type_name(dtype);
  const int64_t from = self.itemsize(), to = item_size(dtype);
  DimVector sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from != to) {
    TD_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view {} as {} (different element sizes)",
             was, is);
    TD_CHECK(strides.back() == 1,
             "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
             was, is, strides.back());
  }
  if (from > to) {
    const int64_t k = from / to;
    for (size_t i = 0; i + 1 < strides.size(); i++) strides[i] *= k;
    sizes.back() *= k;
    offset *= k;
  } else if (from < to) {
    const int64_t k = to / from;
    TD_CHECK(sizes.back() % k == 0,
             "self.size(-1) must be divisible by {} to view {} as {} (different element sizes), "
             "but got {}",
             k, was, is, sizes.back());
    TD_CHECK(offset % k == 0,
             "self.storage_offset() must be divisible by {} to view {} as {} (different element "
             "sizes), but got {}",
             k, was, is, offset);
    for (size_t i = 0; i + 1 < strides.size(); i++) {
      TD_CHECK(strides[i] % k == 0,
               "self.stride({}) must be divisible by {} to view {} as {} (different element "
               "sizes), but got {}",
               i, k, was, is, strides[i]);
      strides[i] /= k;
    }
    sizes.back() /= k;
    offset /= k;
  }
  auto impl = make_ref<TensorImpl>(self.storage(), dtype, self.device());
  impl->own_version = self.impl()->own_version;
  impl->set_layout(sizes, strides, offset);
  return Tensor(std::move(impl));
}

Tensor reshape(const Tensor& self, IntSpan shape) {
  const DimVector sizes = rules::infer_size(shape, self.numel());
  if (rules::view_strides(self.sizes(), self.strides(), sizes)) return op::view(self, sizes);
  return op::_unsafe_view(op::clone(self, MemoryFormat::kContiguous), sizes);
}

Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step) {
  const int64_t n = self.dim() > 0 ? self.sizes()[static_cast<size_t>(dim)] : 1;
  TD_CHECK(size >= 0, "size is {} but must be >= 0", size);
  TD_CHECK(size <= n, "maximum size for tensor at dimension {} is {} but size is {}", dim, n, size);
  TD_CHECK(step > 0, "step is {} but must be > 0", step);
  DimVector sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    const auto d = static_cast<size_t>(dim);
    sizes.push_back(size);
    strides.push_back(strides[d]);
    sizes[d] = (n - size) / step + 1;
    if (sizes[d] > 1) strides[d] = checked_mul(strides[d], step, "unfold: stride");
  } else {
    sizes.push_back(size);
    strides.push_back(1);
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto a = static_cast<size_t>(dim1), b = static_cast<size_t>(dim2);
  TD_CHECK_INDEX(self.dim() >= 2, "diagonal: expected at least 2 dimensions, got {}", self.dim());
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t rows = sizes[a], columns = sizes[b];
  int64_t length, start = self.storage_offset();
  const bool empty = self.numel() == 0;  // strides beside a 0 may be so large that these overflow
  if (offset >= 0) {
    length = offset >= columns ? 0 : std::min(rows, columns - offset);
    if (length > 0 && !empty) start += offset * strides[b];
  } else {
    length = offset <= -rows ? 0 : std::min(rows + offset, columns);
    if (length > 0 && !empty) start -= offset * strides[a];
  }
  const int64_t stride = strides[a] + strides[b];
  sizes.erase(std::max(a, b));
  sizes.erase(std::min(a, b));
  strides.erase(std::max(a, b));
  strides.erase(std::min(a, b));
  sizes.push_back(length);
  strides.push_back(stride);
  return alias_tensor(self, sizes, strides, start);
}

Tensor view_as_real(const Tensor& self) {
  TD_CHECK(!self.is_conj(),
           "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
           "tensor so you can view it as real, use self.resolve_conj(); however, be warned that "
           "the resulting tensor will NOT alias the original.");
  DimVector sizes(self.sizes()), strides(self.strides());
  for (auto& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  auto impl = make_ref<TensorImpl>(self.storage(), to_real(self.dtype()), self.device());
  impl->own_version = self.impl()->own_version;
  impl->keys = impl->keys | (self.impl()->keys & kMathBits);
  impl->set_layout(sizes, strides, self.storage_offset() * 2);
  return Tensor(std::move(impl));
}

Tensor view_as_complex(const Tensor& self) {
  TD_CHECK(
      is_floating(self.dtype()) && to_real(to_complex(self.dtype())) == self.dtype(),
      "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
      "scalar type: {}",
      scalar_type_name(self.dtype()));
  TD_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
  TD_CHECK(self.sizes().back() == 2, "Tensor must have a last dimension of size 2");
  TD_CHECK(self.strides().back() == 1, "Tensor must have a last dimension with stride 1");
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (auto& s : strides) {
    TD_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  TD_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  auto impl = make_ref<TensorImpl>(self.storage(), to_complex(self.dtype()), self.device());
  impl->own_version = self.impl()->own_version;
  impl->keys = impl->keys | (self.impl()->keys & kMathBits);
  impl->set_layout(sizes, strides, self.storage_offset() / 2);
  return Tensor(std::move(impl));
}

// Parts that do not lie row by row are joined as vectors, in the order of the result.
Tensor complex(const Tensor& real, const Tensor& imag) {
  const Tensor* const parts[] = {&real, &imag};
  const DimVector sizes = broadcast_shapes(real.sizes(), imag.sizes()),
                  strides = elementwise_strides(sizes, parts, {real.dtype()});
  if (is_contiguous_layout(sizes, strides))
    return view_as_complex(op::stack(op::broadcast_tensors(TensorList{real, imag}), -1));
  const auto vector = [&](const Tensor& t) {
    if (t.sizes() == sizes && t.strides() == strides)
      return op::as_strided(t, {t.numel()}, {1}, t.storage_offset());
    const Tensor alike = empty_strided_tensor(sizes, strides, t.dtype(), t.device());
    op::copy_(alike, t, false);
    return op::as_strided(alike, {alike.numel()}, {1}, 0);
  };
  const Tensor joined = view_as_complex(op::stack(TensorList{vector(real), vector(imag)}, -1));
  return alias_tensor(joined, sizes, strides, 0);
}

}  // namespace taeda::impl
