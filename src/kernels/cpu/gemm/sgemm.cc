#include "kernels/cpu/gemm/sgemm.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/cpu/gemm/gemm_tasks.h"
#include "kernels/cpu/simd/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/sgemm.cc"
#include "kernels/cpu/simd/simd.h"
// simd.h first: it includes this file once per instruction set
#include "kernels/cpu/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

using V = Vec<float>;
constexpr int64_t kLanes = V::size();
// A tile of C fills the registers: 24 of AVX-512's 32, 12 of the 16 that the others have.
constexpr int kTileRows = kLanes == 16 ? 12 : 4;
constexpr int kTileVectors = kLanes == 16 ? 2 : 3;
constexpr int64_t kPanel = kTileVectors * kLanes;  // columns of a tile
// A panel of B stays in the first-level cache while it meets some strips of A, which stay in the
// second-level one; a block of B is shared by all tasks.
constexpr int64_t kBlockK = 384;
constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kStripRows = 8 * kTileRows;
constexpr int64_t kShort = 96;  // a k with which writing C takes longer than reading A and B
constexpr int64_t kLargeOperand = int64_t{1} << 20;  // more than the second-level cache holds
constexpr int64_t kFewRows = 128;  // with which packing B is a large part of the work

#if HWY_TARGET != HWY_SCALAR
// The blocks of four lanes of x, `step` elements apart.
template <class D, class R>
TD_FN void store_blocks(D d, R x, float* to, int64_t step) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    hn::StoreU(x, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, x), to, step);
    store_blocks(half, hn::UpperHalf(half, x),
                 to + static_cast<int64_t>(hn::MaxLanes(d)) / 8 * step, step);
  }
}
#endif

#if HWY_TARGET != HWY_SCALAR
// Four lines of kLanes elements by columns: the q-th vector's blocks are columns q, 4 + q, 8 + q
// ...
struct FourColumns {
  V q[4];
};
TD_FN FourColumns four_columns(const float* from, int64_t stride) {
  const hn::ScalableTag<float> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride),
             c = hn::LoadU(d, from + 2 * stride), e = hn::LoadU(d, from + 3 * stride);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
             ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  return {{V(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low))),
           V(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low))),
           V(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high))),
           V(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)))}};
}
#endif

// Four lines of kLanes elements become columns: to[j * width + i] = from[i * stride + j].
TD_FN void transpose_four(float* to, [[maybe_unused]] int64_t width, const float* from,
                          int64_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < 4; i++) to[i] = from[i * stride];
#else
  const hn::ScalableTag<float> d;
  const FourColumns columns = four_columns(from, stride);
#pragma GCC unroll 4
  for (int q = 0; q < 4; q++) store_blocks(d, columns.q[q].raw, to + q * width, 4 * width);
#endif
}

// Sixteen columns of kGroups groups of four lines, for vectors of four blocks of four:
// to[j * width + i] = from[i * stride + j]. Whole vectors are written in the order of columns, so
// that what is beyond the lines is overwritten by the next column; `lines` ends the last one.
template <int kGroups>
void transpose_sixteen(float* to, int64_t width, const float* from, int64_t stride, bool last);
#if HWY_TARGET != HWY_SCALAR
template <int kGroups>
TD_FN void transpose_sixteen(float* to, int64_t width, const float* from, int64_t stride,
                             bool last) {
  constexpr int64_t kAhead = 64;  // floats: lines are too many for the CPU's own prefetching
  const hn::ScalableTag<float> d;
  V groups[4][4];  // [g][q]: of lines 4 g to 4 g + 3, columns q, 4 + q, 8 + q and 12 + q
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; g++) {
    const float* line = from + 4 * g * stride;
    for (int64_t i = 0; i < 4; i++) __builtin_prefetch(line + i * stride + kAhead);
    const FourColumns columns = four_columns(line, stride);
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) groups[g][q] = columns.q[q];
  }
  V columns[16];
