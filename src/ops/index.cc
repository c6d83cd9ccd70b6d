// Advanced indexing and the operators whose result sizes depend on data: the hand-written bodies
// behind ops/index.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "base/interrupt.h"
#include "base/sliced.h"
#include "core/layout.h"
#include "kernels/copy.h"
#include "kernels/cpu/index/indexing.h"
#include "kernels/cpu/sort/search.h"
#include "op/_unsafe_view.h"
#include "op/add.h"
#include "op/cat.h"
#include "op/clamp.h"
#include "op/clone.h"
#include "op/contiguous.h"
#include "op/copy_.h"
#include "op/diagonal.h"
#include "op/empty.h"
#include "op/expand.h"
#include "op/gather.h"
#include "op/index.h"
#include "op/index_put.h"
#include "op/index_select.h"
#include "op/logical_not.h"
#include "op/masked_fill.h"
#include "op/masked_select.h"
#include "op/new_full.h"
#include "op/new_zeros.h"
#include "op/nonzero.h"
#include "op/permute.h"
#include "op/remainder.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/roll.h"
#include "op/rolled.h"
#include "op/rolled_back.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/where.h"
#include "ops/allocate.h"
#include "ops/batching/level.h"
#include "ops/contract.h"
#include "ops/device_search.h"
#include "ops/dispatch.h"
#include "ops/element_fits.h"
#include "ops/expr.h"
#include "ops/host.h"
#include "ops/index_rules.h"
#include "ops/matrices.h"
#include "ops/rules.h"
#include "taeda/warning.h"

namespace taeda::impl {
namespace {

// Indices of one call, ready for the kernels: the tensor with the indexed dimensions side by side,
// and index tensors of one common size for dimensions first, first + 1, ...
struct Prepared {
  Tensor self;
  TensorList indices;
  int64_t first = 0;
  DimVector positions;  // the index tensors' common sizes
  DimVector result;     // sizes of what is read or written

  int64_t count() const { return static_cast<int64_t>(indices.size()); }
};

// The coordinates of the elements that are not zero, a row each.
Tensor indices_of_true(const Tensor& x) {
  Tensor out;
  kernels::nonzero(view_of(x), [&](int64_t count) {
    out = empty_column_major({{count, x.dim()}}, DType::kInt64, x.device());
    if (count == 0) out = alias_tensor(out, out.sizes(), {{1, 0}}, 0);  // PyTorch's strides
    return view_of(out);
  });
  return out;
}

// The elements of x where a mask of its sizes is true.
Tensor select_true(const Tensor& x, const Tensor& mask) {
  check_has_elements("index", mask);
  Tensor out;
  kernels::masked_select(view_of(x), view_of(mask), [&](int64_t count) {
    out = empty_tensor({count}, x.dtype(), x.device());
    return view_of(out);
  });
  return out;
}

// One entry a dimension: masks become index vectors, missing ones stay undefined.
TensorList expand_masks(const Tensor& self, TensorSpan indices) {
  TensorList out;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      out.emplace_back();
      continue;
    }
    const DType t = index.dtype();
    if (t == DType::kBool || t == DType::kUInt8) {
      if (t == DType::kUInt8)
        warn("indexing with dtype torch.uint8 is deprecated, use a mask of torch.bool");
      const int64_t at = static_cast<int64_t>(out.size());
      for (int64_t d = 0; d < index.dim(); d++) {
        TD_CHECK_INDEX(at + d < self.dim() && index.size(d) == self.size(at + d),
                       "The shape of the mask {} at index {} does not match the shape of the "
                       "indexed tensor {} at index {}",
                       index.sizes(), d, self.sizes(), at + d);
      }
      check_has_elements("index", index);
      const Tensor rows = indices_of_true(index);
      for (int64_t d = 0; d < index.dim(); d++) out.push_back(op::select(rows, 1, d));
      continue;
    }
    TD_CHECK_INDEX(t == DType::kInt64 || t == DType::kInt32,
                   "tensors used as indices must be long, int, byte or bool tensors");
    out.push_back(index);
  }
  TD_CHECK_INDEX(static_cast<int64_t>(out.size()) <= self.dim(),
                 "too many indices for tensor of dimension {} (got {})", self.dim(), out.size());
  return out;
}

