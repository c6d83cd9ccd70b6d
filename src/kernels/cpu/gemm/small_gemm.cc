#include "kernels/cpu/gemm/small_gemm.h"

#include <algorithm>

#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/small_gemm.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// kRows rows of C from row i on, kVectors vectors from column j on; of the last vector `tail`
// elements if that is not 0. Sums stay in registers, B's vectors serve all rows.
template <int kRows, int kVectors>
void multiply_rows(const SmallProduct& p, int64_t i, int64_t j, int64_t tail) {
  using V = Vec<float>;
  constexpr int64_t kLanes = V::size();
  const auto load_part = [&](const float* x, int v) {
    return tail && v == kVectors - 1 ? load_n(x + v * kLanes, tail) : load(x + v * kLanes);
  };
  V sums[kRows][kVectors];
#pragma GCC unroll 8
  for (auto& row : sums)
#pragma GCC unroll 2
    for (V& sum : row) sum = V(0.0f);
  const float* a = p.a + i * p.a_row;
  const float* b = p.b + j;
  for (int64_t l = 0; l < p.k; l++, a += p.a_col, b += p.b_row) {
    V right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) right[v] = load_part(b, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; r++) {
      const V left(a[r * p.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; r++) {
    float* c = p.c + (i + r) * p.c_row + j;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) {
      V y = V(p.alpha) * sums[r][v];
      if (p.beta != 0.0f) y = fma(V(p.beta), load_part(c, v), y);
      if (tail && v == kVectors - 1)
        store_n(c + v * kLanes, y, tail);
      else
        store(c + v * kLanes, y);
    }
  }
}

template <int kVectors>
void multiply_columns(const SmallProduct& p, int64_t j, int64_t tail) {
  int64_t i = 0;
  for (; i + 8 <= p.m; i += 8) multiply_rows<8, kVectors>(p, i, j, tail);
  if (i + 4 <= p.m) multiply_rows<4, kVectors>(p, i, j, tail), i += 4;
  for (; i < p.m; i++) multiply_rows<1, kVectors>(p, i, j, tail);
}

void small_gemm_any(const SmallProduct& p) {
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t j = 0;
  for (; j + kLanes < p.n; j += 2 * kLanes)
    multiply_columns<2>(p, j, j + 2 * kLanes <= p.n ? 0 : p.n - j - kLanes);
  if (j < p.n) multiply_columns<1>(p, j, j + kLanes <= p.n ? 0 : p.n - j);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(small_gemm_any);

// B [k, n] row after row, from one whose columns are contiguous, `b_col` elements apart.
static void turn(float* to, const float* b, int64_t b_col, int64_t k, int64_t n) {
  constexpr int64_t kItem = sizeof(float), kRows = 64 / kItem;  // of a full tile
  for (int64_t l = 0; l < k; l += kRows) {
    // The last tile is a full one, too: some of its rows are transposed once more.
    const int64_t rows = std::min(kRows, k), first = std::min(l, k - rows);
    gather_tile(to + first * n, reinterpret_cast<const char*>(b + first), kItem, b_col * kItem, n,
                rows);
  }
}

void small_gemm(SmallProduct p, int64_t count, int64_t c_step, int64_t a_step, int64_t b_step) {
  const bool transposed = p.b_col != 1 && p.n > 1;
  const Scratch<float> rows(transposed ? p.k * p.n : 0);
  const float* b = p.b;
  const int64_t b_col = p.b_col;
  if (transposed) p.b = rows.data(), p.b_row = p.n;
  for (int64_t i = 0; i < count; i++, p.c += c_step, p.a += a_step, b += b_step) {
    if (transposed)
      turn(rows.data(), b, b_col, p.k, p.n);
    else
      p.b = b;
    HWY_DYNAMIC_DISPATCH(small_gemm_any)(p);
  }
}

}  // namespace taeda::cpu
#endif
