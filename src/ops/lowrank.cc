// Approximations of low rank of a matrix, by products with random vectors (Halko,
// Martinsson and Tropp 2011).
#include "base/interrupt.h"
#include "op/_approximate_basis.h"
#include "op/_cast.h"
#include "op/conj.h"
#include "op/div.h"
#include "op/expand.h"
#include "op/linalg_qr.h"
#include "op/linalg_svd.h"
#include "op/mH.h"
#include "op/matmul.h"
#include "op/mean.h"
#include "op/ones.h"
#include "op/randn.h"
#include "op/sub.h"
#include "op/svd_lowrank.h"
#include "op/transpose.h"

namespace taeda::impl {
namespace {

// The adjoint, of a sparse matrix without a conjugate view; of nothing nothing.
Tensor adjoint(const Tensor& A) {
  if (!A.defined() || !A.is_sparse()) return A.defined() ? op::mH(A) : A;
  return op::transpose(A.is_complex() ? op::conj(A) : A, -2, -1);
}

TensorOptions options_of(const Tensor& A, DType dtype) {
  TensorOptions options(dtype);
  options.device = A.device();
  return options;
}

// (A - M) x, in two products where A is sparse.
Tensor product(const Tensor& A, const Tensor& M, const Tensor& x) {
  if (!M.defined()) return op::matmul(A, x);
  if (!A.is_sparse()) return op::matmul(op::sub(A, M, 1), x);
  return op::sub(op::matmul(A, x), op::matmul(M, x), 1);
}

}  // namespace

Tensor _approximate_basis(const Tensor& A, int64_t q, OptInt niter, const Tensor& M) {
  const DType dtype = is_inexact(A.dtype()) ? A.dtype() : default_dtype();
  const Tensor wide = A.dtype() == dtype ? A : op::_cast(A, dtype, {});
  const auto columns = [](const Tensor& x) { return std::get<0>(op::linalg_qr(x, "reduced")); };
  const Tensor start = op::randn({A.size(-1), q}, nullptr, options_of(A, dtype));
  Tensor basis = columns(product(wide, M, start));
  for (int64_t i = 0; i < niter.value_or(2); i++) {
    check_interrupt();
    basis = columns(product(adjoint(wide), adjoint(M), basis));
    basis = columns(product(wide, M, basis));
  }
  return basis;
}

std::tuple<Tensor, Tensor, Tensor> svd_lowrank(const Tensor& A, OptInt q, OptInt niter,
                                               const Tensor& M) {
  const bool is_wide = A.size(-2) < A.size(-1);
  const Tensor mean = M.defined() ? op::expand(M, A.sizes(), false) : M;
  const Tensor tall = is_wide ? adjoint(A) : A, off = is_wide ? adjoint(mean) : mean;
  const Tensor basis = op::_approximate_basis(tall, q.value_or(6), niter, off);
  const Tensor projected = op::mH(product(adjoint(tall), adjoint(off), basis));
  const auto [U, S, Vh] = op::linalg_svd(projected, false, {});
  const Tensor left = op::matmul(basis, U), right = op::mH(Vh);
  if (is_wide) return {right, S, left};
  return {left, S, right};
}

// Where A is sparse the mean row stays apart, so that A stays sparse.
std::tuple<Tensor, Tensor, Tensor> pca_lowrank(const Tensor& A, OptInt q, bool center,
                                               int64_t niter) {
  const int64_t rows = A.size(-2), columns = A.size(-1), most = std::min(rows, columns);
  TD_CHECK_VALUE(!q || (*q >= 0 && *q <= most),
                 "q(={}) must be non-negative integer and not greater than min(m, n)={}",
                 q.value_or(0), most);
  TD_CHECK_VALUE(niter >= 0, "niter(={}) must be non-negative integer", niter);
  const int64_t rank = q.value_or(std::min<int64_t>(6, most));
  if (!center) return op::svd_lowrank(A, rank, niter, Tensor());
  if (!A.is_sparse()) {
    const Tensor mean = op::mean(A, IntSpan{-2}, true, {});
    return op::svd_lowrank(op::sub(A, mean, 1), rank, niter, Tensor());
  }
  TD_CHECK_VALUE(A.dim() == 2, "pca_lowrank input is expected to be 2-dimensional tensor");
  const Tensor ones = op::ones({rows, 1}, options_of(A, A.dtype()));
  const Tensor sums = op::transpose(op::matmul(op::transpose(A, -2, -1), ones), -2, -1);
  return op::svd_lowrank(A, rank, niter, op::div(sums, Tensor(rows)));
}

}  // namespace taeda::impl
