// Views and shape changes: the hand-written bodies behind ops/shape.yaml. Bodies of views compute a layout and alias
// the storage; the generated code around them tracks the view.
#include <algorithm>

#include "core/layout.h"
#include "op_impl.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/expr.h"
#include "ops/rules.h"
#include "taeda/ops.h"

namespace taeda {

namespace rules {

DimVector inverse_permutation(IntSpan dims) {
  DimVector inverse(dims.size());
  const int64_t n = static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < n; i++) inverse[static_cast<size_t>(contract::wrap_dim(dims[static_cast<size_t>(i)], n))] = i;
  return inverse;
}

bool is_true(const Tensor& flag) { return flag.item_scalar().to_bool(); }

namespace {

// Replaces one -1 by what the others leave of `numel`.
DimVector infer_size(IntSpan shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < out.size(); i++) {
    if (out[i] == -1) {
      TD_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
    } else {
      TD_CHECK(out[i] >= 0, "invalid shape dimension {}", out[i]);
      known = checked_mul(known, out[i], "shape");
    }
  }
  if (unknown >= 0) {
    TD_CHECK(known != 0,
             "cannot reshape tensor of {} elements into shape {} because the unspecified dimension size -1 can be any "
             "value and is ambiguous",
             numel, shape);
    TD_CHECK(numel % known == 0, "shape '{}' is invalid for input of size {}", shape, numel);
    out[static_cast<size_t>(unknown)] = numel / known;
  } else {
    TD_CHECK(known == numel, "shape '{}' is invalid for input of size {}", shape, numel);
  }
  return out;
}

// Strides that show `self`'s elements in order with the new sizes without copying, if there are any. Old dimensions are
// joined into runs that are contiguous in memory; each run must be cut into whole new dimensions.
std::optional<DimVector> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape) {
  DimVector out(shape.size());
  if (checked_numel(sizes) == 0) return contiguous_strides(shape);
  int64_t v = static_cast<int64_t>(shape.size()) - 1;
  int64_t run = 1, chunk_stride = strides.empty() ? 1 : strides.back();
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; d--) {
    const auto i = static_cast<size_t>(d);
    run *= sizes[i];
    const bool ends = d == 0 || (sizes[i - 1] != 1 && strides[i - 1] != run * chunk_stride);
    if (!ends) continue;
    int64_t filled = 1;
    while (v >= 0 && (filled < run || shape[static_cast<size_t>(v)] == 1)) {
      out[static_cast<size_t>(v)] = filled * chunk_stride;
      filled *= shape[static_cast<size_t>(v)];
      v--;
    }
    if (filled != run) return std::nullopt;
    if (d > 0) {
      chunk_stride = strides[i - 1];
      run = 1;
    }
  }
  if (sizes.empty()) {
    for (; v >= 0; v--) out[static_cast<size_t>(v)] = 1;
  }
  return v == -1 ? std::optional(out) : std::nullopt;
}

}  // namespace
}  // namespace rules

namespace impl {

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, OptInt storage_offset) {
  TD_CHECK(size.size() == stride.size(), "as_strided: size {} and stride {} must have the same length", size, stride);
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  TD_CHECK(offset >= 0, "as_strided: storage_offset must be non-negative, got {}", offset);
  for (int64_t s : stride)
    TD_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: {}", stride);
  const int64_t needed = storage_bytes_needed(size, stride, offset, self.dtype());
  TD_CHECK(self.is_meta() || needed <= self.storage()->nbytes(),
           "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size of {} are out of "
           "bounds for storage of size {}",
           size, stride, offset, self.itemsize(), needed, self.storage()->nbytes());
  return alias_tensor(self, size, stride, offset);
}

Tensor alias(const Tensor& self) { return alias_tensor(self, self.sizes(), self.strides(), self.storage_offset()); }
Tensor detach(const Tensor& self) { return impl::alias(self); }