// The sizes that all defined index tensors broadcast to.
DimVector common_sizes(const TensorList& indices) {
  DimVector common;
  bool fits = true;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    const IntSpan s = t.sizes();
    while (common.size() < s.size()) common.insert(0, 1);
    for (size_t i = 0; i < s.size(); i++) {
      int64_t& c = common[common.size() - s.size() + i];
      fits = fits && (c == s[i] || c == 1 || s[i] == 1);
      if (c == 1) c = s[i];
    }
  }
  if (fits) return common;
  std::string shapes;
  for (const Tensor& t : indices) {
    if (t.defined()) shapes += (shapes.empty() ? "" : ", ") + to_text(t.sizes());
  }
  fail(ErrorKind::kIndex,
       "shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes);
}

Prepared prepare(const Tensor& self, TensorSpan given) {
  TensorList indices;
  // A 0-d mask selects all or nothing of a new first dimension.
  if (given.size() == 1 && given[0].defined() && given[0].dim() == 0 &&
      (given[0].dtype() == DType::kBool || given[0].dtype() == DType::kUInt8)) {
    const Tensor mask = op::unsqueeze(given[0], 0);
    return prepare(op::unsqueeze(self, 0), {&mask, 1});
  }
  for (const Tensor& t : given) {
    TD_CHECK(!t.defined() || t.device().is_cpu() || t.device() == self.device(),
             "indices should be either on cpu or on the same device as the indexed tensor ({}), "
             "got one on {}",
             self.device(), t.device());
  }
  indices = expand_masks(self, given);
  for (Tensor& t : indices)
    if (t.defined() && t.device() != self.device()) t = op::to_device(t, self.device(), false);
  Prepared p;
  p.positions = common_sizes(indices);
  DimVector indexed, others;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool is_indexed =
        d < static_cast<int64_t>(indices.size()) && indices[static_cast<size_t>(d)].defined();
    (is_indexed ? indexed : others).push_back(d);
    if (is_indexed)
      p.indices.push_back(op::expand(indices[static_cast<size_t>(d)], p.positions, false));
  }
  TD_CHECK(!indexed.empty(), "index: at least one index tensor is needed");
  p.first = indexed.front();
  p.self = self;
  if (indexed.back() - indexed.front() + 1 != static_cast<int64_t>(indexed.size())) {
    // Indexed dimensions that are apart move to the front, and so do the positions in the result.
    DimVector order(indexed);
    for (int64_t d : others) order.push_back(d);
    p.self = op::permute(self, order);
    p.first = 0;
  }
  const IntSpan sizes = p.self.sizes();
  const IntSpan picked = sizes.slice(static_cast<size_t>(p.first), p.indices.size());
  TD_CHECK_INDEX(std::ranges::find(picked, 0) == picked.end() || checked_numel(p.positions) == 0,
                 "index is out of bounds for dimension with size 0");
  for (int64_t d = 0; d < p.first; d++) p.result.push_back(sizes[static_cast<size_t>(d)]);
  for (int64_t s : p.positions) p.result.push_back(s);
  for (int64_t d = p.first + p.count(); d < p.self.dim(); d++)
    p.result.push_back(sizes[static_cast<size_t>(d)]);
  return p;
}

// Where one of several values may be the last to be written, as in PyTorch.
void warn_of_internal_overlap(std::string_view op, const Tensor& self) {
  if (internal_overlap(self.sizes(), self.strides()) == Overlap::kYes)
    warn(
        format("Use of {} on expanded tensors, of which several elements are one place in memory, "
               "is deprecated: clone() the tensor before. This is also so for x[indices] = values.",
               op));
}

// Whether the only index is a mask over all of x.
bool is_mask_of(const Tensor& x, TensorSpan indices) {
  return indices.size() == 1 && indices[0].dtype() == DType::kBool && x.dim() > 0 &&
         std::ranges::equal(indices[0].sizes(), x.sizes()) && x.device() == indices[0].device();
}

bool none_defined(TensorSpan indices) {
  return std::none_of(indices.begin(), indices.end(), [](const Tensor& t) { return t.defined(); });
}

