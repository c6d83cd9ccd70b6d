// What torch.sparse computes, by differentiable operators on values.
#include "core/layout.h"
#include "op/_coalesce.h"
#include "op/_sparse_make_coo.h"
#include "op/_sparse_values.h"
#include "op/_sparse_with_values.h"
#include "op/_unique2.h"
#include "op/add.h"
#include "op/cat.h"
#include "op/detach.h"
#include "op/div.h"
#include "op/exp.h"
#include "op/expand.h"
#include "op/log.h"
#include "op/log_softmax.h"
#include "op/mul.h"
#include "op/ne.h"
#include "op/nonzero.h"
#include "op/reshape.h"
#include "op/scatter_reduce.h"
#include "op/slice.h"
#include "op/softmax.h"
#include "op/unsqueeze.h"
#include "ops/sparse/dense.h"
#include "ops/sparse/parts.h"
#include "ops/sparse/rows.h"

namespace taeda {
namespace sparse {
namespace {

Tensor coalesced_with_history(const Tensor& t) {
  return sparse_parts(t).coalesced ? t : op::_coalesce(t);
}

// The coordinates but those in dimension `dim`, as one number a value.
Tensor lines_along(const Tensor& coo, int64_t dim) {
  const Tensor& indices = sparse_parts(coo).indices;
  const int64_t k = indices.size(0);
  const auto rows = [&](int64_t first, int64_t last) {
    return op::slice(indices, 0, first, last, 1);
  };
  const DimVector sizes = join(slice(coo.sizes(), 0, dim), slice(coo.sizes(), dim + 1, k));
  return linear_indices(op::cat(TensorList{rows(0, dim), rows(dim + 1, k)}, 0), sizes);
}

Tensor each_line(const Tensor& of_lines, const Tensor& number) { return take(of_lines, number); }

// log(sum(exp)) is taken of values less their line's largest, which has no gradient.
Tensor softmax_of_values(const Tensor& values, const Tensor& number, int64_t count, bool log) {
  const Tensor fixed = op::detach(values);
  const Tensor index = op::expand(as_column(number, values), values.sizes(), false);
  const Tensor none =
      zeros(join({count}, slice(values.sizes(), 1, values.dim())), values.dtype(), values.device());
  const Tensor largest = op::scatter_reduce_two(none, 0, index, fixed, "amax", false);
  const Tensor shifted = sub(values, each_line(largest, number));
  const Tensor powers = op::exp(shifted);
  const Tensor sums = each_line(sum_rows(powers, number, count), number);
  return log ? sub(shifted, op::log(sums)) : op::div(powers, sums);
}

Tensor softmax(const Tensor& self, int64_t dim, bool log) {
  TD_CHECK(is_coo(self), "softmax: expected a sparse coordinate tensor, got layout {}",
           layout_name(self.layout()));
  const Tensor x = coalesced_with_history(self);
  const Tensor values = op::_sparse_values(x);
  const int64_t k = sparse_dim(x);
  if (dim >= k) {
    const int64_t within = dim - k + 1;
    return op::_sparse_with_values(x, log ? op::log_softmax(values, within, std::nullopt)
                                          : op::softmax(values, within, std::nullopt));
  }
  const auto [found, number, counts] = op::_unique2(lines_along(x, dim), true, true, false);
  return op::_sparse_with_values(x, softmax_of_values(values, number, found.numel(), log));
}

}  // namespace
}  // namespace sparse

namespace impl {
using namespace sparse;

Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) {
  TD_CHECK(sparse.is_sparse() || dense.is_sparse(),
           "sparse.mm: expected at least one sparse matrix, got two dense ones");
  return product_of(sparse, dense);
}

Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta, const Scalar& alpha) {
  TD_CHECK(self.layout() == Layout::kSparseCsr,
           "Expected self to be a tensor with layout torch.sparse_csr, got {}",
           layout_name(self.layout()));
  TD_CHECK(!mat1.is_sparse() && !mat2.is_sparse(),
           "sampled_addmm: expected mat1 and mat2 to be dense");
  TD_CHECK(self.dim() == 2 && mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0) &&
               mat1.size(0) == self.size(0) && mat2.size(1) == self.size(1),
           "sampled_addmm: sizes {} of self do not fit a product of {} and {}", self.sizes(),
           mat1.sizes(), mat2.sizes());
  const Rows rows = rows_of(self);
  const Tensor made = sampled(rows, mat1, mat2);
  return op::_sparse_with_values(self, op::add(op::mul(rows.values, Tensor(beta)), made, alpha));
}

Tensor _sparse_sum(const Tensor& self, IntSpan dim) {
  TD_CHECK(is_coo(self), "sparse.sum: expected a sparse coordinate tensor, got layout {}",
           layout_name(self.layout()));
  DimVector dims;
  for (const int64_t d : dim) dims.push_back(wrap_dim(d, self.dim()));
  return sum_over(self, dims, false);
}

Tensor _sparse_softmax(const Tensor& self, int64_t dim) { return softmax(self, dim, false); }
Tensor _sparse_log_softmax(const Tensor& self, int64_t dim) { return softmax(self, dim, true); }

Tensor embedding_sparse_backward(const Tensor& gy, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx) {
  const int64_t width = gy.size(-1);
  Tensor rows = cast(op::reshape(indices, {-1}), DType::kInt64);
  Tensor values = op::reshape(gy, {rows.numel(), width});
  if (padding_idx >= 0) {
    const Tensor kept = op::reshape(op::nonzero(op::ne(rows, Tensor(padding_idx))), {-1});
    rows = take(rows, kept);
    values = take(values, kept);
  }
  return op::_sparse_make_coo(op::unsqueeze(rows, 0), values, {num_weights, width}, false);
}

}  // namespace impl
}  // namespace taeda