Tensor expand(const Tensor& self, IntSpan size, bool) {
  const size_t n = size.size(), m = self.sizes().size();
  TD_CHECK(n >= m,
           "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor "
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
               "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}.  "
               "Target sizes: {}.  Tensor sizes: {}",
               want, have, k, size, self.sizes());
      strides[k] = have == want ? self.strides()[m - 1 - i] : 0;
    } else {
      TD_CHECK(want >= 0,
               "The expanded size of the tensor ({}) isn't allowed in a leading, non-existing dimension {}", want, k);
    }
    sizes[k] = want;
  }
  checked_numel(sizes);
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor permute(const Tensor& self, IntSpan dims) {
  TD_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
           "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
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
           "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
           "contiguous subspaces). Use .reshape(...) instead.");
  return alias_tensor(self, shape, *strides, self.storage_offset());
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  const int64_t from = self.itemsize(), to = item_size(dtype);
  DimVector sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from != to) {
    TD_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view {} as {} (different element sizes)", self.dtype(), dtype);
    TD_CHECK(strides.back() == 1 || sizes.back() == 1,
             "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}", self.dtype(), dtype,
             strides.back());
  }
  if (from > to) {
    const int64_t k = from / to;
    for (size_t i = 0; i + 1 < strides.size(); i++) strides[i] *= k;
    sizes.back() *= k;
    offset *= k;
  } else if (from < to) {
    const int64_t k = to / from;
    TD_CHECK(sizes.back() % k == 0, "self.size(-1) must be divisible by {} to view {} as {}, but got {}", k, self.dtype(),
             dtype, sizes.back());
    TD_CHECK(offset % k == 0, "self.storage_offset() must be divisible by {} to view {} as {}, but got {}", k,
             self.dtype(), dtype, offset);
    for (size_t i = 0; i + 1 < strides.size(); i++) {
      TD_CHECK(strides[i] % k == 0, "self.stride({}) must be divisible by {} to view {} as {}, but got {}", i, k,
               self.dtype(), dtype, strides[i]);
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
  return op::view(op::clone(self, MemoryFormat::kContiguous), sizes);
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
  if (offset >= 0) {
    length = offset >= columns ? 0 : std::min(rows, columns - offset);
    if (length > 0) start += offset * strides[b];
  } else {
    length = offset <= -rows ? 0 : std::min(rows + offset, columns);
    if (length > 0) start -= offset * strides[a];
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
  DimVector sizes(self.sizes()), strides(self.strides());
  for (auto& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  auto impl = make_ref<TensorImpl>(self.storage(), to_real(self.dtype()), self.device());
  impl->own_version = self.impl()->own_version;
  impl->set_layout(sizes, strides, self.storage_offset() * 2);
  return Tensor(std::move(impl));
}

Tensor view_as_complex(const Tensor& self) {
  TD_CHECK(self.dtype() == DType::kFloat32 || self.dtype() == DType::kFloat64,
           "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: {}",
           scalar_type_name(self.dtype()));
  TD_CHECK(self.dim() > 0 && self.sizes().back() == 2, "Tensor must have a last dimension of size 2");
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
  impl->set_layout(sizes, strides, self.storage_offset() / 2);
  return Tensor(std::move(impl));
}

// --- gradients of views: the cotangent put back into zeros of the base's shape ---

Tensor select_backward(const Tensor& gy, IntSpan sizes, int64_t dim, int64_t index) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::select(gx, dim, index), gy, false);
  return gx;
}
Tensor slice_backward(const Tensor& gy, IntSpan sizes, int64_t dim, OptInt start, OptInt end, int64_t step) {
  Tensor gx = op::new_zeros(gy, sizes, {});
  op::copy_(impl::slice(gx, dim, start, end, step), gy, false);
  return gx;
}
Tensor diagonal_backward(const Tensor& gy, IntSpan sizes, int64_t offset, int64_t dim1, int64_t dim2) {
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
Tensor as_strided_backward(const Tensor& gy, IntSpan base_size, IntSpan base_stride, int64_t base_offset, IntSpan size,
                           IntSpan stride, OptInt storage_offset) {
  const int64_t offset = storage_offset.value_or(base_offset);
  const int64_t item = item_size(gy.dtype());
  const int64_t needed = std::max(storage_bytes_needed(base_size, base_stride, base_offset, gy.dtype()),
                                  storage_bytes_needed(size, stride, offset, gy.dtype())) / item;
  Tensor flat = op::new_zeros(gy, IntSpan({needed}), {});
  Tensor target = alias_tensor(flat, size, stride, offset);
  if (internal_overlap(size, stride) == Overlap::kNo) {
    op::copy_(target, gy, false);
  } else {
    const Tensor index = op::reshape(alias_tensor(op::arange(Scalar(needed), DType::kInt64), size, stride, offset), IntSpan({int64_t{-1}}));
    op::index_add_(flat, 0, index, op::reshape(gy, IntSpan({int64_t{-1}})), Scalar(int64_t{1}));
  }
  return op::clone(alias_tensor(flat, base_size, base_stride, base_offset), MemoryFormat::kContiguous);
}

// --- composites ---

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TD_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TD_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t n = self.size(dim);
  TD_CHECK_INDEX(start >= -n && start <= n, "start out of range (expected to be in range of [{}, {}], but got {})", -n, n,
                 start);
  const int64_t at = start < 0 ? start + n : start;
  TD_CHECK(at <= n - length, "start ({}) + length ({}) exceeds dimension size ({}).", at, length, n);
  return op::slice(self, dim, at, at + length, 1);
}

Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  TD_CHECK(source.size() == destination.size(),
           "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as "
           "destination ({} dims)",
           source, destination);
  const auto n = static_cast<size_t>(self.dim());
  DimVector order(n, -1);
  for (size_t i = 0; i < source.size(); i++) order[static_cast<size_t>(destination[i])] = source[i];
  int64_t next = 0;
  for (size_t i = 0; i < n; i++) {
    if (order[i] >= 0) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) next++;
    order[i] = next++;
  }
  return op::permute(self, order);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  TD_CHECK(start_dim <= end_dim, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return op::reshape(self, IntSpan({int64_t{1}}));
  if (start_dim == end_dim) return self;
  DimVector shape;
  int64_t joined = 1;
  for (int64_t i = 0; i < self.dim(); i++) {
    const int64_t n = self.sizes()[static_cast<size_t>(i)];
    if (i < start_dim || i > end_dim) {
      shape.push_back(n);
    } else {
      joined *= n;
      if (i == end_dim) shape.push_back(joined);
    }
  }
  return op::reshape(self, shape);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  TD_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  const DimVector inner = rules::infer_size(sizes, self.size(dim));
  DimVector shape;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != dim) shape.push_back(self.sizes()[static_cast<size_t>(i)]);
    else for (int64_t n : inner) shape.push_back(n);
  }
  return op::view(self, shape);
}

