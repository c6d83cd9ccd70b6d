#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <complex>
#include <limits>
#include <utility>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/gemm/dgemm.h"
#include "kernels/cpu/gemm/gemm_onednn.h"
#include "kernels/cpu/gemm/gemv.h"
#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/gemm/small_gemm.h"
#include "kernels/cpu/pointwise/convert.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

// Below this many multiplications packing both operands costs more than it gains.
constexpr int64_t kSmallProduct = 48 * 48 * 48;
// Below this many calling OpenBLAS does.
constexpr int64_t kTinyProduct = 16 * 16 * 16;
// OpenBLAS's kernels for small products of f64 pack nothing; they want matrices that
// all lie row by row, or column by column.
constexpr int64_t kSmallDouble = 100 * 100 * 100;
// A product with few columns is bound by reading the matrix, which packing it would do twice.
constexpr int64_t kFewColumns = 16;
// BLAS counts in 32 bits.
constexpr int64_t kMaxBlasSize = int64_t{1} << 30;

template <class T>
struct Typed {
  T* data;
  int64_t rows, cols, row_stride, col_stride;
  T* at(int64_t i, int64_t j) const { return data + i * row_stride + j * col_stride; }
};
template <class T>
Typed<T> typed(const Matrix& m) {
  return {static_cast<T*>(m.data), m.rows, m.cols, m.row_stride, m.col_stride};
}

template <class T>
Typed<T> flipped(const Typed<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

template <class T>
Typed<T> tile(const Typed<T>& m, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  return {m.at(row, col), rows, cols, m.row_stride, m.col_stride};
}

template <class T>
bool row_major(const Typed<T>& m) {
  return (m.col_stride == 1 || m.cols <= 1) && (m.rows <= 1 || m.row_stride >= m.cols);
}
template <class T>
bool blas_layout(const Typed<T>& m) {
  const bool fits = m.row_stride < kMaxBlasSize && m.col_stride < kMaxBlasSize;
  return fits && (row_major(m) || row_major(flipped(m)));
}

// A row-major copy in `to`, converting.
template <class To, class From>
void pack(To* to, const Typed<From>& m) {
  Looks looks;
  for (int64_t i = 0; i < m.rows; i++) {
    for (int64_t j = 0; j < m.cols; j++) to[i * m.cols + j] = static_cast<To>(*m.at(i, j));
    looks.after(m.cols);
  }
}
template <class To, class From>
void parallel_pack(To* to, const Typed<From>& m) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(m.cols, 1));
  parallel_for(0, m.rows, grain, [&](int64_t begin, int64_t end) {
    pack(to + begin * m.cols, tile(m, begin, end - begin, 0, m.cols));
  });
}

// An operand as BLAS takes it: row-major or transposed, with a leading dimension.
template <class T>
struct Operand {
  const T* data;
  bool transpose;
  int64_t ld;
};
template <class T>
Operand<T> operand(const Typed<T>& m) {
  if (row_major(m))
    return {m.data, false, m.rows <= 1 ? std::max<int64_t>(m.cols, 1) : m.row_stride};
  return {m.data, true, m.cols <= 1 ? std::max<int64_t>(m.rows, 1) : m.col_stride};
}

BlasTranspose code(bool transpose) {
  return transpose ? BlasTranspose::kTranspose : BlasTranspose::kNone;
}

