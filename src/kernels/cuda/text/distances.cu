// cdist and pdist: the p-norms of the differences of rows i and j. A thread has a pair of them, whose
// sum it takes in double; neighbours have the same i, mostly, and read the same element of it.
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/distances_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

// The pairs before those of row i.
TD_FN uint64_t pairs_before(uint64_t i, uint64_t rows) { return i * (2 * rows - i - 1) / 2; }

// The row i that pair number `pair` belongs to: the root of a quadratic equation, rounded.
TD_FN uint64_t row_of(uint64_t pair, uint64_t rows) {
  const double b = 2.0 * static_cast<double>(rows) - 1;
  const double root = (b - std::sqrt(b * b - 8.0 * static_cast<double>(pair))) / 2;
  uint64_t i = root > 0 ? static_cast<uint64_t>(root) : 0;
  while (pairs_before(i, rows) > pair) i--;
  while (pairs_before(i + 1, rows) <= pair) i++;
  return i;
}

TD_FN double with_difference(double sum, double d, double p) {
  if (p == 0) return sum + (d != 0 ? 1 : 0);
  if (p == 1) return sum + d;
  if (p == 2) return sum + d * d;
  if (std::isinf(p)) return d > sum || d != d ? d : sum;
  return sum + std::pow(d, p);
}

template <class T>
TD_FN void distances_kernel(const DistancesArgs& a) {
  for (uint64_t at = first_index(); at < a.count; at += index_step()) {
    // Rows of all batches are counted on.
    uint64_t i = at / a.others, j = at % a.others + i / a.rows * a.others;
    if (a.pairs) {
      i = row_of(at, a.rows);
      j = at - pairs_before(i, a.rows) + i + 1;
    }
    const T* const x = static_cast<const T*>(a.x) + i * a.n;
    const T* const y = static_cast<const T*>(a.y) + j * a.n;
    double sum = 0;
    for (uint64_t k = 0; k < a.n && sum == sum; k++)
      sum = with_difference(
          sum, std::abs(static_cast<double>(x[k]) - static_cast<double>(y[k])), a.p);
    if (a.p == 2) sum = std::sqrt(sum);
    if (a.p != 0 && a.p != 1 && a.p != 2 && !std::isinf(a.p)) sum = std::pow(sum, 1 / a.p);
    set(a.out, at, static_cast<T>(sum));
  }
}

TD_GLOBAL(distances_f32_any, DistancesArgs, distances_kernel<float>)
TD_GLOBAL(distances_f64_any, DistancesArgs, distances_kernel<double>)

}  // namespace taeda::device
