#include "kernels/cpu/gemm/dgemm.h"

#include <algorithm>
#include <numeric>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/cpu/gemm/gemm_tasks.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/dgemm.cc"
#include "kernels/cpu/simd/simd.h"
// simd.h first: it includes this file once per instruction set
#include "kernels/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<double>;
constexpr int64_t kLanes = V::size();
// A tile of C fills the registers: 24 of AVX-512's 32, 12 of the 16 that the others have.
constexpr int kTileRows = kLanes == 8 ? 12 : 4;
constexpr int kTileVectors = kLanes == 8 ? 2 : 3;
constexpr int64_t kPanel = kTileVectors * kLanes;  // columns of a tile
// A panel of B stays in the first-level cache while it meets some strips of A, which stay in the
// second-level one; a block of B is shared by all tasks.
constexpr int64_t kBlockK = 320;
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kStripRows = 8 * kTileRows;
// Up to so many rows of C, or columns, an operand may be read where it lies.
constexpr int64_t kFew = 256;
constexpr int64_t kFewRows = 4 * kTileRows;  // with which B is hardly read again

// Whether n lines of the cache, `stride` numbers apart, find places in its first level (64 sets of
// at least 8, a few of which are left to others).
bool stays(int64_t n, int64_t stride) {
  const int64_t lines = stride % 8 == 0 ? stride / 8 : 1;
  return n <= 8 * (64 / std::gcd(lines, int64_t{64}));
}

#if HWY_TARGET != HWY_SCALAR
// The pairs of lanes of x, `step` elements apart.
template <class D, class R>
TD_FN void store_pairs(D d, R x, double* to, int64_t step) {
  if constexpr (hn::MaxLanes(d) <= 2) {
    hn::StoreU(x, d, to);
  } else {
    const hn::Half<D> half;
    store_pairs(half, hn::LowerHalf(half, x), to, step);
    store_pairs(half, hn::UpperHalf(half, x), to + static_cast<int64_t>(hn::MaxLanes(d)) / 4 * step,
                step);
  }
}
#endif

// Two lines of kLanes elements become columns: to[j * width + i] = from[i * stride + j].
TD_FN void transpose_two(double* to, [[maybe_unused]] int64_t width, const double* from,
                         int64_t stride) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = from[0], to[1] = from[stride];
#else
  const hn::ScalableTag<double> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
  store_pairs(d, hn::InterleaveLower(d, a, b), to, 2 * width);
  store_pairs(d, hn::InterleaveUpper(d, a, b), to + width, 2 * width);
#endif
}

// Lines of an operand, side by side for every k: to[j * kWidth + i] = line i at j, and 0 from
// `lines` up to kWidth.
template <int64_t kWidth>
void pack(double* to, const double* from, int64_t lines, int64_t stride, int64_t k_stride,
          int64_t k) {
  int64_t j = 0;
  if (lines == kWidth && stride == 1) {
    for (; j < k; j++) std::memcpy(to + j * kWidth, from + j * k_stride, kWidth * sizeof(double));
  } else if (kWidth % 2 == 0 && lines == kWidth && k_stride == 1) {
    for (; j + kLanes <= k; j += kLanes)
      for (int64_t i = 0; i < kWidth; i += 2)
        transpose_two(to + j * kWidth + i, kWidth, from + i * stride + j, stride);
  }
  for (; j < k; j++) {
    double* row = to + j * kWidth;
    for (int64_t i = 0; i < lines; i++) row[i] = from[i * stride + j * k_stride];
    std::fill(row + lines, row + kWidth, 0.0);
  }
}

// The same in panels of kWidth lines by k.
template <int64_t kWidth>
void pack_panels(double* to, const double* from, int64_t lines, int64_t stride, int64_t k_stride,
                 int64_t k) {
  for (int64_t i = 0; i < lines; i += kWidth)
    pack<kWidth>(to + i * k, from + i * stride, std::min(kWidth, lines - i), stride, k_stride, k);
}

using Target = TileTarget<double>;

// Strips of A are kTileRows wide, also where only the first kRows of them count; or A is read where
// it lies.
template <int kRows, int kVectors, bool kLoose = false>
void multiply_tile(const double* a, const double* b, int64_t k, const Target& t) {
  TileSums<double, kRows, kVectors> sums;
  clear<double, kRows, kVectors>(sums);
  if (t.c_col == 1) {  // C arrives while the sums are made
    for (int64_t i = 0; i < t.rows; i++) {
      __builtin_prefetch(t.c + i * t.c_row, 1);
      if (kVectors > 1) __builtin_prefetch(t.c + i * t.c_row + kVectors * kLanes - 1, 1);
    }
  }
  constexpr int64_t kAhead = 16;  // rows: a panel that is not packed crosses pages
  for (int64_t p = 0; p < k; p++, a += kLoose ? 1 : kTileRows, b += t.b_row) {
    __builtin_prefetch(b + kAhead * t.b_row);
    V right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) right[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i++) {
      const V left(a[kLoose ? i * t.a_row : i]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) sums[i][v] = fma(left, right[v], sums[i][v]);
    }
  }
  if (!is_by_rows(t)) {
    double tile[kRows * kPanel];
    spill<kPanel, double, kRows, kVectors>(tile, sums);
    return store_scattered<kPanel>(t, tile);
  }
  store_sums<double, kRows, kVectors>(t, sums, t.rows);
}

