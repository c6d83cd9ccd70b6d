// Sums and norms of sparse tensors.
#include <algorithm>

#include "core/layout.h"
#include "op/_coalesce.h"
#include "op/_sparse_make_coo.h"
#include "op/_sparse_values.h"
#include "op/any.h"
#include "op/cat.h"
#include "op/reshape.h"
#include "op/slice.h"
#include "op/sum.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
namespace {

DimVector dims_of(const Tensor& t, const Value& given) {
  DimVector dims;
  if (given.is_none()) return dims;
  for (const int64_t d : given.ints()) dims.push_back(wrap_dim(d, t.dim()));
  return dims;
}

bool has(IntSpan dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

}  // namespace

Tensor sum_over(const Tensor& coo, IntSpan dims, bool keepdim) {
  const Tensor t = sparse_parts(coo).coalesced ? coo : op::_coalesce(coo);
  const SparseParts& parts = sparse_parts(t);
  const int64_t k = sparse_dim(t);
  DimVector kept, within, sizes;
  for (int64_t d = 0; d < t.dim(); d++) {
    const bool gone = has(dims, d);
    if (!gone || keepdim) sizes.push_back(gone ? 1 : t.size(d));
    if (d < k && !gone) kept.push_back(d);
    if (d >= k && gone) within.push_back(d - k + 1);
  }
  const Tensor all = op::_sparse_values(t);
  const Tensor values = within.empty() ? all : op::sum(all, IntSpan(within), keepdim, std::nullopt);
  const int64_t left = static_cast<int64_t>(kept.size());
  if (left == 0) return op::reshape(op::sum(values, IntSpan({0}), false, std::nullopt), sizes);
  if (left == k) return op::_sparse_make_coo(parts.indices, values, sizes, parts.coalesced);
  TensorList rows;
  const Tensor none = zeros({1, nnz(t)}, DType::kInt64, t.device());
  for (int64_t d = 0; d < k; d++)
    if (!has(dims, d))
      rows.push_back(op::slice(parts.indices, 0, d, d + 1, 1));
    else if (keepdim)
      rows.push_back(none);
  return op::_coalesce(op::_sparse_make_coo(op::cat(rows, 0), values, sizes, false));
}

void sum(Call& call) {
  Tensor t = call.tensor(0);
  const Value& dtype = call.stack[3];
  const DType to = !dtype.is_none()                                      ? dtype.dtype()
                   : is_integral(t.dtype()) || t.dtype() == DType::kBool ? DType::kInt64
                                                                         : t.dtype();
  const DimVector dims = dims_of(t, call.stack[1]);
  if (dims.empty()) return call.give(op::sum(sparse_parts(t).values, std::nullopt, false, to));
  TD_CHECK(is_coo(t) || call.stack[2].boolean(),
           "reduction operations on CSR tensors with keepdim=False is unsupported");
  if (is_blocked(t.layout())) unable(call);
  t = with_values(t, cast(sparse_parts(t).values, to));
  const Tensor coo = sum_over(as_coo(t), dims, call.stack[2].boolean());
  const bool stays = is_compressed(t) && coo.is_sparse() && coo.dim() == 2;
  call.give(stays ? as_compressed(coo, t.layout(), {}) : coo);
}

void any(Call& call) {
  const Tensor t = call.tensor(0);
  if (!dims_of(t, call.stack[1]).empty()) unable(call);
  call.give(op::any(sparse_parts(t).values, std::nullopt, false));
}

void _vector_norm(Call& call) {
  const Tensor t = call.tensor(0);
  TD_CHECK(
      dims_of(t, call.stack[2]).empty() && !call.stack[3].boolean(),
      "norm: only the norm of all elements of a sparse tensor is there, without dim and keepdim");
  Stack args = call.stack;
  const Tensor like = is_coo(t) ? coalesced(t) : t;
  args[0] = op::reshape(sparse_parts(like).values, {-1});
  call.give(run_plain(call, std::move(args)));
}

}  // namespace taeda::sparse