// The dimensions of the result, outermost first, in the order that those of self have in memory;
// the one of the indices, which self does not have, stays where it can. Nothing for row-major order
// and for index tensors of several dimensions.
DimVector order_in_memory(const Prepared& p) {
  if (p.self.is_contiguous() || p.positions.size() != 1) return {};
  const auto n = static_cast<int64_t>(p.result.size());
  const auto stride = [&](int64_t d) {
    if (d == p.first) return int64_t{0};
    return p.self.strides()[static_cast<size_t>(d < p.first ? d : d + p.count() - 1)];
  };
  // 1: a belongs outside b, -1: inside, 0: either
  const auto is_outside = [&](int64_t a, int64_t b) {
    const int64_t s = stride(a), t = stride(b);
    if (s == 0 || t == 0) return 0;
    if (s != t) return s > t ? 1 : -1;
    return p.result[static_cast<size_t>(a)] > p.result[static_cast<size_t>(b)] ? 1 : 0;
  };
  DimVector inner;  // innermost first
  for (int64_t d = n; d-- > 0;) {
    inner.push_back(d);
    for (size_t at = inner.size() - 1, i = at; i-- > 0;) {
      const int outside = is_outside(inner[i], inner[at]);
      if (outside < 0) break;
      if (outside == 0) continue;
      std::swap(inner[i], inner[at]);
      at = i;
    }
  }
  DimVector order(inner);
  std::reverse(order.begin(), order.end());
  return std::ranges::is_sorted(order) ? DimVector() : order;
}

// index_read with both sides' dimensions in this order, in which the result is dense.
Tensor read_in_order(const Prepared& p, const DimVector& order) {
  DimVector self_order, sizes, strides(p.result.size());
  int64_t first = 0, numel = 1;
  for (const int64_t d : order) {
    sizes.push_back(p.result[static_cast<size_t>(d)]);
    if (d == p.first) {
      first = static_cast<int64_t>(self_order.size());
      for (int64_t i = 0; i < p.count(); i++) self_order.push_back(d + i);
    } else {
      self_order.push_back(d < p.first ? d : d + p.count() - 1);
    }
  }
  for (size_t i = order.size(); i-- > 0; numel *= std::max<int64_t>(1, sizes[i]))
    strides[static_cast<size_t>(order[i])] = numel;
  const Tensor out = empty_strided_tensor(p.result, strides, p.self.dtype(), p.self.device());
  View written = view_of(out);
  const DimVector dense = contiguous_strides(sizes);
  written.sizes = sizes;
  written.strides = dense;
  kernels::index_read(written, view_of(op::permute(p.self, self_order)), first,
                      ViewList(p.indices).span());
  return out;
}

}  // namespace

Tensor index(const Tensor& self, TensorSpan indices) {
  if (none_defined(indices)) return op::clone(self, {});
  if (is_mask_of(self, indices)) return select_true(self, indices[0]);
  const Prepared p = prepare(self, indices);
  if (const DimVector order = order_in_memory(p); !order.empty()) return read_in_order(p, order);
  Tensor out = empty_tensor(p.result, self.dtype(), self.device());
  kernels::index_read(view_of(out), view_of(p.self), p.first, ViewList(p.indices).span());
  return out;
}

namespace {

// The one mask among the indices, as it broadcasts to self; undefined where there are others,
// elements of self share memory, which a mask may leave and write at once, or masked_fill does not
// take them.
Tensor only_mask(const Tensor& self, TensorSpan indices) {
  Tensor mask;
  size_t dim = 0;  // of self, after the indices so far
  const IntSpan sizes = self.sizes();
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      dim++;
      continue;
    }
    const auto covered = static_cast<size_t>(index.dim());
    if (mask.defined() || index.dtype() != DType::kBool || index.device() != self.device() ||
        covered == 0 || dim + covered > sizes.size() ||
        !std::ranges::equal(index.sizes(), sizes.slice(dim, covered)))
      return {};
    mask = index;
    dim += covered;
  }
  if (!mask.defined() || is_storage_type(self.dtype()) ||
      internal_overlap(sizes, self.strides()) != Overlap::kNo)
    return {};
  for (; dim < sizes.size(); dim++) mask = op::unsqueeze(mask, -1);
  return mask;
}

// How many places the mask has does not matter for one number of the host's.
void fill_where(const Tensor& self, const Tensor& mask, const Tensor& number) {
  const Tensor same = alias_tensor(self, self.sizes(), self.strides(), self.storage_offset());
  same.impl()->own_version = make_ref<VersionCounter>();  // who calls counts the write
  op::masked_fill_Scalar_inplace(same, mask, number.item_scalar());
}

// One of the host's, for which nothing has to wait.
Tensor number_on(Device device, const Tensor& number) {
  if (device.is_cpu()) return number;
  const Tensor out = empty_tensor({}, number.dtype(), device);
  kernels::fill(view_of(out), number.item_scalar());
  return out;
}

}  // namespace

