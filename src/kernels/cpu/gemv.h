// Products of a matrix and one or a few vectors that read the matrix once, as it is stored: what
// decoding token by token and recurrent layers spend their time on.
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

// y[c * rows + r] = sum over j < k of w[r * ld + j] * x[c * k + j].
struct DotRows {
  float* y;
  const void* w;  // f32, f16 or bf16, which widen on the way; the sums are f32
  int64_t ld, rows, k;
  const float* x;
  int64_t columns;
};

// The rows from begin to end, on the calling thread.
void dot_rows(DType dtype, const DotRows& p, int64_t begin, int64_t end);

}  // namespace taeda::cpu
