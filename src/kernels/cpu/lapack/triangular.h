// Triangular systems of any size: B = A^-1 B by halves, whose products go to gemm.h and whose last
// 16 rows are solved by substitution (blocks.h).
#pragma once

#include "core/with_dtype.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/lapack/blocks.h"

namespace taeda::cpu {

// A matrix whose element (i, j) is data[i * row + j * column].
template <class T>
struct Strided {
  T* data;
  int64_t row, column;
  T* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
  Strided from(int64_t i, int64_t j) const { return {at(i, j), row, column}; }
  Strided transposed() const { return {data, column, row}; }
  Matrix sized(int64_t rows, int64_t columns) const {
    return {const_cast<std::remove_const_t<T>*>(data), rows, columns, row, column};
  }
};

// c -= a b on all threads.
template <class T>
void subtract_product(const Matrix& c, const Matrix& a, const Matrix& b) {
  parallel_gemm(kDTypeOf<T>, c, a, b, Scalar(-1), Scalar(1));
}

constexpr int64_t kSubstituted = 16;  // rows

// The first part of n rows that are cut in two.
inline int64_t first_half(int64_t n) {
  return (n / 2 + kSubstituted - 1) / kSubstituted * kSubstituted;
}

// A triangle of n rows; `unit`: its diagonal is of ones and not read.
struct Triangle {
  bool upper, unit;
};

// B, whose rows are contiguous, has `columns` of them.
template <class T>
void solve_triangle(Triangle t, int64_t n, const Strided<const T>& a, const Strided<T>& b,
                    int64_t columns) {
  if (n <= kSubstituted)
    return lu_blocks<T>().solve(
        {t.upper, t.unit, n, a.data, a.row, a.column, b.data, b.row, columns});
  const int64_t half = first_half(n), other = n - half;
  if (t.upper) {
    solve_triangle(t, other, a.from(half, half), b.from(half, 0), columns);
    subtract_product<T>(b.sized(half, columns), a.from(0, half).sized(half, other),
                        b.from(half, 0).sized(other, columns));
    return solve_triangle(t, half, a, b, columns);
  }
  solve_triangle(t, half, a, b, columns);
  subtract_product<T>(b.from(half, 0).sized(other, columns), a.from(half, 0).sized(other, half),
                      b.sized(half, columns));
  solve_triangle(t, other, a.from(half, half), b.from(half, 0), columns);
}

}  // namespace taeda::cpu
