// Products of f32 matrices: C = alpha A B + beta D, by register tiles over packed panels
// (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
//
// All matrices may have any strides (C is fastest with a unit one). D is C itself where it is null;
// with beta = 0 it is not read. Every sum runs over k in blocks whose length depends on k alone, so
// an element of C has the same bits whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace taeda::cpu {

template <class T>
struct PackedGemm {
  int64_t m, n, k;
  T* c;
  int64_t c_row, c_col;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row, b_col;
  T alpha = 1;
  T beta = 0;
  const T* d = nullptr;
  int64_t d_row = 0, d_col = 1;
};
using Sgemm = PackedGemm<float>;

// C^T = alpha B^T A^T + beta D^T, the same product.
template <class T>
PackedGemm<T> transposed(const PackedGemm<T>& p) {
  return {p.n, p.m,     p.k,     p.c,     p.c_col, p.c_row, p.b,     p.b_col, p.b_row,
          p.a, p.a_col, p.a_row, p.alpha, p.beta,  p.d,     p.d_col, p.d_row};
}

// On the calling thread, or on the pool.
void sgemm(const Sgemm& p, bool parallel);

// Fetches a matrix of `lines` rows into the cache in `chunks` steps, one between any two tiles:
// packing it afterwards would wait for memory.
class Prefetch {
 public:
  Prefetch() = default;
  Prefetch(const float* data, int64_t lines, int64_t stride, int64_t length, int64_t chunks)
      : line_(data),
        stride_(stride),
        length_(length),
        left_(lines * ((length + kStep - 1) / kStep)) {
    chunks = std::max<int64_t>(chunks, 1);
    step_ = (left_ + chunks - 1) / chunks;
  }
  void advance() {
    const int64_t n = std::min(left_, step_);
    left_ -= n;
    for (int64_t i = 0; i < n; i++) {
      __builtin_prefetch(line_ + at_, 0, 2);
      if ((at_ += kStep) >= length_) at_ = 0, line_ += stride_;
    }
  }

 private:
  static constexpr int64_t kStep = 16;  // floats: a line of the cache
  const float* line_ = nullptr;
  int64_t stride_ = 0, length_ = 0, left_ = 0, step_ = 0, at_ = 0;
};

// The parts of it, for kernels that pack an operand once and use it in several small products: C =
// alpha A B + beta C on the calling thread.
//
// A's rows are packed in strips of `rows` and B's columns in panels of `columns`; element (i, j) of
// a strip stands at j * rows + i. A strip is `length` elements of k long in memory (a panel
// likewise), of which a product may use k from anywhere: a + offset * rows.
struct PackedProduct {
  int64_t m, n, k;
  float* c;
  int64_t c_row, c_col;
  const float* a;
  int64_t a_length;
  const float* b;
  int64_t b_length;
  float alpha = 1;
  float beta = 0;
  int64_t a_first = 0;             // the row of A that meets the first of C
  std::span<Prefetch> ahead = {};  // advance with each tile
  // Rows of A that are not packed, so far apart: then whole strips are read and written, whatever m
  // is, and C's columns lie side by side.
  int64_t a_row = 0;
  int64_t b_row = 0;  // of a panel, where it is not `columns`
};
struct SgemmTiles {
  int64_t rows, columns;
  // Line i of an operand (a row of A, a column of B) is from[i * stride + j * k_stride], j < k. The
  // last strip is filled up with lines of zeros.
  using Pack = void (*)(float* to, int64_t length, const float* from, int64_t lines, int64_t stride,
                        int64_t k_stride, int64_t k);
  Pack pack_rows, pack_columns;
  void (*multiply)(const PackedProduct& p);
  // to[j * to_stride + i] = from[i * stride + j] for i < lines, j < length
  void (*transpose)(float* to, int64_t to_stride, const float* from, int64_t stride, int64_t lines,
                    int64_t length);
};
const SgemmTiles& sgemm_tiles();

}  // namespace taeda::cpu
