// The innermost steps of LU factorizations and triangular systems, on a few rows or columns (lu.h,
// triangular.h), vectorized for real numbers.
#pragma once

#include <complex>
#include <cstdint>

namespace taeda::cpu {

// A triangle and a matrix B of as many rows, each of them contiguous. Element (i, j) of the
// triangle is a[i * row + j * column]; the other half is not read, nor is the diagonal of a `unit`
// one.
template <class T>
struct TriangleBlock {
  bool upper, unit;
  int64_t n;
  const T* a;
  int64_t row, column;
  T* b;
  int64_t b_row, columns;
};

template <class T>
struct LuBlocks {
  // B = A^-1 B by substitution. Zeros on the diagonal give infinities and NaN.
  void (*solve)(const TriangleBlock<T>& t);
  // L and U of P^T A in the place of a column-major matrix, without blocks. Row j was exchanged
  // with row pivots[j] >= j, the first of those whose element is largest (of complex ones |re| +
  // |im|). Returns the first column, from 1, whose pivot is 0; else 0. Behind each column there are
  // `slack` numbers that may be overwritten.
  int (*factor_columns)(T* a, int64_t ld, int64_t rows, int64_t columns, int* pivots);
  // L of A = L L^T, of real numbers, in the place of the lower triangle of a column-major matrix,
  // whose columns have slack. Returns the first column, from 1, whose pivot is not positive; else
  // 0.
  int (*factor_positive)(T* a, int64_t ld, int64_t n);
  int64_t slack;
};

// For the widest instruction set of this machine; T is real or complex.
template <class T>
const LuBlocks<T>& lu_blocks();
template <>
const LuBlocks<float>& lu_blocks();
template <>
const LuBlocks<double>& lu_blocks();
template <>
const LuBlocks<std::complex<float>>& lu_blocks();
template <>
const LuBlocks<std::complex<double>>& lu_blocks();

}  // namespace taeda::cpu
