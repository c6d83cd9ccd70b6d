// The matrix product operators on Views. Shapes and dtypes have been checked by the operators'
// contracts.
#include "kernels/cpu/gemm/matmul.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemv.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {

namespace {

// A vector as a column and as a row.
Matrix column(const View& v) { return {v.data, v.sizes[0], 1, v.strides[0], 1}; }
Matrix row(const View& v) { return transposed(column(v)); }

// A view that broadcasts to a rows x cols matrix.
Matrix broadcast_matrix(const View& v, int64_t rows, int64_t cols) {
  const int64_t n = v.ndim();
  const auto stride = [&](int64_t dim) {
    return dim < 0 || v.sizes[dim] == 1 ? 0 : v.strides[dim];
  };
  return {v.data, rows, cols, stride(n - 2), stride(n - 1)};
}

Matrix offset(Matrix m, DType dtype, int64_t elements) {
  m.data = static_cast<char*>(m.data) + elements * item_size(dtype);
  return m;
}

// Products that are worth a thread of their own.
constexpr int64_t kBatchWork = int64_t{1} << 17;
constexpr int64_t kCallWork = int64_t{1} << 24;  // and a call to a library

// Batches of small products are dealt out to threads; large ones are split one after the other.
void batched_gemm(const View& out, const View& a, const View& b, const Scalar& alpha,
                  const Scalar& beta, const View& d) {
  const int64_t batch = out.sizes[0];
  const Matrix c0 = matrix_of(out), a0 = matrix_of(a), b0 = matrix_of(b);
  const Matrix d0 = d.present ? broadcast_matrix(d, c0.rows, c0.cols) : Matrix{};
  const int64_t d_step = d.present && d.ndim() == 3 && d.sizes[0] != 1 ? d.strides[0] : 0;
  const BatchSteps steps{out.strides[0], a.strides[0], b.strides[0]};
  const auto start = [&](const Matrix& m, int64_t step, int64_t i) {
    return offset(m, out.dtype, i * step);
  };
  const auto one = [&](int64_t i, auto product) {
    product(out.dtype, start(c0, steps.c, i), start(a0, steps.a, i), start(b0, steps.b, i), alpha,
            beta, d.present ? start(d0, d_step, i) : d0);
  };
  const int64_t work = c0.rows * c0.cols * std::max<int64_t>(a0.cols, 1);
  if (batch < 4 && work >= 8 * kBatchWork) {
    for (int64_t i = 0; i < batch; i++) one(i, parallel_gemm);
    return;
  }
  const auto count = [&](int64_t total) {
    return std::max<int64_t>(1, total / std::max<int64_t>(work, 1));
  };
  int64_t grain = count(kBatchWork);
  if (out.dtype == DType::kBFloat16)  // computed in one call
    grain = std::max(grain, std::min(count(kCallWork), (batch + 7) / 8));
  parallel_for(0, batch, grain, [&](int64_t begin, int64_t end) {
    if (!d.present && try_gemm_batch(out.dtype, end - begin, start(c0, steps.c, begin),
                                     start(a0, steps.a, begin), start(b0, steps.b, begin), steps))
      return;
    for (int64_t i = begin; i < end; i++) one(i, gemm);
  });
}

// A matrix of eight-bit floats as dense floats.
Scratch<float> widened(DType dtype, const Matrix& m) {
  Scratch<float> numbers(m.rows * m.cols);
  for (int64_t i = 0; i < m.rows; i++)
    convert_row(numbers.data() + i * m.cols, DType::kFloat32, 1,
                offset(m, dtype, i * m.row_stride).data, dtype, m.col_stride, m.cols);
  return numbers;
}

Matrix dense_floats(const Scratch<float>& numbers, const Matrix& like) {
  return {numbers.data(), like.rows, like.cols, like.cols, 1};
}

// parallel_gemm, but eight-bit floats are multiplied as floats and each element of the result is
// rounded once.
void any_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b,
              const Scalar& alpha = 1, const Scalar& beta = 0, const Matrix& d = {}) {
  if (!is_storage_type(dtype)) return parallel_gemm(dtype, c, a, b, alpha, beta, d);
  const Scratch<float> wide_a = widened(dtype, a), wide_b = widened(dtype, b),
                       wide_d = widened(dtype, d), result(c.rows * c.cols);
  parallel_gemm(DType::kFloat32, dense_floats(result, c), dense_floats(wide_a, a),
                dense_floats(wide_b, b), alpha, beta, dense_floats(wide_d, d));
  for (int64_t i = 0; i < c.rows; i++)
    convert_row(offset(c, dtype, i * c.row_stride).data, dtype, c.col_stride,
                result.data() + i * c.cols, DType::kFloat32, 1, c.cols);
}

}  // namespace