#pragma GCC unroll 4
  for (int q = 0; q < 4; q++) {
    const auto a = groups[0][q].raw, b = groups[1][q].raw, c = groups[2][q].raw,
               e = groups[kGroups == 4 ? 3 : 2][q].raw;
    const auto ab_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
               ab_odd = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)),
               ce_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c),
               ce_odd = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
    columns[q] = V(hn::ConcatLowerLower(d, ce_even, ab_even));
    columns[4 + q] = V(hn::ConcatLowerLower(d, ce_odd, ab_odd));
    columns[8 + q] = V(hn::ConcatUpperUpper(d, ce_even, ab_even));
    columns[12 + q] = V(hn::ConcatUpperUpper(d, ce_odd, ab_odd));
  }
#pragma GCC unroll 16
  for (int j = 0; j < 15; j++) store(to + j * width, columns[j]);
  if (last)
    store_n(to + 15 * width, columns[15], 4 * kGroups);
  else
    store(to + 15 * width, columns[15]);
}
#endif

// Lines of an operand, side by side for every k: to[j * kWidth + i] = line i at j, and 0 from
// `lines` up to kWidth.
template <int64_t kWidth>
TD_FN void pack(float* to, const float* from, int64_t lines, int64_t stride, int64_t k_stride,
                int64_t k) {
  if (stride == 1 && lines == kWidth) {
    for (int64_t j = 0; j < k; j++)
      std::memcpy(to + j * kWidth, from + j * k_stride, kWidth * sizeof(float));
    return;
  }
  if (stride == 1 && kWidth % kLanes == 0) {
    for (int64_t j = 0; j < k; j++) {
      for (int64_t i = 0; i < kWidth; i += kLanes)
        store(to + j * kWidth + i,
              load_n(from + j * k_stride + i, std::clamp<int64_t>(lines - i, 0, kLanes)));
    }
    return;
  }
  int64_t j = 0;
  if (kWidth % 4 == 0 && k_stride == 1) {
    const int64_t whole = lines / 4 * 4;
    for (; j + kLanes <= k; j += kLanes) {
      float* column = to + j * kWidth;
      int64_t i = 0;
      if constexpr (kLanes == 16 && kWidth == 12) {
        if (lines == 12)
          transpose_sixteen<3>(column, 12, from + j, stride, j + kLanes == k), i = 12;
      } else if constexpr (kLanes == 16) {
        for (; i + 16 <= lines; i += 16)
          transpose_sixteen<4>(column + i, kWidth, from + i * stride + j, stride, false);
      }
      for (; i < whole; i += 4) transpose_four(column + i, kWidth, from + i * stride + j, stride);
      if (whole == kWidth) continue;
      for (int64_t u = j; u < j + kLanes; u++) {
        float* row = to + u * kWidth;
        for (i = whole; i < lines; i++) row[i] = from[i * stride + u];
        std::fill(row + lines, row + kWidth, 0.0f);
      }
    }
  }
  for (; j < k; j++) {
    float* row = to + j * kWidth;
    for (int64_t i = 0; i < lines; i++) row[i] = from[i * stride + j * k_stride];
    std::fill(row + lines, row + kWidth, 0.0f);
  }
}

using Target = TileTarget<float>;

// The same where columns of C and D do.
template <int kRows>
void store_columns(const Target& t, const float* tile) {
  float transposed[kPanel * kRows];
  for (int64_t i = 0; i < kRows; i += 4)
    for (int64_t j = 0; j < t.columns; j += kLanes)
      transpose_four(transposed + j * kRows + i, kRows, tile + i * kPanel + j, kPanel);
  for (int64_t j = 0; j < t.columns; j++) {
    const float* from = transposed + j * kRows;
    float* to = t.c + j * t.c_col;
    const float* old = t.d + j * t.d_col;
    for (int i = 0; i < kRows; i++) to[i] = t.alpha * from[i] + (t.beta == 0 ? 0 : t.beta * old[i]);
  }
}