// The tile with the fewest of 4, 8 and 12 rows and of vectors.
template <int kRows>
void multiply_rows(const double* a, const double* b, int64_t k, const Target& t) {
  if constexpr (kRows == kTileRows) {
    if (t.a_row > 0) {
      const bool one = t.columns <= kLanes;
      return one ? multiply_tile<kRows, 1, true>(a, b, k, t)
                 : multiply_tile<kRows, kTileVectors, true>(a, b, k, t);
    }
  }
  if constexpr (kRows > 4) {
    if (t.rows <= kRows - 4) return multiply_rows<kRows - 4>(a, b, k, t);
  }
  if (t.columns <= kLanes)
    multiply_tile<kRows, 1>(a, b, k, t);
  else
    multiply_tile<kRows, kTileVectors>(a, b, k, t);
}

// A's columns k0 to k0 + k times the block of B whose first column is `column`, packed or, in whole
// panels, where it lies.
struct Block {
  const Dgemm& p;
  const double* packed_b;
  int64_t k0, k, column, columns;
  bool b_lies;
};

// The tile at (row, panel), of a strip of A whose rows lie a_row apart, or which is packed.
void multiply_one(const Block& block, const double* strip, int64_t a_row, int64_t row, int64_t rows,
                  int64_t panel) {
  const Dgemm& p = block.p;
  const int64_t column = block.column + panel * kPanel;
  Target t = tile_target(p, row, column, rows, std::min(kPanel, block.columns - panel * kPanel),
                         kPanel, block.k0 == 0);
  t.a_row = a_row;
  const double* b = block.packed_b + panel * kPanel * block.k;
  if (block.b_lies && t.columns == kPanel) b = p.b + block.k0 * p.b_row + column, t.b_row = p.b_row;
  multiply_rows<kTileRows>(strip, b, block.k, t);
}

// Rows [row, row_end) and panels [panel, panel_end) of C.
void multiply_block(const Block& block, int64_t row, int64_t row_end, int64_t panel,
                    int64_t panel_end) {
  const Dgemm& p = block.p;
  const bool a_lies = p.a_col == 1 && p.n <= kFew && stays(4 * kTileRows, p.a_row);
  const int64_t most = std::min(kStripRows, blocks_of(row_end - row, kTileRows) * kTileRows);
  const Scratch<double> packed((a_lies ? kTileRows : most) * block.k);
  for (; row < row_end; row += kStripRows) {
    check_interrupt();
    const int64_t rows = std::min(kStripRows, row_end - row);
    const int64_t loose = a_lies ? rows / kTileRows * kTileRows : 0;
    const double* const a = p.a + row * p.a_row + block.k0 * p.a_col;
    pack_panels<kTileRows>(packed.data(), a + loose * p.a_row, rows - loose, p.a_row, p.a_col,
                           block.k);
    for (int64_t i = panel; i < panel_end; i++) {
      for (int64_t r = 0; r < loose; r += kTileRows)
        multiply_one(block, a + r * p.a_row, p.a_row, row + r, kTileRows, i);
      for (int64_t r = loose; r < rows; r += kTileRows)
        multiply_one(block, packed.data() + (r - loose) * block.k, 0, row + r,
                     std::min<int64_t>(kTileRows, rows - r), i);
    }
  }
}

void multiply(const Dgemm& p, bool parallel) {
  const int64_t parts_k = blocks_of(p.k, kBlockK), block_k = blocks_of(p.k, parts_k);
  const int64_t parts_n = blocks_of(p.n, kBlockColumns),
                block_n = blocks_of(blocks_of(p.n, parts_n), kPanel) * kPanel;
  const bool b_lies =
      p.b_col == 1 && (p.m <= kFewRows || (p.m <= kFew && stays(2 * block_k, p.b_row)));
  const Scratch<double> packed(block_k * block_n);
  for (int64_t column = 0; column < p.n; column += block_n) {
    for (int64_t k0 = 0; k0 < p.k; k0 += block_k) {
      const Block block{p,      packed.data(),
                        k0,     std::min(block_k, p.k - k0),
                        column, std::min(block_n, p.n - column),
                        b_lies};
      const auto pack_some = [&](int64_t begin, int64_t end) {
        pack_panels<kPanel>(packed.data() + begin * kPanel * block.k,
                            p.b + k0 * p.b_row + (column + begin * kPanel) * p.b_col,
                            std::min((end - begin) * kPanel, block.columns - begin * kPanel),
                            p.b_col, p.b_row, block.k);
      };
      const int64_t panels = blocks_of(block.columns, kPanel);
      const int64_t begin = b_lies ? block.columns / kPanel : 0;
      if (parallel && !b_lies)
        parallel_for(0, panels, std::max<int64_t>(1, (1 << 14) / (kPanel * block.k)), pack_some);
      else if (begin < panels)
        pack_some(begin, panels);
      for_parts(parallel, p.m, kTileRows, panels, kTileRows * block.columns * block.k,
                [&](int64_t row, int64_t row_end, int64_t panel, int64_t panel_end) {
                  multiply_block(block, row, row_end, panel, panel_end);
                });
    }
  }
}

}  // namespace

void dgemm_any(const Dgemm& p, bool parallel) {
  if (p.c_col != 1 && p.c_row == 1)
    multiply(transposed(p), parallel);
  else
    multiply(p, parallel);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(dgemm_any);

void dgemm(const Dgemm& p, bool parallel) { HWY_DYNAMIC_DISPATCH(dgemm_any)(p, parallel); }

}  // namespace taeda::cpu
#endif