TensorList split(const Tensor& self, int64_t split_size, int64_t dim) {
  TD_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  TD_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size={}", split_size);
  const int64_t n = self.size(dim);
  TD_CHECK(split_size > 0 || n == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of {}", n);
  TensorList parts;
  if (n == 0) return {op::slice(self, dim, 0, 0, 1)};
  for (int64_t at = 0; at < n; at += std::min(split_size, n - at))
    parts.push_back(op::slice(self, dim, at, at + std::min(split_size, n - at), 1));
  return parts;
}

TensorList split_sizes(const Tensor& self, IntSpan sizes, int64_t dim) {
  TD_CHECK(self.dim() > 0, "split_with_sizes expects at least a 1-dimensional tensor");
  int64_t total = 0;
  for (int64_t s : sizes) {
    TD_CHECK(s >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}", sizes);
    total = checked_add(total, s, "split sizes");
  }
  TD_CHECK(total == self.size(dim),
           "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but got "
           "split_sizes={}",
           self.size(dim), dim, sizes);
  TensorList parts;
  int64_t at = 0;
  for (int64_t s : sizes) {
    parts.push_back(op::slice(self, dim, at, at + s, 1));
    at += s;
  }
  return parts;
}

TensorList chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  TD_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TD_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  const int64_t n = self.size(dim);
  const int64_t size = n / chunks + (n % chunks != 0);
  if (size == 0) return TensorList(static_cast<size_t>(chunks), op::slice(self, dim, 0, 0, 1));
  return impl::split(self, size, dim);
}

