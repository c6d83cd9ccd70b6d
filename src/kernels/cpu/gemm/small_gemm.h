// Products of matrices so small that packing operands, or a call to a library, takes as long as the
// multiplications.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// C = alpha A B + beta C in f32: C [m, n] with contiguous rows, B [k, n] with rows or columns
// contiguous, A [m, k] of any strides, which count elements. With beta 0 what C holds is not read.
struct SmallProduct {
  int64_t m, n, k;
  float* c;
  int64_t c_row;
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t b_row, b_col;
  float alpha, beta;
};

// `count` of them, whose matrices lie these steps apart.
void small_gemm(SmallProduct p, int64_t count = 1, int64_t c_step = 0, int64_t a_step = 0,
                int64_t b_step = 0);

}  // namespace taeda::cpu
