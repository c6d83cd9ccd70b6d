#include "kernels/cpu/gemv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cc"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// kRows rows of w by kColumns of x: each loaded vector takes part in several sums, and the memory
// sees several streams.
// The arrays stay in registers only where every loop over them is unrolled.
template <int kRows, int kColumns, class T>
void dot_block(const DotRows& p, int64_t row, int64_t column) {
  using V = Vec<float>;
  constexpr int64_t kLanes = V::size();
  // Enough sums in flight to hide the latency of an addition.
  constexpr int kSteps = kRows * kColumns >= 8 ? 1 : 2;
  const T* w = static_cast<const T*>(p.w) + row * p.ld;
  const float* x = p.x + column * p.k;
  V sums[kSteps][kRows][kColumns];
#pragma GCC unroll 4
  for (auto& step : sums)
#pragma GCC unroll 4
    for (auto& line : step)
#pragma GCC unroll 4
      for (V& sum : line) sum = V(0.0f);
  int64_t j = 0;
  for (; j + kSteps * kLanes <= p.k; j += kSteps * kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kSteps; s++) {
      V right[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; c++) right[c] = load(x + c * p.k + j + s * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        const V left = load(w + r * p.ld + j + s * kLanes);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; c++) sums[s][r][c] = fma(left, right[c], sums[s][r][c]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; c++) {
      V total = sums[0][r][c];
      if constexpr (kSteps == 2) total = total + sums[1][r][c];
      float sum = hn::GetLane(hn::SumOfLanes(typename V::Tag(), total.raw));
      for (int64_t i = j; i < p.k; i++) sum += static_cast<float>(w[r * p.ld + i]) * x[c * p.k + i];
      p.y[(column + c) * p.rows + row + r] = sum;
    }
  }
}

template <int kRows, class T>
void dot_rows_by_columns(const DotRows& p, int64_t row) {
  int64_t column = 0;
  for (; column + 4 <= p.columns; column += 4) dot_block<kRows, 4, T>(p, row, column);
  for (; column < p.columns; column++) dot_block<kRows, 1, T>(p, row, column);
}

template <class T>
void dot_all(const DotRows& p, int64_t begin, int64_t end) {
  int64_t row = begin;
  for (; row + 4 <= end; row += 4) dot_rows_by_columns<4, T>(p, row);
  for (; row < end; row++) dot_rows_by_columns<1, T>(p, row);
}

void dot_rows_any(DType dtype, const DotRows& p, int64_t begin, int64_t end) {
  if (dtype == DType::kBFloat16) return dot_all<BFloat16>(p, begin, end);
  if (dtype == DType::kFloat16) return dot_all<Half>(p, begin, end);
  dot_all<float>(p, begin, end);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(dot_rows_any);

void dot_rows(DType dtype, const DotRows& p, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(dot_rows_any)(dtype, p, begin, end);
}

}  // namespace taeda::cpu
#endif
