// Products of f64 matrices: C = alpha A B + beta D, by register tiles over packed panels as
// sgemm.h, with all that it says of strides, of D and of the number of threads.
#pragma once

#include "kernels/cpu/gemm/sgemm.h"

namespace taeda::cpu {

using Dgemm = PackedGemm<double>;

// On the calling thread, or on the pool.
void dgemm(const Dgemm& p, bool parallel);

}  // namespace taeda::cpu
