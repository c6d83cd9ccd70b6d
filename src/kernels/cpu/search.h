// Kernels whose result sizes depend on the data, and searches: called by src/ops.
#pragma once

#include <vector>

#include "kernels/view.h"

namespace taeda::cpu {

// Row-major positions of the elements that are not zero, ascending.
std::vector<int64_t> true_positions(const View& x);
// Writes positions of a tensor with sizes `sizes` as rows of coordinates: out is int64 [n, ndim],
// dense.
void unravel(const View& out, Span<const int64_t> positions, IntSpan sizes);
// out[i] = x[positions[i]] in row-major order; out dense.
void take_positions(const View& out, const View& x, Span<const int64_t> positions);
// x[positions[i]] = source[i], source in row-major order; positions.size() elements of it are used.
void put_positions(const View& x, const View& source, Span<const int64_t> positions);

// For each row of `values` [rows, n], the place in the matching row of `boundaries` ([rows, m], or
// [1, m] for all) that keeps it sorted; after equal elements if `right`. All dense and of one
// dtype; out int64.
void searchsorted(const View& out, const View& boundaries, const View& values, bool right);

// out[x[i]] += weights[i], or 1 without weights. x int64, dense, in range; out int64 or float64.
void bincount(const View& out, const View& x, const View& weights);
// Counts of x in equal bins over [low, high]; all of x's dtype, float or double.
void histogram(const View& out, const View& x, double low, double high);

// Starts of the runs of equal rows in a dense [n, width] tensor.
std::vector<int64_t> run_starts(const View& rows, int64_t n, int64_t width);
// The order that sorts the rows of a dense [n, width] tensor lexicographically; stable.
std::vector<int64_t> sort_rows(const View& rows, int64_t n, int64_t width);

}  // namespace taeda::cpu
