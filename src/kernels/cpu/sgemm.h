// Products of f32 matrices: C = alpha A B + beta D, by register tiles over packed panels
// (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
//
// All matrices may have any strides (C is fastest with a unit one). D is C itself where it is null;
// with beta = 0 it is not read. Every sum runs over k in blocks whose length depends on k alone, so
// an element of C has the same bits whatever the number of threads.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct Sgemm {
  int64_t m, n, k;
  float* c;
  int64_t c_row, c_col;
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t b_row, b_col;
  float alpha = 1;
  float beta = 0;
  const float* d = nullptr;
  int64_t d_row = 0, d_col = 1;
};

// On the calling thread, or on the pool.
void sgemm(const Sgemm& p, bool parallel);

}  // namespace taeda::cpu