void call_gemm(const Operand<float>& a, const Operand<float>& b, int64_t m, int64_t n, int64_t k,
               float alpha, float beta, float* c, int64_t ldc) {
  const OpenBlasCall in_openblas;
  blas().sgemm(BlasOrder::kRowMajor, code(a.transpose), code(b.transpose), static_cast<int>(m),
               static_cast<int>(n), static_cast<int>(k), alpha, a.data, static_cast<int>(a.ld),
               b.data, static_cast<int>(b.ld), beta, c, static_cast<int>(ldc));
}
void call_gemm(const Operand<double>& a, const Operand<double>& b, int64_t m, int64_t n, int64_t k,
               double alpha, double beta, double* c, int64_t ldc) {
  const OpenBlasCall in_openblas;
  blas().dgemm(BlasOrder::kRowMajor, code(a.transpose), code(b.transpose), static_cast<int>(m),
               static_cast<int>(n), static_cast<int>(k), alpha, a.data, static_cast<int>(a.ld),
               b.data, static_cast<int>(b.ld), beta, c, static_cast<int>(ldc));
}
template <class R>
void call_gemm(const Operand<std::complex<R>>& a, const Operand<std::complex<R>>& b, int64_t m,
               int64_t n, int64_t k, std::complex<R> alpha, std::complex<R> beta,
               std::complex<R>* c, int64_t ldc) {
  const OpenBlasCall in_openblas;
  const auto fn = sizeof(R) == 4 ? blas().cgemm : blas().zgemm;
  fn(BlasOrder::kRowMajor, code(a.transpose), code(b.transpose), static_cast<int>(m),
     static_cast<int>(n), static_cast<int>(k), &alpha, a.data, static_cast<int>(a.ld), b.data,
     static_cast<int>(b.ld), &beta, c, static_cast<int>(ldc));
}

template <class T>
void scale(const Typed<T>& c, T beta) {
  for (int64_t i = 0; i < c.rows; i++) {
    for (int64_t j = 0; j < c.cols; j++)
      *c.at(i, j) = beta == T(0) ? T(0) : static_cast<T>(beta * *c.at(i, j));
  }
}

// A matrix times a column: BLAS's gemv reads the matrix once, its gemm packs it first.
template <class T>
bool try_gemv(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (c.cols != 1 || b.row_stride < 1 || c.row_stride < 1 || b.row_stride >= kMaxBlasSize ||
        c.row_stride >= kMaxBlasSize)
      return false;
    const Operand<T> m = operand(a);
    const int rows = static_cast<int>(m.transpose ? a.cols : a.rows);
    const int cols = static_cast<int>(m.transpose ? a.rows : a.cols);
    const OpenBlasCall in_openblas;
    const auto call = [&](auto fn) {
      fn(BlasOrder::kRowMajor, code(m.transpose), rows, cols, alpha, m.data, static_cast<int>(m.ld),
         b.data, static_cast<int>(b.row_stride), beta, c.data, static_cast<int>(c.row_stride));
    };
    if constexpr (std::is_same_v<T, float>)
      call(blas().sgemv);
    else
      call(blas().dgemv);
    return true;
  } else {
    return false;
  }
}

// Whether small_gemm() computes this product of f32 faster than OpenBLAS, which reads a B whose
// columns are contiguous element by element.
bool is_small(const Typed<float>& c, const Typed<float>& a, const Typed<float>& b) {
  if (c.col_stride != 1 && c.cols > 1) return false;
  const double work = static_cast<double>(c.rows) * c.cols * a.cols;
  if (work <= kTinyProduct) return b.row_stride == 1 || b.col_stride == 1;
  // Dot products serve few rows or columns, as B lies.
  const bool few = std::min(c.rows, c.cols) < kFewColumns;
  return b.col_stride != 1 && b.row_stride == 1 && !few && work <= kSmallProduct;
}

SmallProduct small_product(const Typed<float>& c, const Typed<float>& a, const Typed<float>& b,
                           float alpha, float beta) {
  return {c.rows,       c.cols, a.cols,       c.data,       c.row_stride, a.data, a.row_stride,
          a.col_stride, b.data, b.row_stride, b.col_stride, alpha,        beta};
}

template <class T>
bool try_small(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_small(c, a, b)) return false;
    small_gemm(small_product(c, a, b, alpha, beta));
    return true;
  } else {
    return false;
  }
}

template <class T>
void blas_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta);

