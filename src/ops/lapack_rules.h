// Contracts and choices of ops/lapack, called from the table as rules.NAME(...). Those that
// return bool raise themselves, so that one message serves all operators.
#pragma once

#include <string_view>

#include "taeda/tensor.h"

namespace taeda::rules {

// At least two dimensions, whose sizes LAPACK can count; and square matrices.
bool matrices(std::string_view name, const Tensor& a);
bool square(std::string_view name, const Tensor& a);
// Whether LAPACK computes in this dtype; with a name, an error where it does not.
bool has_lapack(DType dtype);
bool lapack_type(std::string_view name, const Tensor& a);
// Whether elements are floating-point or complex.
bool inexact_matrices(std::string_view name, const Tensor& a);
// A X = B, or X A = B unless `left`.
bool solvable(std::string_view name, const Tensor& a, const Tensor& b, bool left);
// The same for square matrices in batches of one shape: what the kernels take.
bool solvable_batch(std::string_view name, const Tensor& a, const Tensor& b, bool left);
// Whether derivatives along `a` may be asked for.
bool is_differentiated(const Tensor& a);
// Whether an element is zero; false on the meta device.
bool has_zero(const Tensor& t);
bool has_nonzero(const Tensor& t);
// Whether det(A) inverse(A), or a derivative of it, is the adjugate or its derivative to most of
// the dtype's digits, for all matrices (but those that are not finite). True on the meta device.
bool divides_safely(const Tensor& a, const Tensor& inverse, const Tensor& det);
bool all_equal(const Tensor& t, int64_t value);

// LinAlgError or RuntimeError where LAPACK's status of a matrix is not 0.
void check_lu(std::string_view name, const Tensor& info);
void check_ldl(std::string_view name, const Tensor& info);
void check_inverse(std::string_view name, const Tensor& info);
void check_solve(std::string_view name, const Tensor& info);
void check_cholesky(std::string_view name, const Tensor& info);

// Below which singular values count as zero: absolutely, and relative to the largest.
double absolute_tolerance(OptDouble atol);
double relative_tolerance(OptDouble atol, OptDouble rtol, const Tensor& a);

bool is_lstsq_driver(std::optional<std::string_view> driver);
bool is_driver(std::optional<std::string_view> driver, std::string_view name);

// `dim`, or the first dimension of that size; RuntimeError where there is none.
int64_t first_of_size(IntSpan sizes, int64_t size, OptInt dim);

}  // namespace taeda::rules
