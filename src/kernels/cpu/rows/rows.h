// Dense row and column loops with vector instructions: the inner loops of reductions, softmax and
// normalisations.
//
// row_table<T>() gives the functions for the widest instruction set of this machine. T is float or
// double; sums are taken in several lanes and combined in a fixed order, so results depend on n
// alone. Any n >= 0 is allowed.
#pragma once

#include <cstdint>
#include <type_traits>

namespace taeda::cpu {

template <class T>
struct RowTable {
  // over x[0..n)
  // Running sums: out[i] = total + x[0] + ... + x[i], returned for the last; by column, totals[i]
  // += x[i] and out[i] = totals[i].
  double (*scan)(T* out, const T* x, double total, int64_t n);
  void (*scan_columns)(T* out, const T* x, double* totals, int64_t n);
  double (*sum)(const T* x,
                int64_t n);  // float: at most 8 additions a lane before the rest is added in double
  double (*nansum)(const T* x, int64_t n);  // the same of the numbers among them
  T (*sum_abs)(const T* x, int64_t n);
  int64_t (*count_nonzero)(const T* x, int64_t n);
  T (*sum_squares)(const T* x, int64_t n);
  // sum and sum of squares of x - center
  void (*moments)(const T* x, T center, int64_t n, T* first, T* second);
  T (*dot)(const T* x, const T* y, int64_t n);
  T (*dot_centered)(const T* x, T center, const T* y, int64_t n);  // of x - center and y
  // With u = (x - center) * scale and g = gy * weight: sum_w[i] += gy u, sum_b[i] += gy, first +=
  // sum of g, second += sum of g u. What follows gy and x is prefetched.
  void (*norm_sums)(const T* gy, const T* x, T center, T scale, const T* weight, int64_t n,
                    T* sum_w, T* sum_b, double* first, double* second);
  T (*max)(const T* x, int64_t n);      // NaN if any is; -inf for none
  T (*min)(const T* x, int64_t n);      // NaN if any is; inf for none
  T (*max_abs)(const T* x, int64_t n);  // NaN if any is; 0 for none
  // out[i] = exp(x[i] - shift); returns their sum. exp_sum stores nothing; its shift is the largest
  // x.
  T (*exp_row)(T* out, const T* x, T shift, int64_t n);
  T (*exp_sum)(const T* x, T shift, int64_t n);
  // By column: out[i] = exp(x[i] - shift[i]), added to sum[i].
  void (*exp_columns)(T* out, const T* x, const T* shift, T* sum, int64_t n);
  // out[i] = x[i] - y[i]
  void (*subtract)(T* out, const T* x, const T* y, int64_t n);
  // out[i] = x[i] * scale + offset
  void (*affine)(T* out, const T* x, T scale, T offset, int64_t n);
  // out[i] = (x[i] - center) * scale + offset: exact where x is the center
  void (*centered)(T* out, const T* x, T center, T scale, T offset, int64_t n);
  // out[i] = (x[i] - center) * scale * weight[i] + bias[i]
  void (*affine_rows)(T* out, const T* x, T center, T scale, const T* weight, const T* bias,
                      int64_t n);
  // out[i] = y[i] * (gy[i] - s)
  void (*softmax_backward)(T* out, const T* gy, const T* y, T s, int64_t n);
  // out[i] = gy[i] - exp(y[i]) * s
  void (*log_softmax_backward)(T* out, const T* gy, const T* y, T s, int64_t n);
  // out[i] = a * gy[i] + b * x[i] + c
  void (*combine)(T* out, const T* gy, const T* x, T a, T b, T c, int64_t n);
  // out[i] = a * gy[i] * weight[i] + b * x[i] + c
  void (*combine_rows)(T* out, const T* gy, const T* weight, const T* x, T a, T b, T c, int64_t n);
  // acc[i] += x[i]; acc[i] += x[i] * y[i]; acc[i] += (x[i] * scale + offset) * y[i]
  void (*add)(T* acc, const T* x, int64_t n);
  void (*add_scaled)(T* acc, const T* x, T scale, T offset, const T* y, int64_t n);
  // out[i] = x[i] * y[i]
  void (*multiply)(T* out, const T* x, const T* y, int64_t n);
  // acc[j] += the sum over i < rows of x[i * stride + j], read row after row.
  void (*add_rows)(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride);
  // The same over columns: acc[j] = sum over i < rows of x[i * stride + j], j < n.
  void (*sum_columns)(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride);
  // acc[j] += sum over i < rows of x[i * stride + j], which is added up in T.
  void (*add_columns)(double* acc, const T* x, int64_t n, int64_t rows, int64_t stride);
  void (*moments_columns)(T* first, T* second, const T* x, const T* center, int64_t n, int64_t rows,
                          int64_t stride);
  // first[j] = sum of gy, second[j] = sum of gy * (x - center[j])
  void (*dots_columns)(T* first, T* second, const T* gy, const T* x, const T* center, int64_t n,
                       int64_t rows, int64_t stride);
};

template <class T>
const RowTable<T>& row_table();

// An index below kMaxOrderIndices, as wide as T.
template <class T>
using OrderIndex =
    std::conditional_t<sizeof(T) == 1, int8_t,
                       std::conditional_t<sizeof(T) == 2, int16_t,
                                          std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>>;
inline constexpr int64_t kMaxOrderIndices = 127;

// Order on any real type: the vector parts of amax, amin, argmax and argmin.
template <class T>
struct OrderTable {
  T (*max)(const T* x, int64_t n);  // n >= 1; NaN if any is
  T (*min)(const T* x, int64_t n);
  // acc[j] = max(acc[j], x[i * stride + j]) over i < rows; NaN wins
  void (*max_columns)(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride);
  void (*min_columns)(T* acc, const T* x, int64_t n, int64_t rows, int64_t stride);
  // The first i with x[i] == value (both NaN count as equal); n when there is none.
  int64_t (*find)(const T* x, T value, int64_t n);
  // best[j] = max over i < rows of x[i * stride + j], index[j] the first i where it stands; rows in
  // 1 ... kMaxOrderIndices.
  void (*argmax)(T* best, OrderIndex<T>* index, const T* x, int64_t n, int64_t rows,
                 int64_t stride);
  void (*argmin)(T* best, OrderIndex<T>* index, const T* x, int64_t n, int64_t rows,
                 int64_t stride);
};
// T: float, double, uint8_t, int8_t, int16_t, int32_t, int64_t
template <class T>
const OrderTable<T>& order_table();

}  // namespace taeda::cpu
