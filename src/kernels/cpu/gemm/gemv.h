// Products of a matrix and one or some vectors by dot products, which read the matrix once, as it
// is stored: what decoding token by token and linear layers of short batches spend their time on.
// And dot products of complex vectors.
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

// y[c * y_step + r] = sum over j < k of w[r * ld + j] * x[c * x_step + j].
struct DotRows {
  float* y;
  int64_t y_step;
  const void* w;  // f32, f16 or bf16, which widen on the way; the sums are f32
  int64_t ld, k;
  const float* x;
  int64_t x_step, columns;
};

// The rows from begin to end, on the calling thread.
void dot_rows(DType dtype, const DotRows& p, int64_t begin, int64_t end);

// Sums over the products of two complex vectors' parts: what a dot product is made of.
template <class R>
struct PartSums {
  R real_real, imaginary_imaginary, real_imaginary, imaginary_real;
};
PartSums<float> multiply_parts(const float* x, const float* y, int64_t n);
PartSums<double> multiply_parts(const double* x, const double* y, int64_t n);

}  // namespace taeda::cpu
