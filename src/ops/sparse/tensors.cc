// Sparse tensors as operators make them, take them apart and convert them.
#include "core/layout.h"
#include "op/_to_sparse.h"
#include "op/amax.h"
#include "op/any.h"
#include "op/clamp_max.h"
#include "op/contiguous.h"
#include "op/detach.h"
#include "op/eq.h"
#include "op/expand.h"
#include "op/index.h"
#include "op/ne.h"
#include "op/nonzero.h"
#include "op/reshape.h"
#include "op/searchsorted.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/transpose.h"
#include "op/unbind.h"
#include "op/where.h"
#include "ops/sparse/dense.h"
#include "ops/sparse/parts.h"

namespace taeda {
namespace sparse {
namespace {

Layout layout_named(std::string_view name) {
  if (name == "csr") return Layout::kSparseCsr;
  if (name == "csc") return Layout::kSparseCsc;
  if (name == "bsr") return Layout::kSparseBsr;
  TD_CHECK(name == "bsc", "expected a compressed layout, got '{}'", name);
  return Layout::kSparseBsc;
}

// As autograd keeps histories apart from memory, parts are handles of their own.
Tensor handle_of(const Tensor& part) { return op::detach(part); }

// The elements of a dense tensor at the coordinates of `mask`, in its pattern.
Tensor read_at(const Tensor& dense, const Tensor& mask) {
  const SparseParts& parts = sparse_parts(mask);
  const int64_t k = parts.indices.size(0);
  if (k == 0) return with_values(mask, op::expand(dense, parts.values.sizes(), false));
  return with_values(mask, op::index(dense, op::unbind(parts.indices, 0)));
}

// The values of one coordinate tensor at the coordinates of another, 0 where it has none.
Tensor values_at(const Tensor& self, const Tensor& mask) {
  const Tensor from = coalesced(self);
  const SparseParts &have = sparse_parts(from), &want = sparse_parts(mask);
  if (have.indices.is_same(want.indices)) return with_values(mask, have.values);
  const DimVector sizes = slice(self.sizes(), 0, sparse_dim(self));
  const int64_t n = nnz(from);
  if (n == 0) return with_values(mask, zeros(want.values.sizes(), self.dtype(), self.device()));
  const Tensor known = linear_indices(have.indices, sizes),
               wanted = linear_indices(want.indices, sizes);
  const Tensor found = op::searchsorted(known, wanted, false, false, std::nullopt, Tensor());
  const Tensor nearest = op::clamp_max(found, Tensor(n - 1));
  const Tensor there = as_column(op::eq(take(known, nearest), wanted), have.values);
  const Tensor none = zeros({}, self.dtype(), self.device());
  return with_values(mask, op::where(there, take(have.values, nearest), none));
}

DimVector block_of(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  if (!is_blocked(parts.layout)) return {};
  return slice(parts.values.sizes(), parts.plain.dim(), parts.plain.dim() + 2);
}

Tensor in_layout_of(const Tensor& t, const Tensor& like);

// `t` where `mask` has values.
Tensor masked_by(const Tensor& t, const Tensor& mask) {
  TD_CHECK(t.sizes() == mask.sizes(),
           "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
           t.sizes(), mask.sizes());
  const Tensor pattern = as_coo(mask);
  const Tensor read = t.is_sparse() ? values_at(as_coo(t), pattern) : read_at(t, pattern);
  if (is_coo(mask)) return read;
  const SparseParts& parts = sparse_parts(mask);
  if (!is_blocked(parts.layout))  // coordinates are in the order of the mask's values
    return with_values(mask, op::reshape(sparse_parts(read).values, parts.values.sizes()));
  return in_layout_of(read, mask);
}

Tensor in_layout_of(const Tensor& t, const Tensor& like) {
  if (!like.is_sparse()) return t.is_sparse() ? as_dense(t) : t;
  if (t.layout() == like.layout()) return t;
  if (!t.is_sparse()) {
    if (is_coo(like)) return op::_to_sparse(t, sparse_dim(like));
    return masked_by(t, like);
  }
  return is_coo(like) ? as_coo(t) : as_compressed(as_coo(t), like.layout(), block_of(like));
}

// The indices of a dense tensor's rows (behind `k` dimensions) with an element that is not 0.
Tensor nonzero_places(const Tensor& dense, int64_t k) {
  Tensor filled = op::ne(dense, Tensor(int64_t{0}));
  if (k < dense.dim()) {
    DimVector behind;
    for (int64_t d = k; d < dense.dim(); d++) behind.push_back(d);
    filled = op::any(filled, IntSpan(behind), false);
  }
  return op::transpose(op::nonzero(filled), 0, 1);
}

Tensor to_coo(const Tensor& self, int64_t k) {
  if (self.is_sparse()) return as_coo(self);
  TD_CHECK(
      self.dim() == 0 ? k == 0 : k > 0 && k <= self.dim(),
      "to_sparse: sparse_dim argument should be in >0 and <= number of dimensions of the tensor, "
      "got {}",
      k);
  if (k == 0) {
    const bool filled = op::ne(self, Tensor(int64_t{0})).item<bool>();
    const Tensor values = op::slice(op::reshape(self, {1}), 0, 0, filled ? 1 : 0, 1);
    return make_coo(zeros({0, values.numel()}, DType::kInt64, self.device()), values, {}, true);
  }
  const Tensor indices = op::contiguous(nonzero_places(self, k), MemoryFormat::kContiguous);
  return make_coo(indices, op::index(self, op::unbind(indices, 0)), self.sizes(), true);
}

void check_inside(const Tensor& indices, IntSpan sizes) {
  for (size_t d = 0; d < sizes.size() && indices.size(1) > 0; d++) {
    const int64_t most =
        op::amax(op::select(indices, 0, static_cast<int64_t>(d)), IntSpan(), false).item<int64_t>();
    TD_CHECK(most < sizes[d],
             "resizing a sparse tensor to sizes {} would leave values outside, whose coordinate in "
             "dimension {} is {}",
             sizes, d, most);
  }
}

}  // namespace
}  // namespace sparse

namespace impl {
using namespace sparse;

Tensor _sparse_make_coo(const Tensor& indices, const Tensor& values, IntSpan size, bool coalesced) {
  return make_coo(handle_of(indices), handle_of(values), size, coalesced);
}

Tensor _sparse_make_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                               IntSpan size, std::string_view layout) {
  return make_compressed(layout_named(layout), handle_of(compressed), handle_of(plain),
                         handle_of(values), size);
}

Tensor _coalesce(const Tensor& self) {
  TD_CHECK(is_coo(self), "coalesce expected sparse coordinate tensor layout but got {}",
           layout_name(self.layout()));
  const Tensor made = coalesced(self);
  return made.is_same(self) ? sparse::alias(self) : made;
}

Tensor _indices(const Tensor& self) {
  TD_CHECK_IMPLEMENTED(is_coo(self),
                       "Could not run 'aten::_indices' with arguments from the 'CPU' backend.");
  return handle_of(sparse_parts(self).indices);
}

Tensor _values(const Tensor& self) {
  TD_CHECK_IMPLEMENTED(self.is_sparse(),
                       "Could not run 'aten::_values' with arguments from the 'CPU' backend.");
  return handle_of(sparse_parts(self).values);
}
Tensor _sparse_values(const Tensor& self) { return _values(self); }

Tensor _sparse_with_values(const Tensor& self, const Tensor& values) {
  const Tensor& old = sparse_parts(self).values;
  TD_CHECK(values.sizes() == old.sizes(), "expected values of sizes {}, but got {}", old.sizes(),
           values.sizes());
  return with_values(self, handle_of(values));
}

Tensor _sparse_compressed(const Tensor& self, bool plain) {
  const SparseParts& parts = sparse_parts(self);
  return handle_of(plain ? parts.plain : parts.indices);
}

Tensor _coalesced_(const Tensor& self, bool coalesced) {
  take_parts(self, with_coalesced(self, coalesced));
  return self;
}

Tensor sparse_resize_(const Tensor& self, IntSpan size, int64_t sparse_dim, int64_t dense_dim) {
  TD_CHECK(is_coo(self) && sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
           "number of dimensions must be sparse_dim ({}) + dense_dim ({}), but got {}", sparse_dim,
           dense_dim, size.size());
  const SparseParts& parts = sparse_parts(self);
  const DimVector dense = sparse::slice(size, sparse_dim, sparse_dim + dense_dim);
  if (nnz(self) == 0) {
    take_parts(self, make_empty_coo(size, sparse_dim, self.dtype(), self.device()));
    return self;
  }
  TD_CHECK(sparse_dim == parts.indices.size(0) &&
               IntSpan(dense) == IntSpan(sparse::slice(self.sizes(), sparse_dim, self.dim())),
           "changing the number or the sizes of dense dimensions of a tensor with values is not "
           "supported");
  check_inside(parts.indices, sparse::slice(size, 0, sparse_dim));
  take_parts(self, make_coo(parts.indices, parts.values, size, parts.coalesced));
  return self;
}

Tensor _to_dense(const Tensor& self, OptDType dtype, OptBool) {
  const Tensor dense = self.is_sparse() ? as_dense(self) : self;
  return dtype ? cast(dense, *dtype) : dense;
}

Tensor _sparse_like(const Tensor& self, const Tensor& like, bool masked) {
  const Tensor made = masked && like.is_sparse()
                          ? masked_by(self, is_coo(like) ? coalesced(like) : like)
                          : in_layout_of(self, like);
  if (!made.is_same(self)) return made;
  return made.is_sparse() ? sparse::alias(made) : handle_of(made);
}

Tensor _to_sparse(const Tensor& self, int64_t sparse_dim) {
  const Tensor made = to_coo(self, sparse_dim);
  return made.is_same(self) ? sparse::alias(self) : made;
}

Tensor _to_sparse_compressed(const Tensor& self, std::string_view layout, IntSpan blocksize,
                             int64_t dense_dim) {
  const Layout to = layout_named(layout);
  if (self.layout() == to) return sparse::alias(self);
  TD_CHECK(self.dim() - dense_dim >= 2,
           "to_sparse_{}: expected a tensor of at least 2 dimensions beside {} dense ones, got {}",
           layout, dense_dim, self.dim());
  return as_compressed(to_coo(self, self.dim() - dense_dim), to, blocksize);
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  TD_CHECK_IMPLEMENTED(mask.is_sparse(),
                       "Could not run 'aten::sparse_mask' with arguments from the 'CPU' backend. "
                       "This could be because "
                       "the operator doesn't exist for this backend.");
  return masked_by(self, mask);
}

}  // namespace impl
}  // namespace taeda
