// Matrix products on strided memory: C = alpha A B + beta D, where D is C itself unless another
// matrix is given.
//
// f32 goes to sgemm.h (small products to small_gemm.h or OpenBLAS), f64 to dgemm.h (small products
// to OpenBLAS), complex to OpenBLAS, bf16 to oneDNN (gemm_onednn.h) where the CPU multiplies bf16;
// otherwise it is, like f16, computed in f32. Both are rounded once. Integers wrap around. With
// beta = 0 D is not read. Either stride of A, B and C may be the long one; matrices without a unit
// stride are packed first.
#pragma once

#include "kernels/view.h"
#include "taeda/scalar.h"

namespace taeda::cpu {

struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;  // in elements
  int64_t col_stride = 0;
};

// The matrix in the last two dimensions of a view.
inline Matrix matrix_of(const View& v) {
  const int64_t n = v.ndim();
  return {v.data, v.sizes[n - 2], v.sizes[n - 1], v.strides[n - 2], v.strides[n - 1]};
}
inline Matrix transposed(const Matrix& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

// On the calling thread. D has C's rows and columns; its strides may be 0 (a bias).
void gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const Scalar& alpha = 1,
          const Scalar& beta = 0, const Matrix& d = {});
// C is cut into tiles whose shape depends on the sizes alone; the pool computes them.
void parallel_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b,
                   const Scalar& alpha = 1, const Scalar& beta = 0, const Matrix& d = {});

// On the calling thread: C = A B for `count` products whose matrices lie these steps apart, in
// elements. False where a loop over gemm is as good; then nothing was done.
struct BatchSteps {
  int64_t c, a, b;
};
bool try_gemm_batch(DType dtype, int64_t count, const Matrix& c, const Matrix& a, const Matrix& b,
                    const BatchSteps& steps);

// *sum = values[0] + ... + values[count - 1], in that order.
void sum_elements(DType dtype, void* sum, const void* values, int64_t count);

}  // namespace taeda::cpu