// The longest side halved, with a look for interrupts between the halves.
template <class T>
void halved_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta) {
  const int64_t m = c.rows, n = c.cols, k = a.cols, longest = std::max({m, n, k}),
                half = longest / 2;
  const auto part = [&](int64_t at, int64_t length) {
    if (longest == m)
      blas_gemm(tile(c, at, length, 0, n), tile(a, at, length, 0, k), b, alpha, beta);
    else if (longest == n)
      blas_gemm(tile(c, 0, m, at, length), a, tile(b, 0, k, at, length), alpha, beta);
    else
      blas_gemm(c, tile(a, 0, m, at, length), tile(b, at, length, 0, n), alpha,
                at == 0 ? beta : T(1));
  };
  part(0, half);
  check_interrupt();
  part(half, longest - half);
}

// Multiplications in one call of a library, which cannot be interrupted: about a tenth of a second.
template <class T>
constexpr double kCallWork = std::is_floating_point_v<T> ? 5e8 : 1.25e8;

template <class T>
void blas_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(c, beta);
  if (std::max({m, n, k}) > kMaxBlasSize) return halved_gemm(c, a, b, alpha, beta);
  if (!blas_layout(a)) {
    const Scratch<T> packed(m * k);
    pack(packed.data(), a);
    return blas_gemm(c, {packed.data(), m, k, k, 1}, b, alpha, beta);
  }
  if (!blas_layout(b)) {
    const Scratch<T> packed(k * n);
    pack(packed.data(), b);
    return blas_gemm(c, a, {packed.data(), k, n, n, 1}, alpha, beta);
  }
  if (!blas_layout(c)) {
    const Scratch<T> packed(m * n);
    if (beta != T(0)) pack(packed.data(), c);
    blas_gemm({packed.data(), m, n, n, 1}, a, b, alpha, beta);
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) *c.at(i, j) = packed[i * n + j];
    }
    return;
  }
  constexpr int64_t kPerElement = 64;  // what writing an element of C, new memory perhaps, is worth
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k + kPerElement) >
      kCallWork<T>)
    return halved_gemm(c, a, b, alpha, beta);
  if (try_gemv(c, a, b, alpha, beta)) return;
  if (m == 1 && try_gemv(flipped(c), flipped(b), flipped(a), alpha, beta)) return;
  if (!row_major(c)) return blas_gemm(flipped(c), flipped(b), flipped(a), alpha, beta);
  if (try_small(c, a, b, alpha, beta)) return;
  call_gemm(operand(a), operand(b), m, n, k, alpha, beta, c.data,
            m == 1 ? std::max<int64_t>(n, 1) : c.row_stride);
}

// Integers have no library; products of 64 columns at a time keep the running sums in registers.
template <class T>
void integer_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta) {
  using U =
      std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int32_t, T>>;  // wraps without
                                                                              // undefined behaviour
  constexpr int64_t kWidth = 64;
  Looks looks;
  for (int64_t j0 = 0; j0 < c.cols; j0 += kWidth) {
    const int64_t width = std::min(kWidth, c.cols - j0);
    for (int64_t i = 0; i < c.rows; i++) {
      U sums[kWidth] = {};
      for (int64_t p = 0; p < a.cols; p++) {
        const U x = static_cast<U>(*a.at(i, p));
        const T* row = b.at(p, j0);
        if (b.col_stride == 1) {
          for (int64_t j = 0; j < width; j++) sums[j] += x * static_cast<U>(row[j]);
        } else {
          for (int64_t j = 0; j < width; j++) sums[j] += x * static_cast<U>(row[j * b.col_stride]);
        }
      }
      for (int64_t j = 0; j < width; j++) {
        T* out = c.at(i, j0 + j);
        const U old = beta == 0 ? U(0) : static_cast<U>(beta) * static_cast<U>(*out);
        *out = static_cast<T>(old + static_cast<U>(alpha) * sums[j]);
      }
      looks.after(a.cols * width);
    }
  }
}

// C = D
template <class T>
void fill_from(const Typed<T>& c, const Typed<T>& d) {
  if (c.row_stride == 1 && c.col_stride != 1) return fill_from(flipped(c), flipped(d));
  for (int64_t i = 0; i < c.rows; i++) {
    if (c.col_stride == 1 && d.col_stride == 1) {
      std::copy_n(d.at(i, 0), c.cols, c.at(i, 0));
    } else {
      for (int64_t j = 0; j < c.cols; j++) *c.at(i, j) = *d.at(i, j);
    }
  }
}