Tensor index_put_(const Tensor& self, TensorSpan indices, const Tensor& given, bool accumulate) {
  const bool is_number = given.dim() == 0 && given.device().is_cpu();
  if (!is_number) contract::same_device("index_put_", "values", self.device(), given);
  if (const Tensor mask = is_number && !accumulate ? only_mask(self, indices) : Tensor();
      mask.defined()) {
    fill_where(self, mask, given);
    return self;
  }
  const Tensor values = is_number ? number_on(self.device(), given) : given;
  if (none_defined(indices))
    return op::copy_(self, accumulate ? op::add(self, values, Scalar(int64_t{1})) : values, false);
  const Prepared p = prepare(self, indices);
  TD_CHECK(
      is_expandable_to(values.sizes(), p.result),
      "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
      values.sizes(), p.result);
  if (accumulate)
    check_no_internal_overlap(self);
  else
    warn_of_internal_overlap("index_put_", self);
  check_no_overlap(self, values);
  for (const Tensor& index : indices) {
    if (index.defined() && index.dtype() != DType::kBool) check_no_overlap(self, index);
  }
  kernels::index_write(view_of(p.self), view_of(op::expand(values, p.result, false)), p.first,
                       ViewList(p.indices).span(), accumulate);
  return self;
}

Tensor index_fill_inplace_tensor(const Tensor& self, int64_t dim, const Tensor& index,
                                 const Tensor& value) {
  warn_of_internal_overlap("index_fill_", self);
  if (value.device().is_cpu() && !is_inexact(self.dtype())) check_element_fits(value, self.dtype());
  const Tensor converted = op::to_dtype(value, self.dtype(), false, {});
  kernels::index_fill(view_of(self), dim, view_of(index), view_of(converted));
  return self;
}

namespace {
// Positions modulo the size, so that negative ones count from the end.
Tensor wrapped(const Tensor& indices, int64_t size) {
  return size == 0 ? indices : op::remainder(indices, Tensor(Scalar(size)));
}
}  // namespace

Tensor take_along_dim(const Tensor& self, const Tensor& given, OptInt along_dim) {
  if (!along_dim) return op::gather(op::reshape(self, {-1}), 0, op::reshape(given, {-1}), false);
  const int64_t dim = contract::wrap_dim(*along_dim, self.dim());
  const Tensor indices = wrapped(given, self.size(dim));
  DimVector self_sizes(self.sizes()), index_sizes(indices.sizes());
  if (!self_sizes.empty()) {
    const size_t d = static_cast<size_t>(dim);
    const int64_t along = self_sizes[d], picked = index_sizes[d];
    self_sizes[d] = index_sizes[d] = 1;
    self_sizes = index_sizes = broadcast_shapes(self_sizes, index_sizes);
    self_sizes[d] = along;
    index_sizes[d] = picked;
  }
  return op::gather(op::expand(self, self_sizes, false), dim,
                    op::expand(indices, index_sizes, false), false);
}

Tensor nonzero(const Tensor& self) { return indices_of_true(self); }
Tensor argwhere(const Tensor& self) { return indices_of_true(self); }

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  if (!has_values(self)) return empty_tensor({size, self.dim()}, DType::kInt64, self.device());
  if (!self.device().is_cpu()) return on_device::nonzero_static(self, size, fill_value);
  const Tensor found = op::slice(op::nonzero(self), 0, 0, size, 1);
  const DimVector missing = {size - found.size(0), self.dim()};
  return op::cat({found, op::new_full(found, missing, fill_value, {})}, 0);
}

Tensor masked_fill_Tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_element_fits(value, self.dtype());
  return op::contiguous(
      op::where(mask, op::to_dtype(value, self.dtype(), false, std::nullopt), self),
      MemoryFormat::kContiguous);
}

