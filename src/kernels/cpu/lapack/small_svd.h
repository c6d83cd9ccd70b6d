// Singular values of small real matrices: a call of LAPACK takes longer than the arithmetic.
#pragma once

namespace taeda::cpu {

inline constexpr int kSmallSvd = 8;  // rows and columns at most

// The singular values of a finite matrix without gaps, row-major or column-major, in falling order:
// `lines` vectors of `length` numbers. False, with nothing written, where the iteration does not
// converge.
bool small_singular_values(const float* a, int lines, int length, float* values);
bool small_singular_values(const double* a, int lines, int length, double* values);

}  // namespace taeda::cpu
