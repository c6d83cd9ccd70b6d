// Row kernels of max pooling, compiled for every instruction set. A NaN wins against any number.
#pragma once

#include "kernels/cpu/pool.h"

namespace taeda::cpu {

// y[i] = max(upper[2 i], upper[2 i + 1], lower[2 i], lower[2 i + 1])
void max_of_pairs(const float* upper, const float* lower, float* y, int64_t n);
void max_of_pairs(const double* upper, const double* lower, double* y, int64_t n);
// gy[i] goes to the first of the four that is their maximum (the last NaN, if there is one), zero
// to the others.
void max_of_pairs_gradient(const float* upper, const float* lower, const float* gy, float* g_upper,
                           float* g_lower, int64_t n);
void max_of_pairs_gradient(const double* upper, const double* lower, const double* gy,
                           double* g_upper, double* g_lower, int64_t n);
// row[i] = max(row[i], other[i])
void max_of_rows(float* row, const float* other, int64_t n);
void max_of_rows(double* row, const double* other, int64_t n);
// y[o] = the maximum of the row's window o
void max_along_row(const Windows& w, const float* row, float* y);
void max_along_row(const Windows& w, const double* row, double* y);

// best[o] = line * w.kernel + k of the maximum of window o, whose elements are
// lines[line][w.start(o) + k * w.dilation]: the first maximum in that order, or the last NaN.
// Counts must be exact in the element type.
void find_max_along_rows(const Windows& w, const float* const* lines, int64_t line_count,
                         float* best);
void find_max_along_rows(const Windows& w, const double* const* lines, int64_t line_count,
                         double* best);

}  // namespace taeda::cpu
