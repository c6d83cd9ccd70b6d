#include "kernels/cuda/fft_lengths.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taeda::cuda {

FftFactors radices_of(int64_t n) {
  FftFactors found;
  for (const int64_t radix : {4, 2, 3, 5, 7})
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  return found;
}

bool is_smooth(int64_t n) {
  for (const int64_t radix : radices_of(n)) n /= radix;
  return n == 1;
}

int64_t smooth_length(int64_t least) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t n : {1, 3, 5, 9, 15}) {
    while (n < least) n *= 2;
    best = std::min(best, n);
  }
  return best;
}

FftFactors passes_of(int64_t n, int64_t whole, int64_t part) {
  FftFactors found;
  if (n <= whole) {
    found.push_back(n);
    return found;
  }
  int64_t count = 1;
  for (int64_t most = part; most < n; most *= part) count++;
  for (; n > 1; count = std::max<int64_t>(1, count - 1)) {
    const double root = std::pow(static_cast<double>(n), 1.0 / static_cast<double>(count));
    int64_t factor = 1;  // the least one from the root on, or the largest
    for (int64_t d = std::min(n, part); d > 1; d--)
      if (n % d == 0 && (factor == 1 || static_cast<double>(d) >= root - 1e-6)) factor = d;
    found.push_back(factor);
    n /= factor;
  }
  return found;
}

}  // namespace taeda::cuda