// Real products that are worth packing go to sgemm or dgemm, whatever their strides. False for the
// others.
template <class T>
bool try_packed(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta,
                const Typed<T>& d, bool parallel) {
  if constexpr (std::is_floating_point_v<T>) {
    const int64_t m = c.rows, n = c.cols, k = a.cols;
    const bool rows_lie = (row_major(c) && row_major(a) && row_major(b)) ||
                          (row_major(flipped(c)) && row_major(flipped(a)) && row_major(flipped(b)));
    const int64_t small = sizeof(T) == 4 ? kSmallProduct : rows_lie ? kSmallDouble : kTinyProduct;
    if (m <= 1 || n <= 1 || static_cast<double>(m) * n * k <= static_cast<double>(small))
      return false;
    const PackedGemm<T> p{m,
                          n,
                          k,
                          c.data,
                          c.row_stride,
                          c.col_stride,
                          a.data,
                          a.row_stride,
                          a.col_stride,
                          b.data,
                          b.row_stride,
                          b.col_stride,
                          alpha,
                          beta,
                          d.data,
                          d.row_stride,
                          d.col_stride};
    if constexpr (sizeof(T) == 4)
      sgemm(p, parallel);
    else
      dgemm(p, parallel);
    return true;
  } else {
    return false;
  }
}

template <class T>
void typed_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta,
                const Typed<T>& d) {
  if (try_packed(c, a, b, alpha, beta, d, false)) return;
  if (d.data && beta != T(0)) fill_from(c, d);
  if constexpr (std::is_integral_v<T>)
    integer_gemm(c, a, b, alpha, beta);
  else
    blas_gemm(c, a, b, alpha, beta);
}

constexpr int64_t kFewerColumns = 7;                  // where the CPU multiplies half precision
constexpr int64_t kStreamedSize = int64_t{1} << 15;   // of the matrix, from where on it pays
constexpr int64_t kStreamedGrain = int64_t{1} << 17;  // multiplications a chunk
// In f32, where columns lie as rows do, up to so many are multiplied without copying anything.
// Adding up the lanes of a sum takes as long as some of its multiplications.
constexpr int64_t kSomeColumns = 128;

// Rows [begin, end) of C = alpha Y + beta D, Y column by column, y_step apart.
template <class T>
void finalize_rows(const Typed<T>& c, const float* y, int64_t y_step, float alpha, float beta,
                   const Typed<T>& d, int64_t begin, int64_t end) {
  if (y == reinterpret_cast<const float*>(c.data) && alpha == 1 && beta == 0) return;
  const bool lines = c.row_stride == 1 && (beta == 0 || d.row_stride == 1);
  for (int64_t j = 0; j < c.cols; j++) {
    const float* from = y + j * y_step;
    const auto each = [&](auto to_stride, auto from_stride) {
      T* to = c.at(0, j);
      const T* old = beta == 0 ? nullptr : d.at(0, j);
      if (beta == 0) {
        for (int64_t i = begin; i < end; i++) to[i * to_stride] = T(alpha * from[i]);
      } else {
        for (int64_t i = begin; i < end; i++)
          to[i * to_stride] = T(alpha * from[i] + beta * static_cast<float>(old[i * from_stride]));
      }
    };
    if (lines)
      each(std::integral_constant<int64_t, 1>(), std::integral_constant<int64_t, 1>());
    else
      each(c.row_stride, d.row_stride);
  }
}

