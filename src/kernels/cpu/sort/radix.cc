#include "kernels/cpu/sort/radix.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/parallel.h"

namespace taeda::cpu {
namespace {

constexpr unsigned kMaxDigit = 10;  // bits: more buckets than that do not fit the L1 cache
constexpr int64_t kPartLength = 1 << 16;
constexpr int64_t kMaxParts = 32;

// One pass: x by its digit at `shift` into y. Every part of x counts its digits, then knows where
// its elements of each digit begin, and moves them.
void scatter_by_digit(const uint64_t* x, uint64_t* y, int64_t n, unsigned shift, unsigned width) {
  const int64_t parts = std::clamp<int64_t>(n / kPartLength, 1, kMaxParts);
  const int64_t length = (n + parts - 1) / parts;
  const int64_t buckets = int64_t{1} << width;
  const auto digit = [=](uint64_t v) {
    return static_cast<int64_t>(v >> shift & static_cast<uint64_t>(buckets - 1));
  };
  std::vector<int64_t> at(static_cast<size_t>(parts * buckets));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      int64_t* const count = &at[static_cast<size_t>(p * buckets)];
      for (int64_t i = p * length; i < std::min(n, (p + 1) * length); i++) count[digit(x[i])]++;
    }
  });
  int64_t start = 0;
  for (int64_t b = 0; b < buckets; b++) {
    for (int64_t p = 0; p < parts; p++)
      start += std::exchange(at[static_cast<size_t>(p * buckets + b)], start);
  }
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      int64_t* const to = &at[static_cast<size_t>(p * buckets)];
      for (int64_t i = p * length; i < std::min(n, (p + 1) * length); i++)
        y[to[digit(x[i])]++] = x[i];
    }
  });
}

}  // namespace

uint64_t* radix_sort_bits(uint64_t* x, uint64_t* scratch, int64_t n, unsigned low, unsigned count) {
  const unsigned passes = (count + kMaxDigit - 1) / kMaxDigit;
  for (unsigned pass = 0; pass < passes; pass++) {
    const unsigned from = count * pass / passes, to = count * (pass + 1) / passes;
    scatter_by_digit(x, scratch, n, low + from, to - from);
    std::swap(x, scratch);
  }
  return x;
}

}  // namespace taeda::cpu