// Rows of A at one place of k after the other: packed, or where they lie, `row` apart.
struct PackedRows {
  const float* a;
  float at(int i) const { return a[i]; }
  void advance() { a += kTileRows; }
};
struct LooseRows {
  const float* a;
  int64_t row;
  float at(int i) const { return a[i * row]; }
  void advance() { a++; }
};

template <int kRows, int kVectors>
void multiply_tile(const float* a, const float* b, int64_t k, const Target& t) {
  TileSums<float, kRows, kVectors> sums;
  clear<float, kRows, kVectors>(sums);
  if (t.c_col == 1) {  // C arrives while the sums are made
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i++) {
      __builtin_prefetch(t.c + i * t.c_row, 1);
      if (kVectors > 1) __builtin_prefetch(t.c + i * t.c_row + kVectors * kLanes - 1, 1);
    }
  }
  const auto add_up = [&](auto rows) {
    for (int64_t p = 0; p < k; p++, rows.advance(), b += t.b_row) {
      V right[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) right[v] = load(b + v * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; i++) {
        const V left(rows.at(i));
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) sums[i][v] = fma(left, right[v], sums[i][v]);
      }
    }
  };
  if (kRows == kTileRows && t.a_row > 0)
    add_up(LooseRows{a, t.a_row});
  else
    add_up(PackedRows{a});
  if (!is_by_rows(t)) {
    float tile[kRows * kPanel];
    spill<kPanel, float, kRows, kVectors>(tile, sums);
    if constexpr (kRows % 4 == 0) {
      if (t.c_row == 1 && (t.d_row == 1 || t.beta == 0)) return store_columns<kRows>(t, tile);
    }
    return store_scattered<kPanel>(t, tile);
  }
  store_sums<float, kRows, kVectors>(t, sums, kRows);
}

using TileFn = void (*)(const float*, const float*, int64_t, const Target&);
template <int kVectors, int... kRows>
constexpr TileFn tile_of_rows(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr TileFn table[] = {multiply_tile<kRows + 1, kVectors>...};
  return table[rows - 1];
}
TileFn tile_fn(int64_t rows, int64_t columns) {
  const auto all = std::make_integer_sequence<int, kTileRows>();
  if (columns <= kLanes) return tile_of_rows<1>(rows, all);
  return columns <= 2 * kLanes ? tile_of_rows<2>(rows, all) : tile_of_rows<kTileVectors>(rows, all);
}

// A's columns k0 to k0 + k times the packed block of B whose first column is `column`.
struct Block {
  const Sgemm& p;
  const float* packed_b;
  int64_t k0, k, column, columns;
};

// Packs lines [0, lines) of an operand into panels of kWidth lines by `length`, of which k are
// written.
template <int64_t kWidth>
void pack_panels(float* to, int64_t length, const float* from, int64_t lines, int64_t stride,
                 int64_t k_stride, int64_t k) {
  // Where lines lie side by side, memory is read along them, otherwise line by line.
  constexpr int64_t kStep = 16;
  const int64_t step = stride == 1 ? kStep : k;
  for (int64_t j = 0; j < k; j += step) {
    for (int64_t i = 0; i < lines; i += kWidth)
      pack<kWidth>(to + i * length + j * kWidth, from + i * stride + j * k_stride,
                   std::min(kWidth, lines - i), stride, k_stride, std::min(step, k - j));
  }
}

// The tile at (row, panel).
void multiply_one(const Block& block, const float* strip, int64_t row, int64_t rows,
                  int64_t panel) {
  const Sgemm& p = block.p;
  const int64_t column = block.column + panel * kPanel;
  const Target t =
      tile_target(p, row, column, rows, std::min(kPanel, block.columns - panel * kPanel), kPanel,
                  block.k0 == 0);
  tile_fn(rows, t.columns)(strip, block.packed_b + panel * kPanel * block.k, block.k, t);
}