TensorList tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  TD_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  TD_CHECK(sections > 0, "number of sections must be larger than 0, got {}", sections);
  const int64_t n = self.size(dim), small = n / sections, larger = n % sections;
  TensorList parts;
  int64_t at = 0;
  for (int64_t i = 0; i < sections; i++) {
    const int64_t length = small + (i < larger);
    parts.push_back(op::slice(self, dim, at, at + length, 1));
    at += length;
  }
  return parts;
}

TensorList tensor_split_indices(const Tensor& self, IntSpan indices, int64_t dim) {
  TensorList parts;
  int64_t at = 0;
  for (int64_t end : indices) {
    parts.push_back(op::slice(self, dim, at, end, 1));
    at = end;
  }
  parts.push_back(op::slice(self, dim, at, std::nullopt, 1));
  return parts;
}

TensorList unbind(const Tensor& self, int64_t dim) {
  TD_CHECK_INDEX(self.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  TensorList parts;
  const int64_t n = self.size(dim);
  parts.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) parts.push_back(op::select(self, dim, i));
  return parts;
}

namespace {
// PyTorch skips 1-d empty tensors in cat, whatever the others' shape.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }
}  // namespace

Tensor cat(TensorSpan tensors, int64_t dim) {
  TD_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  rules::Promotion promotion;
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); i++) {
    const Tensor& t = tensors[i];
    TD_CHECK(t.dim() > 0, "zero-dimensional tensor (at position {}) cannot be concatenated", i);
    promotion.add(t);
    if (skipped(t)) continue;
    if (!first) {
      first = &t;
      contract::wrap_dim(dim, t.dim());
    }
    TD_CHECK(t.dim() == first->dim(), "Tensors must have same number of dimensions: got {} and {}", first->dim(), t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      const auto k = static_cast<size_t>(d);
      TD_CHECK(d == dim || t.sizes()[k] == first->sizes()[k],
               "Sizes of tensors must match except in dimension {}. Expected size {} but got size {} for tensor number {} "
               "in the list.",
               dim, first->sizes()[k], t.sizes()[k], i);
    }
    contract::same_device("cat", "tensors", first->device(), t);
    total = checked_add(total, t.size(dim), "cat");
  }
  if (!first) return empty_tensor({0}, promotion.result(), tensors[0].device());
  DimVector sizes(first->sizes());
  sizes[static_cast<size_t>(dim)] = total;
  Tensor out;
  if (first->is_contiguous(MemoryFormat::kChannelsLast) && !first->is_contiguous())
    out = empty_strided_tensor(sizes, channels_last_strides(sizes), promotion.result(), first->device());
  else
    out = empty_tensor(sizes, promotion.result(), first->device());
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    impl::copy_(impl::slice(out, dim, at, at + t.size(dim), 1), t, false);
    at += t.size(dim);
  }
  return out;
}

TensorList cat_backward(const Tensor& gy, TensorSpan tensors, int64_t dim) {
  TensorList parts;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) {
      parts.push_back(op::new_zeros(gy, IntSpan({int64_t{0}}), {}));
      continue;
    }
    parts.push_back(op::slice(gy, dim, at, at + t.size(dim), 1));
    at += t.size(dim);
  }
  return parts;
}

Tensor stack(TensorSpan tensors, int64_t dim) {
  TD_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t d = contract::wrap_dim(dim, tensors[0].dim() + 1);
  TensorList rows;
  rows.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    TD_CHECK(tensors[i].sizes() == tensors[0].sizes(),
             "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}", tensors[0].sizes(),
             tensors[i].sizes(), i);
    rows.push_back(op::unsqueeze(tensors[i], d));
  }
  return op::cat(rows, d);
}

