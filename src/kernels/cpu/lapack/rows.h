// Matrices whose rows are contiguous, as triangular systems (triangular.h) want them.
#pragma once

#include "kernels/cpu/lapack/lapack.h"
#include "kernels/cpu/lapack/lu.h"

namespace taeda::cpu {

// A matrix row by row, for what solves systems.
template <class T>
class Rows {
 public:
  Rows(int64_t rows, int64_t columns)
      : rows_(rows),
        columns_(columns),
        whole_((columns + lu_blocks<T>().slack) / (lu_blocks<T>().slack + 1) *
               (lu_blocks<T>().slack + 1)),
        stride_(padded<T>(whole_)),
        data_(rows * stride_) {
    if (whole_ != columns) std::fill_n(data_.data(), rows * stride_, T());
  }
  Strided<T> strided() const { return {data_.data(), stride_, 1}; }
  // The columns that are there, of which the last are zeros: whole vectors, storing a part of which
  // would take much longer.
  int64_t whole_columns() const { return whole_; }
  T* row(int64_t i) const { return data_.data() + i * stride_; }

  void load(const Matrices& m, const View& batch, int64_t i) const {
    const T* const from = batch.as<T>() + i * m.each;
    if (m.by_columns) return load_columns(from, rows_);
    for (int64_t r = 0; r < rows_; r++) std::copy_n(from + r * columns_, columns_, row(r));
  }
  // From columns that begin `apart` elements from each other.
  void load_columns(const T* from, int64_t apart) const {
    transpose_lines(data_.data(), stride_, from, apart, columns_, rows_);
  }
  void set_identity() const {
    std::fill_n(data_.data(), rows_ * stride_, T(0));
    for (int64_t r = 0; r < rows_; r++) row(r)[r] = T(1);
  }
  // The exchanges of a factorization, of rows.
  void exchange(const int* pivots) const {
    for (int64_t r = 0; r < rows_; r++)
      if (pivots[r] != r) std::swap_ranges(row(r), row(r) + columns_, row(pivots[r]));
  }
  void store_columns(T* to) const { store_columns(to, rows_); }
  void store_columns(T* to, int64_t apart) const {
    transpose_lines(to, apart, data_.data(), stride_, rows_, columns_);
  }

 private:
  const int64_t rows_, columns_, whole_, stride_;
  const Scratch<T> data_;
};

}  // namespace taeda::cpu
