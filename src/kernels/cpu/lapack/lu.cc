#include "kernels/cpu/lapack/lu.h"

#include "base/interrupt.h"
#include "kernels/cpu/gemm/sgemm.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kTile = 32;

template <class T>
void transpose_tile(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                    int64_t columns) {
  if constexpr (std::is_same_v<T, float>) {
    if (rows >= 4 && columns >= 16)
      return sgemm_tiles().transpose(to, to_stride, from, from_stride, rows, columns);
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace

template <class T>
void transpose_lines(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                     int64_t columns) {
  for (int64_t i = 0; i < rows; i += kTile)
    for (int64_t j = 0; j < columns; j += kTile)
      transpose_tile(to + j * to_stride + i, to_stride, from + i * from_stride + j, from_stride,
                     std::min(kTile, rows - i), std::min(kTile, columns - j));
}

template <class T>
Lu<T>::Lu(int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      stride_(columns <= kFewColumns ? rows + lu_blocks<T>().slack : padded<T>(columns)),
      panel_stride_(padded<T>(rows + lu_blocks<T>().slack)),
      a_(columns <= kFewColumns ? columns * stride_ : rows * stride_),
      panel_(columns <= kFewColumns ? 0 : panel_stride_ * kPanelColumns),
      pivots_(std::min(rows, columns)) {
  if (columns <= kFewColumns) std::fill_n(a_.data(), columns * stride_, T());
}

template <class T>
int Lu<T>::factor(const T* a, bool by_columns) {
  const bool narrow = columns_ <= kFewColumns;
  const int64_t lines = narrow ? columns_ : rows_, length = narrow ? rows_ : columns_;
  if (narrow == by_columns) {
    for (int64_t i = 0; i < lines; i++) std::copy_n(a + i * length, length, &a_[i * stride_]);
  } else {
    transpose_lines(a_.data(), stride_, a, lines, length, lines);
  }
  if (narrow)
    return lu_blocks<T>().factor_columns(a_.data(), stride_, rows_, columns_, pivots_.data());
  const int64_t k = std::min(rows_, columns_);
  const int info = factor_from(0, k);
  const Strided<T> all{a_.data(), stride_, 1};
  solve_triangle<T>({false, true}, k, factors(), all.from(0, k), columns_ - k);
  return info;
}

template <class T>
void Lu<T>::store(T* to) const {
  if (columns_ > kFewColumns)
    return transpose_lines(to, rows_, a_.data(), stride_, rows_, columns_);
  for (int64_t j = 0; j < columns_; j++) std::copy_n(&a_[j * stride_], rows_, to + j * rows_);
}

// Columns first to first + count, from row `first` on. What is left of them is factored, what is
// right of them only has its rows exchanged.
template <class T>
int Lu<T>::factor_from(int64_t first, int64_t count) {
  check_interrupt();
  if (count <= kPanelColumns) return factor_panel(first, count);
  const int64_t half = first_half(count), other = count - half, middle = first + half,
                below = rows_ - middle;
  const int info = factor_from(first, half);
  const Strided<T> a{a_.data(), stride_, 1};
  solve_triangle<T>({false, true}, half, factors().from(first, first), a.from(first, middle),
                    other);
  subtract_product<T>(a.from(middle, middle).sized(below, other),
                      a.from(middle, first).sized(below, half),
                      a.from(first, middle).sized(half, other));
  const int second = factor_from(middle, other);
  return info != 0 || second == 0 ? info : second;
}

template <class T>
int Lu<T>::factor_panel(int64_t first, int64_t count) {
  const int64_t rows = rows_ - first, length = panel_stride_;
  T* const corner = &a_[first * stride_ + first];
  int* const pivots = &pivots_[first];
  transpose_lines(panel_.data(), length, corner, stride_, rows, count);
  const int info = lu_blocks<T>().factor_columns(panel_.data(), length, rows, count, pivots);
  for (int64_t j = 0; j < count; j++) {
    pivots[j] += static_cast<int>(first);
    if (pivots[j] == first + j) continue;
    T* const row = &a_[(first + j) * stride_];
    std::swap_ranges(row, row + columns_, &a_[pivots[j] * stride_]);
  }
  transpose_lines(corner, stride_, panel_.data(), length, count, rows);
  return info == 0 ? 0 : info + static_cast<int>(first);
}

#define TD_LU(T)                                                                         \
  template class Lu<T>;                                                                  \
  template void transpose_lines(T* to, int64_t to_stride, const T* from, int64_t stride, \
                                int64_t rows, int64_t columns)
TD_LU(float);
TD_LU(double);
TD_LU(std::complex<float>);
TD_LU(std::complex<double>);
#undef TD_LU

}  // namespace taeda::cpu
