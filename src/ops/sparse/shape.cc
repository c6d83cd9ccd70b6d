// Sparse tensors copied, and with their dimensions arranged in another way.
#include <algorithm>

#include "core/layout.h"
#include "op/add.h"
#include "op/argsort.h"
#include "op/cat.h"
#include "op/clone.h"
#include "op/constant_pad_nd.h"
#include "op/cumsum.h"
#include "op/eq.h"
#include "op/fill_.h"
#include "op/index_select.h"
#include "op/nonzero.h"
#include "op/permute.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/transpose.h"
#include "op/unsqueeze.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
namespace {

Tensor copied(const Tensor& t) { return t.defined() ? op::clone(t, std::nullopt) : t; }

Tensor clone_of(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  const Tensor indices = copied(parts.indices), values = copied(parts.values);
  if (parts.is_coo()) return make_coo(indices, values, t.sizes(), parts.coalesced);
  return make_compressed(parts.layout, indices, copied(parts.plain), values, t.sizes());
}

// Without values, of the layout and the kinds of dimensions that `like` has.
Tensor empty_of(const Tensor& like, IntSpan sizes, DType dtype, Device device) {
  if (is_coo(like)) {
    const bool hybrid = static_cast<int64_t>(sizes.size()) == like.dim();
    return make_empty_coo(sizes, hybrid ? sparse_dim(like) : static_cast<int64_t>(sizes.size()),
                          dtype, device);
  }
  const SparseParts& parts = sparse_parts(like);
  const int64_t ndim = static_cast<int64_t>(sizes.size()), batch = ndim - 2 - dense_dim(like);
  TD_CHECK(batch >= 0, "a {} tensor needs at least 2 dimensions, got sizes {}",
           layout_name(parts.layout), sizes);
  const DimVector front = slice(sizes, 0, batch);
  DimVector block;
  if (is_blocked(parts.layout))
    block = slice(parts.values.sizes(), parts.plain.dim(), parts.plain.dim() + 2);
  int64_t lines = sizes[static_cast<size_t>(is_by_rows(parts.layout) ? batch : batch + 1)];
  if (!block.empty()) lines /= block[is_by_rows(parts.layout) ? 0 : 1];
  const DType index = parts.indices.dtype();
  const DimVector behind = join(block, slice(sizes, batch + 2, ndim));
  return make_compressed(parts.layout, zeros(join(front, {lines + 1}), index, device),
                         zeros(join(front, {0}), index, device),
                         zeros(join(join(front, {0}), behind), dtype, device), sizes);
}

}  // namespace

void clone(Call& call) { call.give(clone_of(call.tensor(0))); }
void alias(Call& call) { call.give(alias(call.tensor(0))); }
void detach(Call& call) { call.give(alias(call.tensor(0))); }

namespace {

// "torch.sparse.FloatTensor"
std::string type_of(const Tensor& t) {
  return format("torch.{}{}Tensor", t.is_sparse() ? "sparse." : "", scalar_type_name(t.dtype()));
}

}  // namespace

void copy_(Call& call) {
  const Tensor self = call.tensor(0), from = call.tensor(1);
  TD_CHECK(
      self.is_sparse() && from.is_sparse() && is_coo(self) == is_coo(from),
      "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and src "
      "type = {}",
      type_of(self), type_of(from));
  TD_CHECK(self.layout() == from.layout() && (is_coo(self) || self.sizes() == from.sizes()),
           "copy of sparse compressed tensors having different layouts or sizes is not supported.");
  const Tensor values = op::to_dtype(sparse_parts(from).values, self.dtype(), true, std::nullopt);
  if (!self.is_same(from)) take_parts(self, with_values(clone_of(from), values));
  call.give(self);
}

void zero_(Call& call) {
  const Tensor self = call.tensor(0);
  take_parts(self, empty_of(self, self.sizes(), self.dtype(), self.device()));
  call.give(self);
}

namespace {

// *_like(self, options...) and new_*(self, size, options...): the dtype and device asked for.
Tensor made_like(const Call& call, IntSpan sizes, size_t options) {
  const Tensor self = call.tensor(0);
  const Value &dtype = call.stack[options], &device = call.stack[options + 2];
  return empty_of(self, sizes, dtype.is_none() ? self.dtype() : dtype.dtype(),
                  device.is_none() ? self.device() : device.device());
}

}  // namespace