namespace {

// Indices inside of the dimensions that they are of.
TensorList clamped(const Tensor& self, TensorSpan indices) {
  TensorList inside;
  for (size_t i = 0; i < indices.size(); i++) {
    const Tensor& index = indices[i];
    if (!index.defined() || index.dtype() == DType::kBool || i >= self.sizes().size()) {
      inside.push_back(index);
      continue;
    }
    const int64_t size = self.sizes()[i];
    inside.push_back(op::clamp(index, Scalar(-size), Scalar(size - 1)));
  }
  return inside;
}

}  // namespace

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, TensorSpan indices,
                            const Scalar& fill) {
  TD_CHECK_AS(ErrorKind::kIndex, !indices.empty(),
              "_unsafe_masked_index: at least one index must be provided");
  const Tensor hidden = op::logical_not(mask);
  if (self.numel() > 0)
    return op::masked_fill_Scalar(op::index(self, clamped(self, indices)), hidden, fill);
  TensorOptions on_meta(self.dtype());
  on_meta.device = Device(DeviceType::kMeta);
  TensorList sizes_alone;
  for (const Tensor& index : indices)
    sizes_alone.push_back(index.defined() ? op::to_device(index, *on_meta.device, false) : index);
  const Tensor sizes = op::index(op::empty(self.sizes(), on_meta, std::nullopt), sizes_alone);
  return op::new_full(self, sizes.sizes(), fill, {});
}

Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           TensorSpan indices, const Tensor& values) {
  if (self.numel() == 0) return op::clone(self, std::nullopt);
  const Tensor added = op::masked_fill_Scalar(values, op::logical_not(mask), Scalar(int64_t{0}));
  return op::index_put(self, clamped(self, indices), added, true);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  const DimVector sizes = broadcast_shapes(mask.sizes(), self.sizes());
  return select_true(op::expand(self, sizes, false), op::expand(mask, sizes, false));
}

Tensor masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const Tensor full = op::expand(mask, self.sizes(), false);
  kernels::masked_scatter(view_of(self), view_of(full), view_of(source));
  return self;
}
Tensor masked_scatter_backward(const Tensor& gy, const Tensor& mask, IntSpan sizes) {
  const Tensor used = op::masked_select(gy, mask);
  const Tensor flat = op::new_zeros(gy, {checked_numel(sizes)}, {});
  return op::reshape(op::cat({{used, op::slice(flat, 0, used.numel(), {}, 1)}}, 0), sizes);
}

Tensor rolled(const Tensor& self, IntSpan shifts, IntSpan dims) {
  TD_CHECK_INDEX(self.dim() > 0 || dims.empty(),
                 "Dimension specified as {} but tensor has no dimensions", dims[0]);
  if (self.numel() == 0) return op::clone(self, {});
  if (dims.empty()) {
    const int64_t zero = 0;
    return op::_unsafe_view(impl::rolled(op::reshape(self, {-1}), shifts, {&zero, 1}),
                            self.sizes());
  }
  Tensor out = self;
  for (size_t i = 0; i < dims.size(); i++) {
    const int64_t n = self.size(dims[i]), start = (n - shifts[i] % n) % n;
    if (start == 0) {
      out = out.is_same(self) ? op::clone(self, {}) : out;
    } else {
      out = op::cat({{op::slice(out, dims[i], start, {}, 1), op::slice(out, dims[i], 0, start, 1)}},
                    dims[i]);
    }
  }
  return out;
}

Tensor rolled_back(const Tensor& self, IntSpan shifts, IntSpan dims) {
  DimVector back(shifts);
  for (int64_t& shift : back) shift = expr::sub(int64_t{0}, shift);  // checked
  return op::roll(self, back, dims);
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim() + 1;
  TD_CHECK_INDEX(self.dim() >= 1,
                 "Dimension out of range: diag_embed: expected at least one dimension");
  dim1 = wrap_dim(dim1, ndim);
  dim2 = wrap_dim(dim2, ndim);
  TD_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  const int64_t n =
      checked_add(self.size(-1), std::abs(std::max<int64_t>(offset, -INT64_MAX)), "diag_embed");
  DimVector sizes(self.sizes().begin(), self.sizes().end() - 1);
  sizes.insert(static_cast<size_t>(std::min(dim1, dim2)), n);
  sizes.insert(static_cast<size_t>(std::max(dim1, dim2)), n);
  Tensor out = op::new_zeros(self, sizes, {});
  op::copy_(op::diagonal(out, offset, dim1, dim2), self, false);
  return out;
}

// A copy that lies as self does, with its gaps, unless elements of self share memory.
static Tensor clone_with_gaps(const Tensor& self) {
  if (is_dense_layout(self.sizes(), self.strides()) ||
      internal_overlap(self.sizes(), self.strides()) != Overlap::kNo)
    return op::clone(self, {});
  Tensor out = empty_strided_tensor(self.sizes(), self.strides(), self.dtype(), self.device());
  op::copy_(out, self, false);
  return out;
}

