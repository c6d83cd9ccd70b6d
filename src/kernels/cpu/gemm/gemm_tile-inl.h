// What the register tiles of f32 (sgemm.cc) and f64 (dgemm.cc) do with their sums: included by
// both, once per instruction set.
#if defined(TAEDA_KERNELS_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_GEMM_TILE_INL_H_
#undef TAEDA_KERNELS_CPU_GEMM_TILE_INL_H_
#else
#define TAEDA_KERNELS_CPU_GEMM_TILE_INL_H_
#endif

#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// Where a tile goes: c = alpha sums + beta d, `rows` by `columns`.
template <class T>
struct TileTarget {
  T* c;
  int64_t c_row, c_col;
  const T* d;
  int64_t d_row, d_col;
  T alpha, beta;
  int64_t rows, columns;
  int64_t b_row;      // what lies between two rows of the panel of B
  int64_t a_row = 0;  // and of A, where it is not packed
};

// The tile of p's result at (row, column). After the first block of k, it adds to C.
template <class T>
TileTarget<T> tile_target(const PackedGemm<T>& p, int64_t row, int64_t column, int64_t rows,
                          int64_t columns, int64_t b_row, bool first) {
  T* const c = p.c + row * p.c_row + column * p.c_col;
  TileTarget<T> t{c, p.c_row, p.c_col, c, p.c_row, p.c_col, p.alpha, 1, rows, columns, b_row};
  if (first) t.beta = p.beta;
  if (first && p.d)
    t.d = p.d + row * p.d_row + column * p.d_col, t.d_row = p.d_row, t.d_col = p.d_col;
  return t;
}

template <class T, int kRows, int kVectors>
using TileSums = Vec<T>[kRows][kVectors];

template <class T, int kRows, int kVectors>
TD_FN void clear(TileSums<T, kRows, kVectors>& sums) {
#pragma GCC unroll 16
  for (auto& row : sums)
#pragma GCC unroll 4
    for (Vec<T>& sum : row) sum = Vec<T>(T(0));
}

// Whether rows of C, and of D where it is read, are contiguous: sums are then stored as vectors.
template <class T>
TD_FN bool is_by_rows(const TileTarget<T>& t) {
  return t.c_col == 1 && (t.d_col == 1 || t.beta == 0);
}

// Sums as a matrix with rows of kPanel elements.
template <int64_t kPanel, class T, int kRows, int kVectors>
TD_FN void spill(T* tile, const TileSums<T, kRows, kVectors>& sums) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) store(tile + i * kPanel + v * Vec<T>::size(), sums[i][v]);
}

// A tile whose rows are not contiguous in C or D.
template <int64_t kPanel, class T>
void store_scattered(const TileTarget<T>& t, const T* tile) {
  for (int64_t j = 0; j < t.columns; j++) {
    for (int64_t i = 0; i < t.rows; i++) {
      const T x = t.alpha * tile[i * kPanel + j];
      const T old = t.beta == 0 ? 0 : t.beta * t.d[i * t.d_row + j * t.d_col];
      t.c[i * t.c_row + j * t.c_col] = x + old;
    }
  }
}

// The first `rows` rows of sums, of which the target's columns count.
template <class T, int kRows, int kVectors>
TD_FN void store_sums(const TileTarget<T>& t, const TileSums<T, kRows, kVectors>& sums,
                      int64_t rows) {
  constexpr int64_t kLanes = Vec<T>::size();
  const Vec<T> alpha(t.alpha), beta(t.beta);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i++) {
    if (i >= rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) {
      const int64_t at = v * kLanes, n = std::min(kLanes, t.columns - at);
      Vec<T> x = sums[i][v] * alpha;
      if (n == kLanes) {
        if (t.beta != 0) x = fma(beta, load(t.d + i * t.d_row + at), x);
        store(t.c + i * t.c_row + at, x);
      } else if (n > 0) {
        if (t.beta != 0) x = fma(beta, load_n(t.d + i * t.d_row + at, n), x);
        store_n(t.c + i * t.c_row + at, x, n);
      }
    }
  }
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_GEMM_TILE_INL_H_