void empty_like(Call& call) { call.give(made_like(call, call.tensor(0).sizes(), 1)); }
void zeros_like(Call& call) { empty_like(call); }
void new_zeros(Call& call) { call.give(made_like(call, call.stack[1].ints(), 2)); }
void new_empty(Call& call) { new_zeros(call); }

void to_device(Call& call) {
  const Tensor self = call.tensor(0);
  const Device device = call.stack[1].device();
  const auto moved = [&](const Tensor& t) {
    return t.defined() ? op::to_device(t, device, false) : t;
  };
  const SparseParts& parts = sparse_parts(self);
  const Tensor indices = moved(parts.indices), values = moved(parts.values);
  call.give(parts.is_coo()
                ? make_coo(indices, values, self.sizes(), parts.coalesced)
                : make_compressed(parts.layout, indices, moved(parts.plain), values, self.sizes()));
}

// --- dimensions ---

namespace {

DimVector arranged(IntSpan sizes, IntSpan dims) {
  DimVector made;
  for (const int64_t d : dims) made.push_back(sizes[static_cast<size_t>(d)]);
  return made;
}

Layout transposed(Layout layout) {
  switch (layout) {
    case Layout::kSparseCsr:
      return Layout::kSparseCsc;
    case Layout::kSparseCsc:
      return Layout::kSparseCsr;
    case Layout::kSparseBsr:
      return Layout::kSparseBsc;
    case Layout::kSparseBsc:
      return Layout::kSparseBsr;
    default:
      return layout;
  }
}

// Rows and columns exchanged: the same parts, read the other way.
Tensor transposed(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  const int64_t batch = batch_dim(t);
  DimVector sizes(t.sizes());
  std::swap(sizes[static_cast<size_t>(batch)], sizes[static_cast<size_t>(batch + 1)]);
  const Tensor values =
      is_blocked(parts.layout) ? op::transpose(parts.values, batch + 1, batch + 2) : parts.values;
  return make_compressed(transposed(parts.layout), parts.indices, parts.plain, values, sizes);
}

// `dims` has sparse dimensions in front and dense ones behind, as the tensor has.
Tensor permuted(const Tensor& t, IntSpan dims) {
  const SparseParts& parts = sparse_parts(t);
  const int64_t k = sparse_dim(t);
  DimVector rows, values{0};
  bool in_order = true;
  for (int64_t d = 0; d < t.dim(); d++) {
    const int64_t from = dims[static_cast<size_t>(d)];
    TD_CHECK(
        (d < k) == (from < k),
        "permute(sparse_coo): sparse and dense dimensions can't be exchanged, got dims {} with {} "
        "sparse dimensions",
        dims, k);
    in_order = in_order && (d >= k || from == d);
    if (d < k)
      rows.push_back(from);
    else
      values.push_back(from - k + 1);
  }
  TensorList chosen;
  for (const int64_t row : rows) chosen.push_back(op::slice(parts.indices, 0, row, row + 1, 1));
  return make_coo(in_order ? parts.indices : op::cat(chosen, 0), op::permute(parts.values, values),
                  arranged(t.sizes(), dims), parts.coalesced && in_order);
}

Tensor exchanged(const Call& call, int64_t a, int64_t b) {
  const Tensor t = call.tensor(0);
  if (a == b) return alias(t);
  DimVector dims;
  for (int64_t d = 0; d < t.dim(); d++) dims.push_back(d == a ? b : d == b ? a : d);
  if (is_coo(t)) return permuted(t, dims);
  TD_CHECK(
      std::min(a, b) == batch_dim(t) && std::max(a, b) == batch_dim(t) + 1,
      "transpose(): can only transpose the sparse dimensions of a sparse compressed tensor, got "
      "dimensions {} and {}",
      a, b);
  return transposed(t);
}

}  // namespace

void transpose(Call& call) {
  call.give(exchanged(call, call.stack[1].integer(), call.stack[2].integer()));
}

void permute(Call& call) {
  const Tensor t = call.tensor(0);
  const IntSpan given = call.stack[1].ints();
  TD_CHECK(
      static_cast<int64_t>(given.size()) == t.dim(),
      "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
      "the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
      t.dim(), given.size());
  DimVector dims, sorted;
  for (const int64_t d : given) dims.push_back(wrap_dim(d, t.dim()));
  sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t d = 0; d < t.dim(); d++)
    TD_CHECK(sorted[static_cast<size_t>(d)] == d, "permute(): duplicate dims are not allowed.");
  if (is_coo(t)) return call.give(permuted(t, dims));
  if (IntSpan(dims) == IntSpan(sorted)) return call.give(alias(t));
  TD_CHECK(t.dim() == 2,
           "permute(): only the two dimensions of a sparse compressed matrix can be exchanged");
  call.give(transposed(t));
}