// C = alpha A B + beta D with few columns (or, flipped, rows), where the rows of A lie in memory
// one after the other: no copy of A, no widened one. False where that is not the case.
template <class T>
bool try_streamed(bool parallel, const Typed<T>& c, const Typed<T>& a, const Typed<T>& b,
                  float alpha, float beta, const Typed<T>& d) {
  if (c.cols > c.rows)
    return try_streamed(parallel, flipped(c), flipped(b), flipped(a), alpha, beta, flipped(d));
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  const bool as_it_lies = std::is_same_v<T, float> && b.row_stride == 1 && m >= 4;
  if (a.col_stride != 1 || n == 0 || k < 32) return false;
  const int64_t few = onednn_multiplies(kDTypeOf<T>) ? kFewerColumns : kFewColumns;
  const bool reads_once = n <= few && m * k >= kStreamedSize;
  if (!reads_once && !(as_it_lies && n <= std::min(k / 4, kSomeColumns))) return false;
  // Sums stand in C where nothing is to be added to what is there.
  const bool in_place = std::is_same_v<T, float> && c.row_stride == 1 && (beta == 0 || d.data);
  const Scratch<float> scratch_x(as_it_lies ? 0 : n * k), scratch_y(in_place ? 0 : n * m);
  if (!as_it_lies) pack(scratch_x.data(), flipped(b));
  float* const y = in_place ? reinterpret_cast<float*>(c.data) : scratch_y.data();
  const int64_t y_step = in_place ? c.col_stride : m;
  const DotRows dots{y,
                     y_step,
                     a.data,
                     a.row_stride,
                     k,
                     as_it_lies ? reinterpret_cast<const float*>(b.data) : scratch_x.data(),
                     as_it_lies ? b.col_stride : k,
                     n};
  const auto rows = [&](int64_t begin, int64_t end) {
    dot_rows(kDTypeOf<T>, dots, begin, end);
    finalize_rows(c, y, y_step, alpha, beta, d.data ? d : c, begin, end);
  };
  const int64_t grain = std::max<int64_t>(1, kStreamedGrain / (k * n) / 4) * 4;
  if (parallel)
    parallel_for(0, m, grain, rows);
  else
    rows(0, m);
  return true;
}

// A f32 copy of m in `to`, with the same side contiguous.
template <class T>
Typed<float> widened(float* to, const Typed<T>& m) {
  if (!row_major(m) && row_major(flipped(m))) return flipped(widened(to, flipped(m)));
  if (m.col_stride != 1) {
    parallel_pack(to, m);
    return {to, m.rows, m.cols, m.cols, 1};
  }
  const Conversion convert(DType::kFloat32, kDTypeOf<T>);
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(m.cols, 1));
  parallel_for(0, m.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) convert(to + i * m.cols, m.at(i, 0), m.cols);
  });
  return {to, m.rows, m.cols, m.cols, 1};
}

// Half precision: operands widen to f32 once, the product is rounded once.
template <class T, class Product>
void widened_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, float alpha, float beta,
                  const Typed<T>& d, const Product& product) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  const Scratch<float> wide_a(m * k), wide_b(k * n), wide_c(m * n);
  const Typed<float> x = widened(wide_a.data(), a), y = widened(wide_b.data(), b);
  if (beta != 0) parallel_pack(wide_c.data(), d.data ? d : c);
  product(Typed<float>{wide_c.data(), m, n, n, 1}, x, y, alpha, beta, Typed<float>{});
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(n, 1));
  parallel_for(0, m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      for (int64_t j = 0; j < n; j++) *c.at(i, j) = T(wide_c[i * n + j]);
    }
  });
}

// The side of a tile of C: long enough to reuse what it reads, short enough for several tiles.
// Below two tiles of the least side packing costs more than another thread gains.
constexpr int64_t kTile = 256;
constexpr int64_t kMinTile = 64;
constexpr int64_t kTileWork = int64_t{1} << 20;  // multiplications that are worth another tile
constexpr double kMostWork = 2e10;               // of a tile: about a tenth of a second

