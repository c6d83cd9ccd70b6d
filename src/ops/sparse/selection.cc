// Parts of sparse tensors: of one index, of several, of each.
#include "core/layout.h"
#include "op/add.h"
#include "op/argsort.h"
#include "op/cat.h"
#include "op/cumsum.h"
#include "op/eq.h"
#include "op/index_select.h"
#include "op/nonzero.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/unsqueeze.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
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
  call.give(selected(as_coo(t), dim, at));
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

// For each number in `wanted`, the indices of all coordinates that equal it; and which it was.
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

}  // namespace taeda::sparse