void expand(Call&) { fail(ErrorKind::kRuntime, "expand is unsupported for Sparse tensors"); }

namespace {

Tensor unsqueezed(const Tensor& t, int64_t dim) {
  const int64_t k = sparse_dim(t);
  const SparseParts& parts = sparse_parts(t);
  const DimVector sizes = join(join(slice(t.sizes(), 0, dim), {1}), slice(t.sizes(), dim, t.dim()));
  if (dim > k)
    return make_coo(parts.indices, op::unsqueeze(parts.values, dim - k + 1), sizes,
                    parts.coalesced);
  const Tensor row = zeros({1, nnz(t)}, DType::kInt64, t.device());
  const Tensor before = op::slice(parts.indices, 0, 0, dim, 1),
               behind = op::slice(parts.indices, 0, dim, k, 1);
  return make_coo(op::cat(TensorList{before, row, behind}, 0), parts.values, sizes,
                  parts.coalesced);
}

}  // namespace

void unsqueeze(Call& call) {
  const Tensor t = call.tensor(0);
  if (!is_coo(t)) unable(call);
  call.give(unsqueezed(t, wrap_dim(call.stack[1].integer(), t.dim() + 1)));
}

namespace {

Tensor row_of(const Tensor& indices, int64_t d) { return op::select(indices, 0, d); }
Tensor without_row(const Tensor& indices, int64_t d) {
  return op::cat(
      TensorList{op::slice(indices, 0, 0, d, 1), op::slice(indices, 0, d + 1, indices.size(0), 1)},
      0);
}
DimVector without(IntSpan sizes, int64_t d) {
  return join(slice(sizes, 0, d), slice(sizes, d + 1, static_cast<int64_t>(sizes.size())));
}
Tensor indices_where(const Tensor& mask) { return op::reshape(op::nonzero(mask), {-1}); }

Tensor selected(const Tensor& t, int64_t dim, int64_t at) {
  const SparseParts& parts = sparse_parts(t);
  const int64_t k = sparse_dim(t);
  const DimVector sizes = without(t.sizes(), dim);
  if (dim >= k)
    return make_coo(parts.indices, op::select(parts.values, dim - k + 1, at), sizes,
                    parts.coalesced);
  const Tensor kept = indices_where(op::eq(row_of(parts.indices, dim), Tensor(at)));
  const Tensor values = take(parts.values, kept);
  // Without a sparse dimension left the tensor is dense.
  if (k == 1)
    return op::reshape(sum_rows(values, zeros({kept.numel()}, DType::kInt64, t.device()), 1),
                       sizes);
  return make_coo(op::index_select(without_row(parts.indices, dim), 1, kept), values, sizes, false);
}

}  // namespace

void select(Call& call) {
  const Tensor t = call.tensor(0);
  const int64_t dim = call.stack[1].integer();
  int64_t at = call.stack[2].integer();
  TD_CHECK_INDEX(at >= -t.size(dim) && at < t.size(dim),
                 "select(): index {} out of range for tensor of size {} at dimension {}", at,
                 t.sizes(), dim);
  if (at < 0) at += t.size(dim);
  if (is_coo(t)) return call.give(selected(t, dim, at));
  if (t.dim() != 2 || dense_dim(t) != 0) unable(call);
  call.give(as_dense(selected(as_coo(t), dim, at)));
}

void unbind(Call& call) {
  const Tensor t = call.tensor(0);
  const int64_t dim = call.stack[1].integer();
  if (!is_coo(t)) unable(call);
  TensorList parts;
  for (int64_t i = 0; i < t.size(dim); i++) parts.push_back(selected(t, dim, i));
  call.stack = {Value(std::move(parts))};
}

