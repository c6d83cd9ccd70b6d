// Linear algebra on LAPACK: the contracts of ops/lapack and what has no expression.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op/_cholesky_solve_value.h"
#include "op/_linalg_cofactors_tangent_value.h"
#include "op/_linalg_cofactors_value.h"
#include "op/_linalg_det_value.h"
#include "op/_linalg_pinv_value.h"
#include "op/_linalg_slogdet_value.h"
#include "op/abs.h"
#include "op/add.h"
#include "op/amax.h"
#include "op/any.h"
#include "op/cat.h"
#include "op/clone.h"
#include "op/diag_embed.h"
#include "op/diagonal.h"
#include "op/eq.h"
#include "op/eye.h"
#include "op/fill_.h"
#include "op/ge.h"
#include "op/isfinite.h"
#include "op/logical_and.h"
#include "op/logical_not.h"
#include "op/logical_or.h"
#include "op/lt.h"
#include "op/mH.h"
#include "op/matmul.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/new_zeros.h"
#include "op/real.h"
#include "op/reshape.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/tril.h"
#include "op/zeros.h"
#include "ops/batching/level.h"
#include "ops/contract.h"
#include "ops/host.h"
#include "ops/lapack_rules.h"

namespace taeda {

namespace rules {

bool matrices(std::string_view name, const Tensor& a) {
  TD_CHECK(a.dim() >= 2, "{}: The input tensor A must have at least 2 dimensions.", name);
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  TD_CHECK(a.size(-2) <= kLargest && a.size(-1) <= kLargest,
           "{}: matrices of more than 2^31 - 1 rows or columns, got {}", name, a.sizes());
  return true;
}

bool square(std::string_view name, const Tensor& a) {
  matrices(name, a);
  TD_CHECK(a.size(-1) == a.size(-2),
           "{}: A must be batches of square matrices, but they are {} by {} matrices", name,
           a.size(-2), a.size(-1));
  return true;
}

bool has_lapack(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kComplex64 ||
         dtype == DType::kComplex128;
}

bool inexact_matrices(std::string_view name, const Tensor& a) {
  TD_CHECK(is_inexact(a.dtype()),
           "{}: Expected a floating point or complex tensor as input. Got {}", name,
           scalar_type_name(a.dtype()));
  return true;
}

bool lapack_type(std::string_view name, const Tensor& a) {
  if (has_lapack(a.dtype())) return true;
  const bool of_kernel = name.find('.') == std::string_view::npos && name != "logdet";
  TD_CHECK_AS(ErrorKind::kNotImplemented, !of_kernel, "\"{}_cpu\" not implemented for '{}'", name,
              scalar_type_name(a.dtype()));
  inexact_matrices(name, a);
  fail(ErrorKind::kRuntime, "{}: Low precision dtypes not supported. Got {}", name,
       scalar_type_name(a.dtype()));
}

bool solvable(std::string_view name, const Tensor& a, const Tensor& b, bool left) {
  TD_CHECK(a.size(-1) == (left ? b.size(-2) : b.size(-1)),
           "{}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})", name,
           left ? "AX = B" : "XA = B", a.size(-2), a.size(-1), b.size(-2), b.size(-1));
  return true;
}

bool solvable_batch(std::string_view name, const Tensor& a, const Tensor& b, bool left) {
  square(name, a);
  matrices(name, b);
  const size_t batch = a.sizes().size() - 2;
  TD_CHECK(a.dim() == b.dim() && a.sizes().slice(0, batch) == b.sizes().slice(0, batch),
           "{}: batches of different shapes, {} and {}", name, a.sizes(), b.sizes());
  return solvable(name, a, b, left);
}

bool is_differentiated(const Tensor& a) {
  return a.requires_grad() || a.impl()->keys.has(Key::kForward) || batching::is_batched(a);
}

bool has_zero(const Tensor& t) {
  return known_true(op::any(op::eq(t, Tensor(0)), std::nullopt, false));
}

bool has_nonzero(const Tensor& t) { return known_true(op::any(t, std::nullopt, false)); }

namespace {

// The largest sum of sizes in a column of each matrix.
Tensor norm_1(const Tensor& a) {
  return op::amax(op::sum(op::abs(a), DimVector{-2}, false, std::nullopt), DimVector{-1}, false);
}

}  // namespace

bool divides_safely(const Tensor& a, const Tensor& inverse, const Tensor& det) {
  if (a.numel() == 0) return true;
  const ExcludeKeys values_only(KeySet(Key::kAutograd) | Key::kForward);
  const bool single = to_real(a.dtype()) == DType::kFloat32;
  const double least =
      single ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double epsilon =
      single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  // Both ways lose digits in proportion to the condition number, this one also those of the
  // smallest singular value: for 1e5 in single and 3e10 in double precision, a third remains.
  const Tensor size = norm_1(a), magnitude = op::abs(det);
  const Tensor condition = op::mul(size, norm_1(inverse));
  const Tensor fine = op::logical_and(
      op::logical_and(op::ge(magnitude, Tensor(Scalar(least))), op::isfinite(magnitude)),
      op::lt(condition, Tensor(Scalar(std::pow(epsilon, -2.0 / 3)))));
  const Tensor unknown = op::logical_not(op::isfinite(size));
  const Tensor either = op::logical_or(fine, unknown);
  return !known_true(op::any(op::logical_not(either), std::nullopt, false));
}

bool all_equal(const Tensor& t, int64_t value) {
  const Tensor differs = op::any(op::ne(t, Tensor(value)), std::nullopt, false);
  const HostElements<Bool> samples(batching::all_samples(differs));
  return samples.size() > 0 &&
         std::none_of(samples.begin(), samples.end(), [](Bool b) { return static_cast<bool>(b); });
}

namespace {

// The first matrix of a batch whose status is not 0, and "NAME: (Batch element I): ".
struct Failure {
  Failure(std::string_view name, const Tensor& info) {
    const HostElements<int32_t> codes(batching::all_samples(info));
    const auto failed = std::find_if(codes.begin(), codes.end(), [](int32_t c) { return c != 0; });
    if (failed == codes.end()) return;
    code = *failed;
    where = info.dim() > 0 ? format("{}: (Batch element {}): ", name, failed - codes.begin())
                           : format("{}: ", name);
  }
  int code = 0;
  std::string where;
};

}  // namespace

void check_lu(std::string_view name, const Tensor& info) {
  const Failure f(name, info);
  TD_CHECK(f.code == 0,
           "{}U[{},{}] is zero and using it on lu_solve would result in a division by zero. If you "
           "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
           "linalg.lu_factor_ex(A, pivot)",
           f.where, f.code, f.code);
}

void check_ldl(std::string_view name, const Tensor& info) {
  const Failure f(name, info);
  TD_CHECK(f.code == 0,
           "{}D[{},{}] is zero: the matrix is singular. If you still want its factors, call "
           "linalg.ldl_factor_ex",
           f.where, f.code, f.code);
}

void check_inverse(std::string_view name, const Tensor& info) {
  const Failure f(name, info);
  TD_CHECK_AS(ErrorKind::kLinAlg, f.code == 0,
              "{}The diagonal element {} is zero, the inversion could not be completed because the "
              "input matrix is singular.",
              f.where, f.code);
}

void check_solve(std::string_view name, const Tensor& info) {
  const Failure f(name, info);
  TD_CHECK_AS(ErrorKind::kLinAlg, f.code == 0,
              "{}The solver failed because the input matrix is singular.", f.where);
}

void check_cholesky(std::string_view name, const Tensor& info) {
  const Failure f(name, info);
  TD_CHECK_AS(ErrorKind::kLinAlg, f.code == 0,
              "{}The factorization could not be completed because the input is not "
              "positive-definite (the leading minor of order {} is not positive-definite).",
              f.where, f.code);
}

double absolute_tolerance(OptDouble atol) { return atol.value_or(0.0); }

double relative_tolerance(OptDouble atol, OptDouble rtol, const Tensor& a) {
  if (rtol) return *rtol;
  if (atol && *atol > 0) return 0;
  const bool single = to_real(a.dtype()) == DType::kFloat32;
  const double epsilon =
      single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
}

bool is_driver(std::optional<std::string_view> driver, std::string_view name) {
  return driver.value_or("gelsy") == name;
}
bool is_lstsq_driver(std::optional<std::string_view> driver) {
  return is_driver(driver, "gels") || is_driver(driver, "gelsy") || is_driver(driver, "gelsd") ||
         is_driver(driver, "gelss");
}

int64_t first_of_size(IntSpan sizes, int64_t size, OptInt dim) {
  if (dim) return *dim;
  const auto found = std::find(sizes.begin(), sizes.end(), size);
  TD_CHECK(found != sizes.end(), "no dimension of size {} in input", size);
  return found - sizes.begin();
}

}  // namespace rules

namespace impl {

Tensor _cholesky_solve(const Tensor& b, const Tensor& l, bool upper) {
  return op::_cholesky_solve_value(b, l, upper);
}
Tensor linalg_det(const Tensor& a) { return op::_linalg_det_value(a); }
Tensor _linalg_cofactors(const Tensor& a) { return op::_linalg_cofactors_value(a); }
Tensor _linalg_cofactors_tangent(const Tensor& tangent, const Tensor& a) {
  return op::_linalg_cofactors_tangent_value(tangent, a);
}
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& a) { return op::_linalg_slogdet_value(a); }

namespace {

// The Hermitian matrix whose lower triangle is that of `a`; only the diagonal's real part counts.
Tensor hermitian_from_lower(const Tensor& a) {
  const Tensor below = op::tril(a, -1);
  const Tensor both = op::add(below, op::mH(below), Scalar(1));
  const Tensor diagonal = op::real(op::diagonal(a, 0, -2, -1));
  return op::add(both, op::diag_embed(diagonal, 0, -2, -1), Scalar(1));
}

}  // namespace

Tensor linalg_pinv(const Tensor& self, OptDouble atol, OptDouble rtol, bool hermitian) {
  TD_CHECK(!hermitian || self.size(-1) == self.size(-2),
           "linalg.pinv: A must be batches of square matrices, but they are {} by {} matrices",
           self.size(-2), self.size(-1));
  return op::_linalg_pinv_value(hermitian ? hermitian_from_lower(self) : self, atol, rtol);
}

namespace {

// The largest 1-norm of some matrices; 0 where it is not finite.
double largest_norm(const Tensor& a) {
  const Tensor sums = op::sum(op::abs(a), DimVector{-2}, false, std::nullopt);
  const OptScalar known = known_number(op::amax(sums, IntSpan(), false));
  const double norm = known ? known->to_double() : 0;
  return std::isfinite(norm) ? norm : 0;
}

// Groups of three terms of the exponential's series, up to 18, whose rest is below half the
// precision for matrices of this norm, at most 1. Where the norm is not known, all.
int groups_of_terms(double norm, DType dtype) {
  constexpr int kMost = 6;
  const double precision = to_real(dtype) == DType::kFloat32
                               ? std::numeric_limits<float>::epsilon()
                               : std::numeric_limits<double>::epsilon();
  if (norm == 0) return kMost;
  double rest = norm;  // norm^(m + 1) / (m + 1)! for m terms
  for (int m = 0, groups = 0; groups < kMost; groups++) {
    for (const int end = m + 3; m < end; m++) rest *= norm / (m + 2);
    if (rest < precision / 8) return groups + 1;
  }
  return kMost;
}

}  // namespace

// exp(A) = exp(A / 2^s)^(2^s) for a norm of at most 1. The series is a polynomial in X^3 whose
// coefficients are polynomials of degree 2 in X, which saves products (Paterson and Stockmeyer, "On
// the number of nonscalar multiplications necessary to evaluate polynomials", 1973).
Tensor linalg_matrix_exp(const Tensor& self) {
  if (self.numel() == 0) return op::clone(self, std::nullopt);
  if (is_reduced_floating(self.dtype())) {  // each squaring would double the error of rounding
    const Tensor wide = op::to_dtype(self, DType::kFloat32, false, std::nullopt);
    return op::to_dtype(linalg_matrix_exp(wide), self.dtype(), false, std::nullopt);
  }
  const double norm = largest_norm(self);
  const int squarings = norm > 1 ? static_cast<int>(std::ceil(std::log2(norm))) : 0;
  const int groups = groups_of_terms(std::ldexp(norm, -squarings), self.dtype());
  const Tensor x = op::mul(self, Tensor(std::ldexp(1.0, -squarings)));
  const Tensor x2 = op::matmul(x, x), x3 = op::matmul(x2, x);
  TensorOptions like_self(self.dtype());
  like_self.device = self.device();
  const Tensor one = op::eye(self.size(-1), like_self);
  double inverses[3 * 6 + 1] = {1};  // of factorials
  for (int k = 1; k <= 3 * groups; k++) inverses[k] = inverses[k - 1] / k;
  const auto coefficient = [&](int group) {
    const double* c = inverses + ptrdiff_t{3} * group;
    const Tensor linear = op::add(op::mul(x, Tensor(c[1])), one, c[0]);
    return op::add(linear, x2, c[2]);
  };
  Tensor sum = op::add(coefficient(groups - 1), x3, inverses[3 * groups]);
  for (int group = groups - 2; group >= 0; group--)
    sum = op::add(op::matmul(x3, sum), coefficient(group), 1);
  for (int i = 0; i < squarings; i++) sum = op::matmul(sum, sum);
  return sum;
}

Tensor block_diag(TensorSpan tensors) {
  TensorList rows;
  int64_t columns = 0, before = 0;
  DType dtype = DType::kBool;
  for (size_t i = 0; i < tensors.size(); i++) {
    const Tensor& t = tensors[i];
    TD_CHECK(t.dim() <= 2,
             "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} "
             "dimensions",
             i, t.dim());
    columns += t.dim() == 0 ? 1 : t.size(-1);
    dtype = i ? promote_types(dtype, t.dtype()) : t.dtype();
  }
  for (const Tensor& t : tensors) {
    const int64_t width = t.dim() == 0 ? 1 : t.size(-1), height = t.dim() < 2 ? 1 : t.size(0);
    const Tensor block =
        op::to_dtype(op::reshape(t, DimVector{height, width}), dtype, false, std::nullopt);
    const Tensor left = op::new_zeros(block, DimVector{height, before}, {});
    const Tensor right = op::new_zeros(block, DimVector{height, columns - before - width}, {});
    rows.push_back(op::cat(TensorList{left, block, right}, 1));
    before += width;
  }
  if (rows.empty()) return op::zeros(DimVector{1, 0}, {});
  return op::cat(rows, 0);
}

Tensor fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap) {
  TD_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  if (self.dim() > 2) {
    for (int64_t n : self.sizes())
      TD_CHECK(n == self.size(0), "all dimensions of input must be of equal length");
    Tensor diagonal = op::diagonal(self, 0, 0, 1);
    while (diagonal.dim() > 1) diagonal = op::diagonal(diagonal, 0, 0, diagonal.dim() - 1);
    op::fill_(diagonal, Tensor(value));
    return self;
  }
  const int64_t rows = self.size(0), columns = self.size(1);
  for (int64_t row = 0; row < rows; row += columns + 1) {
    const Tensor part = op::narrow(self, 0, row, rows - row);
    op::fill_(op::diagonal(part, 0, 0, 1), Tensor(value));
    if (!wrap) break;
  }
  return self;
}

}  // namespace impl
}  // namespace taeda