void mm(const View& result, const View& self, const View& mat2) {
  any_gemm(result.dtype, matrix_of(result), matrix_of(self), matrix_of(mat2));
}

void addmm(const View& result, const View& self, const View& mat1, const View& mat2,
           const Scalar& beta, const Scalar& alpha) {
  const Matrix c = matrix_of(result);
  any_gemm(result.dtype, c, matrix_of(mat1), matrix_of(mat2), alpha, beta,
           broadcast_matrix(self, c.rows, c.cols));
}

void bmm(const View& result, const View& self, const View& mat2) {
  batched_gemm(result, self, mat2, 1, 0, {});
}

void baddbmm(const View& result, const View& self, const View& batch1, const View& batch2,
             const Scalar& beta, const Scalar& alpha) {
  batched_gemm(result, batch1, batch2, alpha, beta, self);
}

void mv(const View& result, const View& self, const View& vec) {
  parallel_gemm(result.dtype, column(result), matrix_of(self), column(vec));
}

void addmv(const View& result, const View& self, const View& mat, const View& vec,
           const Scalar& beta, const Scalar& alpha) {
  const Matrix c = column(result);
  Matrix d = broadcast_matrix(self, 1, c.rows);
  parallel_gemm(result.dtype, c, matrix_of(mat), column(vec), alpha, beta, transposed(d));
}

namespace {

// A vector's elements without gaps: its own, or copies in `copy`.
template <class C>
const C* dense(const void* data, int64_t n, int64_t stride, Scratch<C>& copy) {
  const C* from = static_cast<const C*>(data);
  if (stride == 1) return from;
  copy = Scratch<C>(n);
  for (int64_t i = 0; i < n; i++) copy[i] = from[i * stride];
  return copy.data();
}

// The product of a row, or its conjugate, and a column of one length.
void dot_of(DType dtype, void* to, const Matrix& a, const Matrix& b, bool conjugate) {
  const bool gaps = a.col_stride != 1 || b.row_stride != 1;
  if (!is_complex(dtype) || (gaps && !conjugate)) return gemm(dtype, {to, 1, 1, 1, 1}, a, b);
  with_dtype<ComplexTypes>(dtype, [&]<class C>(C) {
    using R = typename C::value_type;
    Scratch<C> copy_a(0), copy_b(0);
    const PartSums<R> s = multiply_parts(
        reinterpret_cast<const R*>(dense(a.data, a.cols, a.col_stride, copy_a)),
        reinterpret_cast<const R*>(dense(b.data, a.cols, b.row_stride, copy_b)), a.cols);
    const R sign = conjugate ? R(-1) : R(1);
    *static_cast<C*>(to) = {s.real_real - sign * s.imaginary_imaginary,
                            s.real_imaginary + sign * s.imaginary_real};
  });
}

// Blocks of fixed length keep the rounding error small and the bits independent of the number of
// threads.
void dot_in_blocks(const View& result, const View& self, const View& tensor, bool conjugate) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  const int64_t n = self.numel, blocks = (n + kBlock - 1) / kBlock, size = item_size(result.dtype);
  const Matrix a = row(self), b = column(tensor);
  // Half types would round each block's sum: their products are added in f32 in one go.
  if (blocks <= 1 || is_reduced_floating(result.dtype))
    return dot_of(result.dtype, result.data, a, b, conjugate);
  const Scratch<char> partial(blocks * size);
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      check_interrupt();
      const int64_t start = i * kBlock, length = std::min(kBlock, n - start);
      Matrix x = offset(a, result.dtype, start * a.col_stride),
             y = offset(b, result.dtype, start * b.row_stride);
      x.cols = y.rows = length;
      dot_of(result.dtype, partial.data() + i * size, x, y, conjugate);
    }
  });
  sum_elements(result.dtype, result.data, partial.data(), blocks);
}

}  // namespace

void dot(const View& result, const View& self, const View& tensor) {
  dot_in_blocks(result, self, tensor, false);
}

void vdot(const View& result, const View& self, const View& other) {
  dot_in_blocks(result, self, other, true);
}

// input: rows of features; weight: (out_features, in_features); bias broadcasts over the rows.
void linear_rows(const View& result, const View& input, const View& weight, const View& bias) {
  const Matrix c = matrix_of(result);
  any_gemm(result.dtype, c, matrix_of(input), transposed(matrix_of(weight)), 1,
           bias.present ? 1 : 0, bias.present ? broadcast_matrix(bias, c.rows, c.cols) : Matrix{});
}

}  // namespace taeda::cpu