// The strip of A that is packed next: the one at `row`, or the first one of the next block.
Prefetch ahead_in_a(const Block& block, int64_t row, int64_t tiles) {
  const Sgemm& p = block.p;
  const int64_t k0 = row < p.m ? block.k0 : block.k0 + block.k, k = std::min(block.k, p.k - k0);
  if (row >= p.m) row = 0;
  if (k <= 0) return {};
  const float* next = p.a + row * p.a_row + k0 * p.a_col;
  const int64_t rows = std::min(kStripRows, p.m - row);
  return p.a_col == 1 ? Prefetch(next, rows, p.a_row, k, tiles)
                      : Prefetch(next, k, p.a_col, rows, tiles);
}

// Rows [row, row_end) and panels [panel, panel_end) of C.
void multiply_block(const Block& block, int64_t row, int64_t row_end, int64_t panel,
                    int64_t panel_end) {
  const Sgemm& p = block.p;
  const int64_t next_k = block.k0 + block.k;
  const Scratch<float> packed(
      std::min(kStripRows, blocks_of(row_end - row, kTileRows) * kTileRows) * block.k);
  for (; row < row_end; row += kStripRows) {
    check_interrupt();
    const int64_t rows = std::min(kStripRows, row_end - row);
    pack_panels<kTileRows>(packed.data(), block.k, p.a + row * p.a_row + block.k0 * p.a_col, rows,
                           p.a_row, p.a_col, block.k);
    const int64_t tiles = blocks_of(rows, kTileRows) * (panel_end - panel);
    Prefetch prefetch = ahead_in_a(block, row + rows, tiles), prefetch_b;
    if (row == 0 && p.b_row == 1 && next_k < p.k) {
      const int64_t column = panel * kPanel;
      prefetch_b = Prefetch(p.b + next_k + (block.column + column) * p.b_col,
                            std::min(block.columns, panel_end * kPanel) - column, p.b_col,
                            std::min(block.k, p.k - next_k), tiles);
    }
    const auto tile = [&](int64_t r, int64_t i) {
      prefetch.advance();
      prefetch_b.advance();
      multiply_one(block, packed.data() + r * block.k, row + r,
                   std::min<int64_t>(kTileRows, rows - r), i);
    };
    if (block.k <= kShort) {  // what matters is to write C in order
      for (int64_t r = 0; r < rows; r += kTileRows)
        for (int64_t i = panel; i < panel_end; i++) tile(r, i);
    } else {
      for (int64_t i = panel; i < panel_end; i++)
        for (int64_t r = 0; r < rows; r += kTileRows) tile(r, i);
    }
  }
}

template <class F>
void for_range(bool parallel, int64_t n, int64_t grain, const F& f) {
  if (parallel)
    parallel_for(0, n, grain, f);
  else
    f(0, n);
}

// The tasks of a block: strips of rows, and where these are few, of columns too.
void multiply_parts(const Block& block, bool parallel) {
  for_parts(parallel, block.p.m, kTileRows, blocks_of(block.columns, kPanel),
            kTileRows * block.columns * block.k,
            [&](int64_t row, int64_t row_end, int64_t panel, int64_t panel_end) {
              multiply_block(block, row, row_end, panel, panel_end);
            });
}