namespace {

// For each number in `wanted`, the places of all coordinates that equal it; and which it was.
std::pair<Tensor, Tensor> matches(const Tensor& row, const Tensor& wanted, int64_t n) {
  const Tensor begins = offsets_of(row, n);
  const Tensor first = take(begins, wanted),
               last = take(begins, op::add(wanted, Tensor(int64_t{1}), Scalar(int64_t{1})));
  const Tensor counts = sub(last, first);
  const Tensor which = op::repeat_interleave_tensor(counts, std::nullopt);
  const Tensor before = sub(op::cumsum(counts, 0, std::nullopt), counts);
  const Tensor place =
      add(take(first, which), sub(arange(which.numel(), row.device()), take(before, which)));
  return {take(op::argsort(row, 0, false, true), place), which};
}

}  // namespace

void index_select(Call& call) {
  const Tensor t = call.tensor(0);
  const int64_t dim = call.stack[1].integer();
  const Tensor index = cast(op::reshape(call.tensor(2), {-1}), DType::kInt64);
  if (!is_coo(t)) unable(call);
  const SparseParts& parts = sparse_parts(t);
  const int64_t k = sparse_dim(t);
  DimVector sizes(t.sizes());
  sizes[static_cast<size_t>(dim)] = index.numel();
  if (dim >= k)
    return call.give(make_coo(parts.indices, op::index_select(parts.values, dim - k + 1, index),
                              sizes, parts.coalesced));
  const Tensor wanted = op::index_select(arange(t.size(dim), t.device()), 0, index);  // checks them
  const auto [place, which] = matches(row_of(parts.indices, dim), wanted, t.size(dim));
  const Tensor others = op::index_select(parts.indices, 1, place);
  const Tensor indices =
      op::cat(TensorList{op::slice(others, 0, 0, dim, 1), op::unsqueeze(which, 0),
                         op::slice(others, 0, dim + 1, k, 1)},
              0);
  call.give(make_coo(indices, take(parts.values, place), sizes, false));
}

namespace {

void check_concatenated(const TensorList& all, int64_t dim) {
  for (const Tensor& t : all) {
    TD_CHECK(is_coo(t),
             "Concatenating sparse tensors, but a dense tensor was found at position {}.",
             &t - all.data());
    TD_CHECK(
        sparse_dim(t) == sparse_dim(all[0]) && dense_dim(t) == dense_dim(all[0]),
        "All tensors must have the same number of sparse and dense dimensions to be concatenated");
    for (int64_t d = 0; d < t.dim(); d++)
      TD_CHECK(
          d == dim || t.size(d) == all[0].size(d),
          "All tensors must have the same shape: {} (except in the concatenating dimension), but "
          "found shape: {} at position {}.",
          all[0].sizes(), t.sizes(), &t - all.data());
  }
}

Tensor concatenated(const TensorList& all, int64_t dim) {
  check_concatenated(all, dim);
  const int64_t k = sparse_dim(all[0]);
  TensorList indices, values;
  DimVector sizes(all[0].sizes());
  int64_t total = 0, before = 0;
  for (const Tensor& t : all) total += t.size(dim);
  sizes[static_cast<size_t>(dim)] = total;
  for (const Tensor& t : all) {
    const SparseParts& parts = sparse_parts(t);
    const int64_t n = t.size(dim);
    if (dim < k) {
      Tensor offset = zeros({k, 1}, DType::kInt64, t.device());
      op::fill_(op::slice(offset, 0, dim, dim + 1, 1), Tensor(before));
      indices.push_back(add(parts.indices, offset));
      values.push_back(parts.values);
    } else {
      DimVector padding(static_cast<size_t>(2 * (t.dim() - dim)), 0);
      padding[padding.size() - 2] = before;
      padding[padding.size() - 1] = total - before - n;
      indices.push_back(parts.indices);
      values.push_back(op::constant_pad_nd(parts.values, padding, Scalar(int64_t{0})));
    }
    before += n;
  }
  return make_coo(op::cat(indices, 1), op::cat(values, 0), sizes, false);
}

}  // namespace

void cat(Call& call) {
  const TensorList& all = call.stack[0].tensors();
  call.give(concatenated(all, wrap_dim(call.stack[1].integer(), all[0].dim())));
}

void stack(Call& call) {
  TensorList all = call.stack[0].tensors();
  for (const Tensor& t : all)
    if (!is_coo(t)) unable(call);
  const int64_t dim = wrap_dim(call.stack[1].integer(), all[0].dim() + 1);
  for (Tensor& t : all) t = unsqueezed(t, dim);
  call.give(concatenated(all, dim));
}

}  // namespace taeda::sparse