// Copies `src` into a view of a result, with no broadcasting.
static void fill_slice(const char* op, const Tensor& slice, const Tensor& src) {
  TD_CHECK(src.sizes() == slice.sizes(),
           "{}: expected src to have a size equal to the slice of self. src size = {}, slice size "
           "= {}",
           op, src.sizes(), slice.sizes());
  op::copy_(slice, src, false);
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  Tensor out = clone_with_gaps(self);
  fill_slice("diagonal_scatter", op::diagonal(out, offset, dim1, dim2), src);
  return out;
}
Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  Tensor out = clone_with_gaps(self);
  fill_slice("select_scatter", op::select(out, dim, index), src);
  return out;
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, OptInt start, OptInt end,
                     int64_t step) {
  TD_CHECK(step > 0, "slice_scatter: slice step must be positive, got {}", step);
  Tensor out = clone_with_gaps(self);
  fill_slice("slice_scatter", op::slice(out, dim, start, end, step), src);
  return out;
}

Tensor repeat_interleave_tensor(const Tensor& repeats, OptInt output_size) {
  const Tensor given =
      op::contiguous(op::to_dtype(repeats, DType::kInt64, false, {}), MemoryFormat::kContiguous);
  if (!given.device().is_cpu())
    return op::to_dtype(on_device::repeated_indices(given, output_size), repeats.dtype(), false,
                        {});
  // A copy that no other thread writes: what is counted is what is filled in.
  const std::vector<int64_t> counts = sliced_copy(given.data<int64_t>(), given.numel());
  int64_t total = 0;
  Looks looks;
  for (int64_t n : counts) {
    looks.after(1);
    TD_CHECK(n >= 0, "repeats can not be negative");
    total = checked_add(total, n, "repeat_interleave");
  }
  TD_CHECK(!output_size || *output_size == total,
           "repeat_interleave: output_size {} is not the sum of repeats, {}",
           output_size.value_or(0), total);
  Tensor out = empty_tensor({total}, repeats.dtype(), repeats.device());
  Tensor wide = repeats.dtype() == DType::kInt64
                    ? out
                    : empty_tensor({total}, DType::kInt64, repeats.device());
  int64_t* to = wide.data<int64_t>();
  for (size_t i = 0; i < counts.size(); i++) {
    looks.after(1);
    in_slices(counts[i], [&](int64_t begin, int64_t end) {
      to = std::fill_n(to, end - begin, static_cast<int64_t>(i));
      looks.after(end - begin);
    });
  }
  return wide.is_same(out) ? out : op::to_dtype(wide, repeats.dtype(), false, {});
}
Tensor repeat_interleave_self_tensor(const Tensor& self, const Tensor& repeats, OptInt dim,
                                     OptInt output_size) {
  const Tensor x = dim ? self : op::reshape(self, {-1});
  const int64_t d = dim.value_or(0), n = x.dim() ? x.size(d) : 1;
  TD_CHECK(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  TD_CHECK_AS(ErrorKind::kIndex, x.dim() > 0,
              "repeat_interleave: Dimension specified as {} but tensor has no dimensions", d);
  TD_CHECK(repeats.numel() == 1 || repeats.numel() == n,
           "repeats must have the same size as input along dim, but got repeats.size(0) = {} and "
           "input.size({}) = {}",
           repeats.numel(), d, n);
  const Tensor each = repeats.numel() == n ? op::reshape(repeats, {n})
                                           : op::expand(op::reshape(repeats, {1}), {n}, false);
  return op::index_select(x, d, op::repeat_interleave_tensor(each, output_size));
}
Tensor repeat_interleave_self_int(const Tensor& self, int64_t repeats, OptInt dim,
                                  OptInt output_size) {
  const Tensor x = dim ? self : op::reshape(self, {-1});
  const int64_t d = dim.value_or(0), n = x.dim() ? x.size(d) : 1;
  TD_CHECK(!output_size || *output_size == checked_mul(n, repeats, "repeat_interleave"),
           "repeat_interleave: output_size {} is not the sum of repeats", output_size.value_or(0));
  if (x.dim() == 0)
    return op::clone(op::expand(op::reshape(x, {1}), {repeats}, false), std::nullopt);
  // A new dimension after `d`, expanded and joined with it.
  DimVector sizes(x.sizes());
  sizes.insert(static_cast<size_t>(d) + 1, repeats);
  const Tensor wide = op::expand(op::unsqueeze(x, d + 1), sizes, false);
  DimVector joined(x.sizes());
  joined[static_cast<size_t>(d)] = checked_mul(n, repeats, "repeat_interleave");
  return op::reshape(op::clone(wide, MemoryFormat::kContiguous), joined);
}

}  // namespace taeda::impl