void multiply(const Sgemm& p, bool parallel) {
  // Blocks of k end where vectors and lines of the cache do.
  const int64_t parts_k = blocks_of(p.k, kBlockK),
                block_k = parts_k == 1 ? p.k : blocks_of(blocks_of(p.k, parts_k), 16) * 16;
  const int64_t parts_n = blocks_of(p.n, p.m <= kFewRows ? kBlockColumns / 2 : kBlockColumns),
                block_n = blocks_of(blocks_of(p.n, parts_n), kPanel) * kPanel;
  const Scratch<float> packed(block_k * block_n);
  for (int64_t column = 0; column < p.n; column += block_n) {
    for (int64_t k0 = 0; k0 < p.k; k0 += block_k) {
      const Block block{p,      packed.data(),
                        k0,     std::min(block_k, p.k - k0),
                        column, std::min(block_n, p.n - column)};
      const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / (kPanel * block.k));
      for_range(parallel, blocks_of(block.columns, kPanel), grain, [&](int64_t begin, int64_t end) {
        pack_panels<kPanel>(packed.data() + begin * kPanel * block.k, block.k,
                            p.b + k0 * p.b_row + (column + begin * kPanel) * p.b_col,
                            std::min((end - begin) * kPanel, block.columns - begin * kPanel),
                            p.b_col, p.b_row, block.k);
      });
      multiply_parts(block, parallel);
    }
  }
}

void multiply_packed(const PackedProduct& p) {
  const bool loose = p.a_row > 0;
  const int64_t b_row = p.b_row > 0 ? p.b_row : kPanel;
  for (int64_t j = 0; j < p.n; j += kPanel) {
    for (int64_t i = 0, rows = 0; i < p.m; i += rows) {
      const int64_t line = p.a_first + i, above = loose ? 0 : line % kTileRows;
      rows = loose ? kTileRows : std::min(kTileRows - above, p.m - i);
      for (Prefetch& ahead : p.ahead) ahead.advance();
      float* c = p.c + i * p.c_row + j * p.c_col;
      const Target t{c,       p.c_row, p.c_col, c,    p.c_row,
                     p.c_col, p.alpha, p.beta,  rows, std::min(kPanel, p.n - j),
                     b_row,   p.a_row};
      const float* a = loose ? p.a + line * p.a_row : p.a + (line - above) * p.a_length + above;
      tile_fn(rows, t.columns)(a, p.b + j * p.b_length, p.k, t);
    }
  }
}

template <int64_t kVector>
void transpose(float* to, int64_t to_stride, const float* from, int64_t stride, int64_t lines,
               int64_t length) {
  int64_t i = 0;
  if constexpr (kVector == 16) {
    for (; i + 16 <= lines && length % 16 == 0; i += 16)
      for (int64_t j = 0; j < length; j += 16)
        transpose_sixteen<4>(to + j * to_stride + i, to_stride, from + i * stride + j, stride,
                             false);
  }
  for (; i + 4 <= lines; i += 4) {
    int64_t j = 0;
    for (; j + kLanes <= length; j += kLanes)
      transpose_four(to + j * to_stride + i, to_stride, from + i * stride + j, stride);
    for (; j < length; j++)
      for (int64_t u = i; u < i + 4; u++) to[j * to_stride + u] = from[u * stride + j];
  }
  for (; i < lines; i++)
    for (int64_t j = 0; j < length; j++) to[j * to_stride + i] = from[i * stride + j];
}

}  // namespace

const SgemmTiles& tiles_of_target() {
  static constexpr SgemmTiles tiles{kTileRows,           kPanel,          pack_panels<kTileRows>,
                                    pack_panels<kPanel>, multiply_packed, transpose<kLanes>};
  return tiles;
}

void sgemm_any(const Sgemm& p, bool parallel) {
  // A large B that lies column by column is packed strip by strip where it is used, by taking A's
  // place in the transposed product.
  const bool stream_b =
      p.m <= kFewRows && p.m < p.n && p.b_row == 1 && p.c_col == 1 && p.n * p.k >= kLargeOperand;
  if (stream_b || (p.c_col != 1 && p.c_row == 1))
    multiply(transposed(p), parallel);
  else
    multiply(p, parallel);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(sgemm_any);
HWY_EXPORT(tiles_of_target);

void sgemm(const Sgemm& p, bool parallel) { HWY_DYNAMIC_DISPATCH(sgemm_any)(p, parallel); }
const SgemmTiles& sgemm_tiles() { return HWY_DYNAMIC_DISPATCH(tiles_of_target)(); }

}  // namespace taeda::cpu
#endif
