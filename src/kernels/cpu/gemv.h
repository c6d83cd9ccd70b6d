// Products of a matrix and a vector that read the matrix once, as it is stored: what decoding token
// by token spends its time on.
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

// y[i] = sum over j < k of w[i * ld + j] * x[j] for i < rows, on the calling thread. The elements
// of w are f32, f16 or bf16 and widen on the way; the sums are f32.
void dot_rows(DType dtype, float* y, const void* w, int64_t ld, int64_t rows, int64_t k,
              const float* x);

}  // namespace taeda::cpu
