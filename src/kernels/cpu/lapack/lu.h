// LU factorization with partial pivoting, by recursion on columns (Toledo, "Locality of reference
// in LU decomposition with partial pivoting", 1997).
//
// A matrix of few columns is factored column by column, as it lies in column-major memory. A larger
// one lies row by row, so that exchanging rows moves contiguous memory; panels of it are copied to
// columns and back.
#pragma once

#include <algorithm>
#include <complex>

#include "kernels/cpu/lapack/triangular.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {

constexpr int64_t kFewColumns = 32;    // of a matrix that is factored column by column
constexpr int64_t kPanelColumns = 16;  // of a larger one that are

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns
template <class T>
void transpose_lines(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                     int64_t columns);

// The factors of one matrix after the other of this size.
template <class T>
class Lu {
 public:
  Lu(int64_t rows, int64_t columns);
  // Copies a matrix without gaps and factors it: LAPACK's status.
  int factor(const T* a, bool by_columns);
  // The factors, column by column.
  void store(T* to) const;
  // Row j was exchanged with row pivots()[j], from 0.
  const int* pivots() const { return pivots_.data(); }
  Strided<const T> factors() const {
    const bool narrow = columns_ <= kFewColumns;
    return {a_.data(), narrow ? 1 : stride_, narrow ? stride_ : 1};
  }

 private:
  int factor_from(int64_t first, int64_t count);
  int factor_panel(int64_t first, int64_t count);
  const int64_t rows_, columns_, stride_, panel_stride_;
  const Scratch<T> a_, panel_;
  const Scratch<int> pivots_;
};

// A row's length in memory such that the elements of a column do not share sets of the cache.
template <class T>
int64_t padded(int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t lines = (n + kLine - 1) / kLine;
  return n < 8 * kLine ? n : (lines | 1) * kLine;
}

}  // namespace taeda::cpu
