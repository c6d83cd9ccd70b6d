// Sums, products and quotients with sparse tensors.
#include <algorithm>

#include "core/layout.h"
#include "op/add.h"
#include "op/cat.h"
#include "op/clamp_max.h"
#include "op/eq.h"
#include "op/expand.h"
#include "op/index.h"
#include "op/index_add_.h"
#include "op/index_put_.h"
#include "op/index_select.h"
#include "op/mul.h"
#include "op/nonzero.h"
#include "op/pow.h"
#include "op/reshape.h"
#include "op/searchsorted.h"
#include "op/slice.h"
#include "op/to_dtype.h"
#include "op/unbind.h"
#include "ops/rules.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
namespace {

// A number, or a dense tensor without dimensions: it scales all values.
bool is_factor(const Tensor& t) { return !t.is_sparse() && t.dim() == 0; }

Tensor scaled(const Tensor& values, const Scalar& factor) {
  return factor == Scalar(int64_t{1}) ? values : op::mul(values, Tensor(factor));
}

DType sum_type(const Tensor& a, const Tensor& b) { return rules::result_type(a, b); }

void check_sizes(const Tensor& a, const Tensor& b) {
  TD_CHECK(a.sizes() == b.sizes(),
           "add: expected sizes of 'self' and 'other' to match, but {} != {}", a.sizes(),
           b.sizes());
}

// The values of both; sums where both are coalesced.
Tensor sum_of_coo(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_sizes(a, b);
  TD_CHECK(
      sparse_dim(a) == sparse_dim(b),
      "add: expected 'self' and 'other' to have same number of sparse dimensions, but 'self' has "
      "{} while 'other' has {}",
      sparse_dim(a), sparse_dim(b));
  const SparseParts &p = sparse_parts(a), &q = sparse_parts(b);
  const DType dtype = sum_type(a, b);
  if (p.indices.is_same(q.indices)) return with_values(a, op::add(p.values, q.values, alpha));
  const Tensor values =
      op::cat(TensorList{cast(p.values, dtype), cast(scaled(q.values, alpha), dtype)}, 0);
  const Tensor all =
      make_coo(op::cat(TensorList{p.indices, q.indices}, 1), values, a.sizes(), false);
  return p.coalesced && q.coalesced ? coalesced(all) : all;
}

// Into `dense`, without more memory than the values take.
void add_into(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  const Tensor coo = as_coo(sparse);
  const SparseParts& parts = sparse_parts(coo);
  const Tensor values = cast(scaled(parts.values, alpha), dense.dtype());
  const int64_t k = sparse_dim(coo);
  if (k == 1) {
    op::index_add_(dense, 0, op::reshape(parts.indices, {parts.indices.numel()}), values,
                   Scalar(int64_t{1}));
  } else if (k > 1) {
    op::index_put_(dense, op::unbind(parts.indices, 0), values, true);
  } else {
    op::add_inplace(dense, op::reshape(as_dense(coo), dense.sizes()), alpha);
  }
}

Tensor sum_with_dense(const Call& call, const Tensor& dense, const Tensor& sparse,
                      const Scalar& alpha) {
  TD_CHECK(
      dense.sizes() == sparse.sizes(),
      "add: expected 'self' and 'other' to have same size, but self has size {} while other has "
      "size {} (FYI: dense-sparse addition does not currently support broadcasting)",
      dense.sizes(), sparse.sizes());
  const DType dtype = sum_type(dense, sparse);
  const bool in_place = call.into.defined() && call.into.is_same(dense);
  TD_CHECK(!in_place || can_cast(dtype, dense.dtype()),
           "Can't convert result type {} to output {} in add operation", scalar_type_name(dtype),
           scalar_type_name(dense.dtype()));
  const Tensor sum = in_place ? dense : op::to_dtype(dense, dtype, true, std::nullopt);
  add_into(sum, sparse, alpha);
  if (in_place) sum.impl()->bump_version();
  return sum;
}

Tensor sum_of(const Call& call, const Scalar& alpha) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (is_compressed(a) && !b.is_sparse()) return sum_with_dense(call, scaled(b, alpha), a, 1);
  TD_CHECK(b.is_sparse() || !a.is_sparse(),
           "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  if (!a.is_sparse()) return sum_with_dense(call, a, b, alpha);
  if (is_coo(a) && is_coo(b)) return sum_of_coo(a, b, alpha);
  if (a.layout() != b.layout() || is_blocked(a.layout())) unable(call);
  const Tensor sum = sum_of_coo(coalesced(as_coo(a)), coalesced(as_coo(b)), alpha);
  return as_compressed(sum, a.layout(), {});
}

Scalar negative(const Scalar& x) {
  if (x.is_complex()) return Scalar(-x.to<std::complex<double>>());
  return x.is_integral() ? Scalar(-x.to_int()) : Scalar(-x.to_double());
}

// The elements of `dense`, broadcast, where `sparse` has values.
Tensor picked(const Tensor& dense, const Tensor& sparse) {
  const SparseParts& parts = sparse_parts(sparse);
  const Tensor all = op::expand(dense, sparse.sizes(), false);
  if (parts.indices.size(0) == 0) return op::expand(all, parts.values.sizes(), false);
  return op::index(all, op::unbind(parts.indices, 0));
}

Tensor as_layout_of(const Tensor& coo, const Tensor& like) {
  if (is_coo(like)) return coo;
  DimVector block;
  if (is_blocked(like.layout())) {
    const Tensor& plain = sparse_parts(like).plain;
    block = slice(sparse_parts(like).values.sizes(), plain.dim(), plain.dim() + 2);
  }
  return as_compressed(coo, like.layout(), block);
}

Tensor product_with_dense(const Tensor& sparse, const Tensor& dense) {
  const DimVector sizes = broadcast_shapes(sparse.sizes(), dense.sizes());
  TD_CHECK(IntSpan(sizes) == sparse.sizes(),
           "mul(sparse, dense): the dense tensor of sizes {} must broadcast to the sparse one's {}",
           dense.sizes(), sparse.sizes());
  const Tensor coo = as_coo(sparse);
  return as_layout_of(with_values(coo, op::mul(sparse_parts(coo).values, picked(dense, coo))),
                      sparse);
}

// Where both have values.
Tensor product_of_coo(const Tensor& x, const Tensor& y) {
  TD_CHECK(x.sizes() == y.sizes(), "mul operands have incompatible sizes: {} and {}", x.sizes(),
           y.sizes());
  const Tensor a = coalesced(x), b = coalesced(y);
  const SparseParts &p = sparse_parts(a), &q = sparse_parts(b);
  TD_CHECK(sparse_dim(a) == sparse_dim(b),
           "mul operands have different numbers of sparse dimensions");
  const DimVector sizes = slice(a.sizes(), 0, sparse_dim(a));
  if (nnz(b) == 0)
    return with_values(make_empty_coo(a.sizes(), sparse_dim(a), a.dtype(), a.device()),
                       op::mul(op::slice(p.values, 0, 0, 0, 1), q.values));
  const Tensor ours = linear_indices(p.indices, sizes), theirs = linear_indices(q.indices, sizes);
  const Tensor found = op::searchsorted(theirs, ours, false, false, std::nullopt, Tensor());
  const Tensor nearest = op::clamp_max(found, Tensor(nnz(b) - 1));
  const Tensor both = op::reshape(op::nonzero(op::eq(take(theirs, nearest), ours)), {-1});
  const Tensor values = op::mul(take(p.values, both), take(q.values, take(nearest, both)));
  return make_coo(op::index_select(p.indices, 1, both), values, a.sizes(), true);
}

}  // namespace

