// Eigenvalues and eigenvectors of small real symmetric matrices: a call of LAPACK takes longer than
// the arithmetic.
#pragma once

namespace taeda::cpu {

inline constexpr int kSmallEigh = 64;         // rows at most
inline constexpr int kSmallEighVectors = 32;  // the same, where vectors are asked for

// A = V diag(values) V^T; values ascend, V is column-major without gaps, or null: not computed.
// Element (i, j), i >= j, of A is a[i n + j], or a[j n + i] unless `by_rows`; no other is read.
// False, with nothing written, where an element is not finite, the iteration does not converge, or
// LAPACK is faster.
bool small_eigh(const float* a, int n, bool by_rows, float* values, float* vectors);
bool small_eigh(const double* a, int n, bool by_rows, double* values, double* vectors);

}  // namespace taeda::cpu