struct Tiling {
  int64_t rows, cols;
};
Tiling choose_tiles(int64_t m, int64_t n, int64_t k, int64_t side = kTile) {
  Tiling t{m, n};
  const auto halve = [](int64_t v) { return ((v + 1) / 2 + 15) / 16 * 16; };
  while (t.rows * t.cols > 0 && static_cast<double>(t.rows) * t.cols * k >= 2.0 * kTileWork) {
    const bool small = t.rows <= side && t.cols <= side;
    const bool enough = ((m + t.rows - 1) / t.rows) * ((n + t.cols - 1) / t.cols) >= 8;
    const bool brief =
        static_cast<double>(t.rows) * static_cast<double>(t.cols) * static_cast<double>(k) <=
        kMostWork;
    if (small && enough && brief) break;
    if (t.rows * t.cols <= 2 * kMinTile * kMinTile) break;
    if (t.rows >= t.cols)
      t.rows = halve(t.rows);
    else
      t.cols = halve(t.cols);
  }
  return t;
}

// product(C, A, B, D) for each tile of C = A B + D, on all threads.
template <class T, class F>
void for_each_tile(Tiling t, const Typed<T>& c, const Typed<T>& a, const Typed<T>& b,
                   const Typed<T>& d, const F& product) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  const int64_t across = (n + t.cols - 1) / t.cols, down = (m + t.rows - 1) / t.rows;
  parallel_for(0, across * down, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t row = i / across * t.rows, col = i % across * t.cols;
      const int64_t rows = std::min(t.rows, m - row), cols = std::min(t.cols, n - col);
      product(tile(c, row, rows, col, cols), tile(a, row, rows, 0, k), tile(b, 0, k, col, cols),
              d.data ? tile(d, row, rows, col, cols) : d);
    }
  });
}

template <class T>
void tiled_gemm(const Typed<T>& c, const Typed<T>& a, const Typed<T>& b, T alpha, T beta,
                const Typed<T>& d) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  if (m == 0 || n == 0) return;
  if (try_packed(c, a, b, alpha, beta, d, true)) return;
  const Tiling t = choose_tiles(m, n, k);
  if (t.rows >= m && t.cols >= n) return typed_gemm(c, a, b, alpha, beta, d);
  if constexpr (!std::is_integral_v<T>) {  // pack once, not once a tile
    if (!blas_layout(a)) {
      const Scratch<T> packed(m * k);
      parallel_pack(packed.data(), a);
      return tiled_gemm(c, {packed.data(), m, k, k, 1}, b, alpha, beta, d);
    }
    if (!blas_layout(b)) {
      const Scratch<T> packed(k * n);
      parallel_pack(packed.data(), b);
      return tiled_gemm(c, a, {packed.data(), k, n, n, 1}, alpha, beta, d);
    }
  }
  for_each_tile(t, c, a, b, d, [&](const auto& out, const auto& x, const auto& y, const auto& z) {
    typed_gemm(out, x, y, alpha, beta, z);
  });
}

// A matrix as oneDNN takes it.
Matrix described(const Typed<BFloat16>& m) {
  const Operand<BFloat16> o = operand(m);
  return {m.data, m.rows, m.cols, o.transpose ? 1 : o.ld, o.transpose ? o.ld : 1};
}

// A tile of C = alpha A B + beta D in bf16. What oneDNN does not add itself is added to f32 sums.
// B's columns may be `packed`. False, with nothing done, where oneDNN has no kernel for it.
bool try_onednn_tile(const Typed<BFloat16>& c, const Typed<BFloat16>& a, const Typed<BFloat16>& b,
                     float alpha, float beta, const Typed<BFloat16>& d, void* packed) {
  const int64_t m = c.rows, n = c.cols;
  const bool has_bias = beta == 1 && d.data && d.row_stride == 0 && d.col_stride == 1;
  OnednnProduct p{described(c), described(a), described(b)};
  p.packed = packed != nullptr;
  if (packed) p.b.data = packed;
  if (row_major(c) && alpha == 1 && (beta == 0 || has_bias)) {
    if (has_bias) p.bias = d.data;
    // oneDNN's fast kernels write whole matrices, and want B packed or column by column.
    const bool staged = c.row_stride > n && (packed || b.row_stride == 1);
    const Scratch<BFloat16> whole(staged ? m * n : 0);
    if (staged) p.c = {whole.data(), m, n, n, 1};
    if (!onednn_gemm(p)) return false;
    for (int64_t i = 0; staged && i < m; i++) std::copy_n(whole.data() + i * n, n, c.at(i, 0));
    return true;
  }
  const Scratch<float> sums(m * n);
  p.c = {sums.data(), m, n, n, 1};
  p.wide = true;
  if (!onednn_gemm(p)) return false;
  const Typed<BFloat16>& old = d.data ? d : c;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      const float sum = alpha * sums[i * n + j];
      *c.at(i, j) = BFloat16(beta == 0 ? sum : sum + beta * static_cast<float>(*old.at(i, j)));
    }
  }
  return true;
}