namespace {
template <class F>
TensorList mapped(TensorSpan tensors, const F& f) {
  TensorList out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}
}  // namespace

Tensor hstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  const TensorList rows = mapped(tensors, [](const Tensor& t) { return op::atleast_1d(t); });
  return op::cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "vstack expects a non-empty TensorList");
  return op::cat(mapped(tensors, [](const Tensor& t) { return op::atleast_2d(t); }), 0);
}
Tensor dstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  return op::cat(mapped(tensors, [](const Tensor& t) { return op::atleast_3d(t); }), 2);
}

Tensor repeat(const Tensor& self, IntSpan repeats) {
  TD_CHECK(static_cast<int64_t>(repeats.size()) >= self.dim(),
           "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const size_t lead = repeats.size() - self.sizes().size();
  DimVector inner, wide, shape;
  for (size_t i = 0; i < repeats.size(); i++) {
    const int64_t n = i < lead ? 1 : self.sizes()[i - lead];
    TD_CHECK(repeats[i] >= 0, "Trying to create tensor with negative dimension {}: {}", repeats[i], repeats);
    for (int64_t v : {int64_t{1}, n}) inner.push_back(v);
    for (int64_t v : {repeats[i], n}) wide.push_back(v);
    shape.push_back(checked_mul(repeats[i], n, "repeat"));
  }
  return op::reshape(op::clone(op::expand(op::reshape(self, inner), wide, false), MemoryFormat::kContiguous), shape);
}

Tensor tile(const Tensor& self, IntSpan dims) {
  DimVector repeats;
  for (int64_t i = static_cast<int64_t>(dims.size()); i < self.dim(); i++) repeats.push_back(1);
  for (int64_t d : dims) repeats.push_back(d);
  return op::repeat(self, repeats);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  if (self.sizes() == size) return self;
  TD_CHECK(is_expandable_to(size, self.sizes()), "size {{}} is not expandable to size {{}}.", size, self.sizes());
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  DimVector dims;
  for (int64_t i = 0; i < self.dim(); i++) {
    const auto k = static_cast<size_t>(i);
    if (i < lead || (size[k - static_cast<size_t>(lead)] == 1 && self.sizes()[k] != 1)) dims.push_back(i);
  }
  Tensor out = dims.empty() ? self : op::sum(self, OptInts(IntSpan(dims)), true, std::nullopt);
  return lead > 0 ? op::view(out, size) : out;
}

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  TD_CHECK(self.dtype() == other.dtype(), "Expected object of data type {} but got data type {} for argument #2 'other'",
           self.dtype(), other.dtype());
  const ExcludeKeys no_history(KeySet(Key::kAutograd) | Key::kForward);
  return rules::is_true(op::all(op::eq(self, other), std::nullopt, false));
}

TensorList broadcast_tensors(TensorSpan tensors) {
  DimVector sizes;
  for (const Tensor& t : tensors) sizes = broadcast_shapes(sizes, t.sizes());
  return mapped(tensors, [&](const Tensor& t) { return op::expand(t, sizes, false); });
}

TensorList meshgrid(TensorSpan tensors, std::optional<std::string_view> indexing) {
  TD_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  const std::string_view order = indexing.value_or("ij");
  TD_CHECK(order == "ij" || order == "xy", "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}",
           order);
  const bool swap = order == "xy" && tensors.size() >= 2;
  TensorList inputs(tensors.begin(), tensors.end());
  if (swap) std::swap(inputs[0], inputs[1]);
  DimVector shape;
  for (const Tensor& t : inputs) {
    TD_CHECK(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}", t.sizes());
    shape.push_back(t.numel());
  }
  TensorList grids;
  for (size_t i = 0; i < inputs.size(); i++) {
    DimVector view(shape.size(), 1);
    view[i] = shape[i];
    grids.push_back(op::expand(op::reshape(inputs[i], view), shape, false));
  }
  if (swap) {
    for (Tensor& g : grids) g = op::transpose(g, 0, 1);
    std::swap(grids[0], grids[1]);
  }
  return grids;
}

}  // namespace impl
}  // namespace taeda
