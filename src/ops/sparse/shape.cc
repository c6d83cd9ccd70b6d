// Sparse tensors with their dimensions arranged in another way, and put together.
#include <algorithm>

#include "core/layout.h"
#include "op/cat.h"
#include "op/constant_pad_nd.h"
#include "op/fill_.h"
#include "op/permute.h"
#include "op/slice.h"
#include "op/transpose.h"
#include "op/unsqueeze.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
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

void t(Call& call) {
  const Tensor t = call.tensor(0);
  TD_CHECK(!is_coo(t) || (sparse_dim(t) <= 2 && dense_dim(t) == 0),
           "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {} sparse and {} "
           "dense dimensions",
           sparse_dim(t), dense_dim(t));
  TD_CHECK(t.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", t.dim());
  call.give(exchanged(call, 0, t.dim() < 2 ? 0 : 1));
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