// The same by whichever way there is: with `packed` columns, without, in f32.
void onednn_tile(const Typed<BFloat16>& c, const Typed<BFloat16>& a, const Typed<BFloat16>& b,
                 float alpha, float beta, const Typed<BFloat16>& d, void* packed) {
  if (packed && try_onednn_tile(c, a, b, alpha, beta, d, packed)) return;
  if (try_onednn_tile(c, a, b, alpha, beta, d, nullptr)) return;
  widened_gemm(c, a, b, alpha, beta, d,
               [](const auto& out, const auto& x, const auto& y, float s, float t, const auto& z) {
                 typed_gemm(out, x, y, s, t, z);
               });
}

// Compiling a kernel for a size takes as long as 30 million multiplications: not for small products
// and single rows, whose sizes may be new each time (decoding with a cache that grows).
constexpr int64_t kOnednnProduct = 64 * 64 * 64;
constexpr int64_t kOnednnTile = 512;
constexpr int64_t kOnednnPacked = 1024;  // rows with which laying out B once pays

bool worth_onednn(int64_t count, int64_t m, int64_t n, int64_t k) {
  return std::min(m, n) > kFewerColumns &&
         static_cast<double>(count) * static_cast<double>(m) * static_cast<double>(n) *
                 static_cast<double>(k) >=
             kOnednnProduct &&
         onednn_multiplies(DType::kBFloat16);
}

// False where the CPU has no instructions for bf16, and for small products.
bool try_onednn(bool parallel, const Typed<BFloat16>& c, const Typed<BFloat16>& a,
                const Typed<BFloat16>& b, float alpha, float beta, const Typed<BFloat16>& d) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  if (!worth_onednn(1, m, n, k)) return false;
  if (!row_major(c) && row_major(flipped(c)))
    return try_onednn(parallel, flipped(c), flipped(b), flipped(a), alpha, beta, flipped(d));
  const bool copy_a = !blas_layout(a), copy_b = !blas_layout(b);
  const Scratch<BFloat16> scratch_a(copy_a ? m * k : 0), scratch_b(copy_b ? k * n : 0);
  if (copy_a) parallel_pack(scratch_a.data(), a);
  if (copy_b) parallel_pack(scratch_b.data(), b);
  const Typed<BFloat16> x = copy_a ? Typed<BFloat16>{scratch_a.data(), m, k, k, 1} : a,
                        y = copy_b ? Typed<BFloat16>{scratch_b.data(), k, n, n, 1} : b;
  const Tiling t = parallel ? choose_tiles(m, n, k, kOnednnTile) : Tiling{m, n};
  const bool pack_b = m >= kOnednnPacked && t.rows < m && y.col_stride == 1 &&
                      onednn_packs_for(described(tile(x, 0, t.rows, 0, k)));
  const int64_t strip = pack_b ? onednn_packed_bytes(k, t.cols) : 0,
                strips = (n + t.cols - 1) / t.cols;
  const Scratch<char> packed(strip * strips);
  parallel_for(0, pack_b ? strips : 0, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      onednn_pack(described(tile(y, 0, k, i * t.cols, std::min(t.cols, n - i * t.cols))),
                  packed.data() + i * strip);
  });
  for_each_tile(t, c, x, y, d, [&](const auto& out, const auto& l, const auto& r, const auto& z) {
    onednn_tile(out, l, r, alpha, beta, z,
                pack_b ? packed.data() + (r.data - y.data) / t.cols * strip : nullptr);
  });
  return true;
}

