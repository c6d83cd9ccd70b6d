// Products of bf16 matrices by oneDNN, on the calling thread, for CPUs with instructions that
// multiply bf16 (AVX-512 BF16, AMX): sums are f32, and operands are read as they lie. Those
// instructions take denormal numbers for 0.
#pragma once

#include "kernels/cpu/gemm/gemm.h"

namespace taeda::cpu {

struct OnednnProduct {
  // bf16, with a unit stride in one dimension and in the other one no shorter than a line of it; C
  // row-major, in f32 if `wide`.
  Matrix c, a, b;
  bool wide = false;
  const void* bias = nullptr;  // bf16, a row that is added to each row of C
  // Several such products, `count` of them: what lies between their matrices, in elements.
  int64_t count = 1, c_step = 0, a_step = 0, b_step = 0;
  bool packed = false;  // b.data is what onednn_pack wrote
};

bool onednn_multiplies(DType dtype);
// C = A B + bias. False, with nothing done, where oneDNN has no fast kernel for it.
bool onednn_gemm(const OnednnProduct& p);

// Whether a packed B may be multiplied by an A that lies so.
bool onednn_packs_for(const Matrix& a);
// B laid out for any number of products with the same columns, which otherwise copy it each: so
// many bytes.
int64_t onednn_packed_bytes(int64_t k, int64_t columns);
void onednn_pack(const Matrix& b, void* to);

}  // namespace taeda::cpu
