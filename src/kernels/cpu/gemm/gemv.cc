#include "kernels/cpu/gemm/gemv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemv.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// What of a vector's lanes is added up in one block of four.
template <class D, class R>
TD_FN auto sum_blocks(D d, R x) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return sum_blocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

#endif

// The sums of the lanes of four vectors, side by side.
TD_FN void store_four_sums(float* to, Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> e) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = a.raw.raw, to[1] = b.raw.raw, to[2] = c.raw.raw, to[3] = e.raw.raw;
#else
  const hn::ScalableTag<float> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const auto add_halves = [&](auto x, auto y) {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y)));
  };
  const auto ab = add_halves(a.raw, b.raw), ce = add_halves(c.raw, e.raw);
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                            hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)));
  const hn::FixedTag<float, 4> four;
  hn::StoreU(sum_blocks(d, sums), four, to);
#endif
}

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
  const float* x = p.x + column * p.x_step;
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
      for (int c = 0; c < kColumns; c++) right[c] = load(x + c * p.x_step + j + s * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        const V left = load(w + r * p.ld + j + s * kLanes);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; c++) sums[s][r][c] = fma(left, right[c], sums[s][r][c]);
      }
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; c++) {
    float* y = p.y + (column + c) * p.y_step + row;
    if constexpr (kSteps == 2) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) sums[0][r][c] = sums[0][r][c] + sums[1][r][c];
    }
    if constexpr (kRows == 4) {
      store_four_sums(y, sums[0][0][c], sums[0][1][c], sums[0][2][c], sums[0][3][c]);
    } else {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++)
        y[r] = hn::GetLane(hn::SumOfLanes(typename V::Tag(), sums[0][r][c].raw));
    }
    if (j == p.k) continue;
    for (int r = 0; r < kRows; r++)
      for (int64_t i = j; i < p.k; i++)
        y[r] += static_cast<float>(w[r * p.ld + i]) * x[c * p.x_step + i];
  }
}

template <int kRows, class T>
void dot_rows_by_columns(const DotRows& p, int64_t row) {
  constexpr int kColumns = HWY_TARGET == HWY_AVX2 ? 3 : 4;  // with AVX-512 there are 32 registers
  int64_t column = 0;
  for (; column + kColumns <= p.columns; column += kColumns)
    dot_block<kRows, kColumns, T>(p, row, column);
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

// Parts alternate: one vector of sums is of parts of one kind, the other of exchanged ones.
template <class R>
PartSums<R> multiply_parts_of(const R* x, const R* y, int64_t n) {
  PartSums<R> sums{};
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using V = Vec<R>;
  constexpr int64_t kLanes = V::size();
  constexpr int kSteps = 4;  // sums in flight
  const typename V::Tag d;
  V same[kSteps], other[kSteps];
#pragma GCC unroll 4
  for (int s = 0; s < kSteps; s++) same[s] = other[s] = V(0);
  for (; i + kSteps * kLanes <= 2 * n; i += kSteps * kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kSteps; s++) {
      const V a = load(x + i + s * kLanes), b = load(y + i + s * kLanes);
      same[s] = fma(a, b, same[s]);
      other[s] = fma(a, V(hn::Reverse2(d, b.raw)), other[s]);
    }
  }
  R lanes[2 * kLanes];
  store(lanes, same[0] + same[1] + (same[2] + same[3]));
  store(lanes + kLanes, other[0] + other[1] + (other[2] + other[3]));
  for (int64_t l = 0; l < kLanes; l += 2) {
    sums.real_real += lanes[l], sums.imaginary_imaginary += lanes[l + 1];
    sums.real_imaginary += lanes[kLanes + l], sums.imaginary_real += lanes[kLanes + l + 1];
  }
#endif
  for (; i < 2 * n; i += 2) {
    sums.real_real += x[i] * y[i], sums.imaginary_imaginary += x[i + 1] * y[i + 1];
    sums.real_imaginary += x[i] * y[i + 1], sums.imaginary_real += x[i + 1] * y[i];
  }
  return sums;
}
PartSums<float> multiply_float_parts(const float* x, const float* y, int64_t n) {
  return multiply_parts_of(x, y, n);
}
PartSums<double> multiply_double_parts(const double* x, const double* y, int64_t n) {
  return multiply_parts_of(x, y, n);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(dot_rows_any);
HWY_EXPORT(multiply_float_parts);
HWY_EXPORT(multiply_double_parts);

void dot_rows(DType dtype, const DotRows& p, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(dot_rows_any)(dtype, p, begin, end);
}

PartSums<float> multiply_parts(const float* x, const float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(multiply_float_parts)(x, y, n);
}
PartSums<double> multiply_parts(const double* x, const double* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(multiply_double_parts)(x, y, n);
}

}  // namespace taeda::cpu
#endif