void dispatch_gemm(bool parallel, DType dtype, const Matrix& c, const Matrix& a, const Matrix& b,
                   const Scalar& alpha, const Scalar& beta, const Matrix& d) {
  with_dtype<Join<Numbers, ComplexTypes>>(dtype, [&]<class T>(T) {
    const auto product = [parallel]<class U>(const Typed<U>& out, const Typed<U>& x,
                                             const Typed<U>& y, U s, U t, const Typed<U>& z) {
      if (parallel)
        tiled_gemm(out, x, y, s, t, z);
      else
        typed_gemm(out, x, y, s, t, z);
    };
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                  std::is_same_v<T, float>) {
      if (try_streamed(parallel, typed<T>(c), typed<T>(a), typed<T>(b), alpha.to<float>(),
                       beta.to<float>(), typed<T>(d)))
        return;
    }
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (try_onednn(parallel, typed<T>(c), typed<T>(a), typed<T>(b), alpha.to<float>(),
                     beta.to<float>(), typed<T>(d)))
        return;
    }
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      widened_gemm(typed<T>(c), typed<T>(a), typed<T>(b), alpha.to<float>(), beta.to<float>(),
                   typed<T>(d), product);
    } else {
      product(typed<T>(c), typed<T>(a), typed<T>(b), alpha.to<T>(), beta.to<T>(), typed<T>(d));
    }
  });
}

}  // namespace

void gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const Scalar& alpha,
          const Scalar& beta, const Matrix& d) {
  dispatch_gemm(false, dtype, c, a, b, alpha, beta, d);
}

void parallel_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b,
                   const Scalar& alpha, const Scalar& beta, const Matrix& d) {
  dispatch_gemm(true, dtype, c, a, b, alpha, beta, d);
}

// Whether no element of `count` matrices that lie `step` apart is another one's, too, as far as
// strides tell that are multiples of the next smaller extent: what oneDNN asks of a batch.
static bool disjoint(const Typed<BFloat16>& m, int64_t count, int64_t step) {
  if (count == 1) return true;
  std::array<std::pair<int64_t, int64_t>, 3> axes = {
      {{step, count}, {m.row_stride, m.rows}, {m.col_stride, m.cols}}};  // stride, size
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < 2; i++)
    if (axes[i].first < 1 || axes[i + 1].first < axes[i].first * axes[i].second) return false;
  return true;
}

static bool try_onednn_batch(int64_t count, const Typed<BFloat16>& c, const Typed<BFloat16>& a,
                             const Typed<BFloat16>& b, const BatchSteps& steps) {
  if (!worth_onednn(count, c.rows, c.cols, a.cols)) return false;
  if (!row_major(c) || !blas_layout(a) || !blas_layout(b)) return false;
  if (!disjoint(c, count, steps.c) || !disjoint(a, count, steps.a) || !disjoint(b, count, steps.b))
    return false;
  return onednn_gemm(
      {described(c), described(a), described(b), false, nullptr, count, steps.c, steps.a, steps.b});
}

bool try_gemm_batch(DType dtype, int64_t count, const Matrix& c, const Matrix& a, const Matrix& b,
                    const BatchSteps& steps) {
  if (dtype == DType::kBFloat16) {
    return try_onednn_batch(count, typed<BFloat16>(c), typed<BFloat16>(a), typed<BFloat16>(b),
                            steps);
  }
  const auto out = typed<float>(c), x = typed<float>(a), y = typed<float>(b);
  if (dtype != DType::kFloat32 || !is_small(out, x, y)) return false;
  small_gemm(small_product(out, x, y, 1, 0), count, steps.c, steps.a, steps.b);
  return true;
}

void sum_elements(DType dtype, void* sum, const void* values, int64_t count) {
  with_dtype<Join<Numbers, ComplexTypes>>(dtype, [&]<class T>(T) {
    T total{};
    for (int64_t i = 0; i < count; i++)
      total = static_cast<T>(total + static_cast<const T*>(values)[i]);
    *static_cast<T*>(sum) = total;
  });
}

}  // namespace taeda::cpu