void add(Call& call) { call.give(sum_of(call, call.stack[2].scalar())); }
void sub(Call& call) { call.give(sum_of(call, negative(call.stack[2].scalar()))); }

void mul(Call& call) {
  Tensor a = call.tensor(0), b = call.tensor(1);
  if (!a.is_sparse()) std::swap(a, b);
  if (is_factor(b)) {
    call.give(with_values(a, op::mul(sparse_parts(a).values, b)));
  } else if (!b.is_sparse()) {
    call.give(product_with_dense(a, b));
  } else {
    if (a.layout() != b.layout()) unable(call);
    call.give(as_layout_of(product_of_coo(as_coo(a), as_coo(b)), a));
  }
}

namespace {

Tensor quotient(const Call& call, bool exact) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  TD_CHECK(a.is_sparse() && is_factor(b),
           "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for "
           "divisor)",
           b.sizes());
  const Tensor like = exact || !is_coo(a) ? a : coalesced(a);
  Stack args = call.stack;
  args[0] = sparse_parts(like).values;
  return with_values(like, run_plain(call, std::move(args)));
}

}  // namespace

void div(Call& call) { call.give(quotient(call, true)); }
void div_floor(Call& call) { call.give(quotient(call, false)); }
void div_trunc(Call& call) { call.give(quotient(call, false)); }
void floor_divide(Call& call) { call.give(quotient(call, false)); }

void pow(Call& call) {
  const Tensor exponent = call.tensor(1);
  if (!call.tensor(0).is_sparse() || !is_factor(exponent)) unable(call);
  const Tensor like = is_coo(call.tensor(0)) ? coalesced(call.tensor(0)) : call.tensor(0);
  call.give(with_values(like, op::pow(sparse_parts(like).values, exponent)));
}

// Of relu: gy where self's values are above the threshold. Both have one pattern.
void threshold_backward(Call& call) {
  const Tensor gy = call.tensor(0), self = call.tensor(1);
  if (!gy.is_sparse() || !self.is_sparse()) unable(call);
  const Tensor a = is_coo(gy) ? coalesced(gy) : gy, b = is_coo(self) ? coalesced(self) : self;
  TD_CHECK(nnz(a) == nnz(b), "threshold_backward: gradient and tensor have different patterns");
  Stack args = call.stack;
  args[0] = sparse_parts(a).values;
  args[1] = sparse_parts(b).values;
  call.give(with_values(a, run_plain(call, std::move(args))));
}

}  // namespace taeda::sparse
