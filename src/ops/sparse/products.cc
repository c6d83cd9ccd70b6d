// Products with sparse matrices.
#include "op/_coalesce.h"
#include "op/_sparse_make_coo.h"
#include "op/_sparse_values.h"
#include "op/_to_sparse.h"
#include "op/_to_sparse_compressed.h"
#include "op/add.h"
#include "op/bag_dots.h"
#include "op/bag_sum.h"
#include "op/cumsum.h"
#include "op/mul.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/stack.h"
#include "op/sum.h"
#include "op/transpose.h"
#include "op/unsqueeze.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"
#include "ops/sparse/rows.h"

namespace taeda::sparse {
namespace {

bool has_kernel(DType dtype) { return is_floating(dtype) && !is_storage_type(dtype); }

Tensor heads(const Tensor& begins) { return op::slice(begins, 0, 0, -1, 1); }
Tensor counts_of(const Tensor& begins) {
  return sub(op::slice(begins, 0, 1, std::nullopt, 1), heads(begins));
}

// Coalesced, with the history of `t`.
Tensor differentiable_coo(const Tensor& t) {
  const Tensor coo = is_coo(t) ? t : op::_to_sparse(t, 2);
  return sparse_parts(coo).coalesced ? coo : op::_coalesce(coo);
}

}  // namespace

Rows rows_of(const Tensor& matrix) {
  TD_CHECK(matrix.dim() == 2 && dense_dim(matrix) == 0,
           "expected a sparse matrix without dense dimensions, got {} of sizes {}",
           layout_name(matrix.layout()), matrix.sizes());
  const bool by_rows = matrix.layout() == Layout::kSparseCsr;
  const Tensor t = by_rows ? matrix : differentiable_coo(matrix);
  const SparseParts& parts = sparse_parts(t);
  if (by_rows)
    return {cast(parts.indices, DType::kInt64), cast(parts.plain, DType::kInt64),
            op::_sparse_values(t), t.size(1)};
  return {offsets_of(op::select(parts.indices, 0, 0), t.size(0)), op::select(parts.indices, 0, 1),
          op::_sparse_values(t), t.size(1)};
}

Tensor row_numbers(const Rows& rows) {
  return op::repeat_interleave_tensor(counts_of(rows.begins), std::nullopt);
}

Tensor times(const Rows& rows, const Tensor& dense) {
  if (has_kernel(rows.values.dtype()))
    return op::bag_sum(dense, rows.columns, rows.begins, rows.values);
  const Tensor terms = op::mul(take(dense, rows.columns), op::unsqueeze(rows.values, 1));
  return sum_rows(terms, row_numbers(rows), rows.begins.size(0) - 1);
}

Tensor sampled(const Rows& rows, const Tensor& left, const Tensor& right) {
  const Tensor columns = op::transpose(right, 0, 1);
  if (has_kernel(left.dtype())) return op::bag_dots(left, columns, rows.columns, rows.begins);
  const Tensor terms = op::mul(take(left, row_numbers(rows)), take(columns, rows.columns));
  return op::sum(terms, IntSpan({1}), false, std::nullopt);
}

Tensor times(const Rows& left, const Rows& right) {
  const Tensor counts = take(counts_of(right.begins), left.columns);
  const Tensor which = op::repeat_interleave_tensor(counts, std::nullopt);
  const Tensor before = sub(op::cumsum(counts, 0, std::nullopt), counts);
  const Tensor first = sub(take(heads(right.begins), left.columns), before);
  const Tensor place = add(take(first, which), arange(which.numel(), which.device()));
  const Tensor indices =
      op::stack(TensorList{take(row_numbers(left), which), take(right.columns, place)}, 0);
  const Tensor values = op::mul(take(left.values, which), take(right.values, place));
  const int64_t height = left.begins.size(0) - 1;
  return op::_coalesce(op::_sparse_make_coo(indices, values, {height, right.width}, false));
}

namespace {

void check_product(const Tensor& a, const Tensor& b) {
  TD_CHECK(a.dim() == 2 && b.dim() == 2,
           "mm: Argument #1: Expected matrices, got tensors of {} and {} dimensions", a.dim(),
           b.dim());
  TD_CHECK(a.size(1) == b.size(0),
           "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})\nFix: the first has {} "
           "columns and the second {} rows, which must be equal: transpose one",
           a.size(0), a.size(1), b.size(0), b.size(1), a.size(1), b.size(0));
  TD_CHECK(a.dtype() == b.dtype(), "expected scalar type {} but found {}",
           scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
}

}  // namespace

Tensor product_of(const Tensor& a, const Tensor& b) {
  check_product(a, b);
  if (!b.is_sparse()) return times(rows_of(a), b);
  if (!a.is_sparse()) {
    const Tensor other = op::transpose(b, 0, 1);
    return op::transpose(times(rows_of(other), op::transpose(a, 0, 1)), 0, 1);
  }
  const Tensor both = times(rows_of(a), rows_of(b));
  return is_coo(a) || is_coo(b) ? both : op::_to_sparse_compressed(both, "csr", IntSpan(), 0);
}

namespace {

Tensor scaled(const Tensor& t, const Scalar& factor) {
  return factor == Scalar(int64_t{1}) ? t : op::mul(t, Tensor(factor));
}

// beta * input + alpha * product. With beta = 0 the input is not read: its NaN does not count.
Tensor added(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Tensor one = scaled(product, alpha);
  if (beta == Scalar(int64_t{0})) return one;
  const Tensor other = scaled(input, beta);
  return one.is_sparse() ? op::add(other, one, Scalar(int64_t{1}))
                         : op::add(one, other, Scalar(int64_t{1}));
}

}  // namespace

void mm(Call& call) { call.give(product_of(call.tensor(0), call.tensor(1))); }

void addmm(Call& call) {
  const Tensor made = product_of(call.tensor(1), call.tensor(2));
  TD_CHECK(made.is_sparse() || !call.tensor(0).is_sparse(),
           "addmm: Expected 'self' to be dense where the product is, got a tensor of layout {}",
           layout_name(call.tensor(0).layout()));
  call.give(added(call.tensor(0), made, call.stack[3].scalar(), call.stack[4].scalar()));
}

namespace {

Tensor times_vector(const Tensor& matrix, const Tensor& vector) {
  TD_CHECK(matrix.is_sparse() && !vector.is_sparse() && matrix.dim() == 2 && vector.dim() == 1,
           "mv: expected a sparse matrix and a dense vector, got sizes {} and {}", matrix.sizes(),
           vector.sizes());
  const Tensor column = op::unsqueeze(vector, 1);
  return op::select(product_of(matrix, column), 1, 0);
}

}  // namespace

void mv(Call& call) { call.give(times_vector(call.tensor(0), call.tensor(1))); }

void addmv(Call& call) {
  const Tensor made = times_vector(call.tensor(1), call.tensor(2));
  call.give(added(call.tensor(0), made, call.stack[3].scalar(), call.stack[4].scalar()));
}

// Of a matrix of features, most of which are 0.
void linear(Call& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1);
  const bool biased = call.stack[2].is_tensor();
  if (!x.is_sparse() || x.dim() != 2 || weight.is_sparse() || weight.dim() != 2) unable(call);
  const Tensor made = product_of(x, op::transpose(weight, 0, 1));
  call.give(biased ? op::add(made, call.tensor(2), Scalar(int64_t{1})) : made);
}

// A batch is one matrix with the samples' on its diagonal.
void bmm(Call& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  TD_CHECK(is_coo(a) && sparse_dim(a) == 3 && a.dim() == 3,
           "bmm: batch1 must be a 3D sparse coordinate tensor");
  TD_CHECK(!b.is_sparse(), "bmm_sparse: Tensor 'mat2' must be dense");
  TD_CHECK(
      b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
      "bmm: Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: {}.",
      a.size(0), a.size(2), b.sizes());
  const SparseParts& parts = sparse_parts(a);
  const auto row = [&](int64_t d) { return op::select(parts.indices, 0, d); };
  const Tensor rows = add(mul(row(0), a.size(1)), row(1)),
               columns = add(mul(row(0), a.size(2)), row(2));
  const int64_t count = a.size(0), width = b.size(2);
  const Tensor diagonal = make_coo(op::stack(TensorList{rows, columns}, 0), parts.values,
                                   {count * a.size(1), count * a.size(2)}, parts.coalesced);
  const Tensor made = product_of(diagonal, op::reshape(b, {count * a.size(2), width}));
  call.give(op::reshape(made, {count, a.size(1), width}));
}

}  // namespace taeda::sparse
