#include "kernels/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include "base/parallel.h"

namespace taeda::cpu {
namespace {

template <class T>
struct Values {
  std::vector<T> data;
  Matrix matrix;
};

// Random values in a matrix with the given order of memory; unused elements are NaN.
template <class T>
Values<T> random_matrix(int64_t rows, int64_t cols, bool transposed_memory, int64_t gap,
                        std::mt19937& rng) {
  const int64_t ld = (transposed_memory ? rows : cols) + gap,
                lines = transposed_memory ? cols : rows;
  Values<T> v;
  v.data.assign(static_cast<size_t>(ld * lines + 1), T(std::numeric_limits<float>::quiet_NaN()));
  v.matrix = {v.data.data(), rows, cols, transposed_memory ? 1 : ld, transposed_memory ? ld : 1};
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < cols; j++)
      v.data[static_cast<size_t>(i * v.matrix.row_stride + j * v.matrix.col_stride)] =
          T(uniform(rng));
  }
  return v;
}

template <class T>
T& at(const Matrix& m, int64_t i, int64_t j) {
  return static_cast<T*>(m.data)[i * m.row_stride + j * m.col_stride];
}

template <class T>
using Wide = std::conditional_t<std::is_convertible_v<T, float>, double, std::complex<double>>;

template <class T>
void check_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool tc, double tolerance) {
  std::mt19937 rng(1);
  const auto a = random_matrix<T>(m, k, ta, 3, rng), b = random_matrix<T>(k, n, tb, 0, rng);
  const auto c = random_matrix<T>(m, n, tc, 2, rng), d = random_matrix<T>(m, n, false, 1, rng);
  using W = Wide<T>;
  for (const bool with_d : {false, true}) {
    if (!with_d) {  // beta = 0 must not read C
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
          at<T>(c.matrix, i, j) = T(std::numeric_limits<float>::quiet_NaN());
    }
    parallel_gemm(kDTypeOf<T>, c.matrix, a.matrix, b.matrix, 0.5, with_d ? 2.0 : 0.0,
                  with_d ? d.matrix : Matrix{});
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        W sum = 0;
        for (int64_t p = 0; p < k; p++) sum += W(at<T>(a.matrix, i, p)) * W(at<T>(b.matrix, p, j));
        sum *= 0.5;
        if (with_d) sum += 2.0 * W(at<T>(d.matrix, i, j));
        ASSERT_LE(std::abs(W(at<T>(c.matrix, i, j)) - sum),
                  tolerance * std::max<double>(1, std::abs(sum)))
            << m << "x" << k << " times " << k << "x" << n << " at " << i << "," << j << " layout "
            << ta << tb << tc;
      }
    }
  }
}

template <class T>
void check_all_layouts(double tolerance) {
  const int64_t shapes[][3] = {{1, 1, 1},  {2, 2, 2},     {3, 5, 7},    {1, 9, 33},
                               {17, 1, 5}, {130, 67, 40}, {5, 300, 20}, {4, 4, 0}};
  for (const auto& s : shapes)
    for (int layout = 0; layout < 8; layout++)
      check_product<T>(s[0], s[1], s[2], layout & 1, layout & 2, layout & 4, tolerance);
}

TEST(Gemm, Float32) { check_all_layouts<float>(1e-5); }
TEST(Gemm, Float64) { check_all_layouts<double>(1e-13); }
TEST(Gemm, Complex) {
  check_all_layouts<std::complex<float>>(1e-5);
  check_all_layouts<std::complex<double>>(1e-13);
}
TEST(Gemm, HalfPrecision) {
  check_all_layouts<BFloat16>(1e-2);
  check_all_layouts<Half>(2e-3);
}
TEST(Gemm, LargeEnoughForTiles) {
  check_product<float>(300, 410, 200, false, true, false, 1e-4);
  check_product<float>(700, 30, 100, true, false, true, 1e-4);
  for (int layout = 0; layout < 8; layout++) {  // several blocks of k and of columns, few rows
    check_product<float>(30, 1100, 400, layout & 1, layout & 2, layout & 4, 1e-4);
    check_product<float>(150, 45, 800, layout & 1, layout & 2, layout & 4, 1e-4);
  }
}

TEST(Gemm, LargeEnoughForTilesOfFloat64) {
  const int64_t shapes[][3] = {{30, 1100, 400}, {150, 45, 800}, {13, 17, 97}, {400, 70, 90},
                               {64, 64, 64},    {12, 16, 30},   {5, 520, 7}};
  for (const auto& s : shapes)
    for (int layout = 0; layout < 8; layout++)
      check_product<double>(s[0], s[1], s[2], layout & 1, layout & 2, layout & 4, 1e-12);
}

TEST(Gemm, DotProducts) {  // A and B^T as they lie, whole blocks of four rows and the rest
  for (const int64_t few : {1, 3, 17, 40})
    for (int layout = 0; layout < 8; layout++)
      check_product<float>(few, 61, 203, layout & 1, layout & 2, layout & 4, 1e-4);
}
TEST(Gemm, HalfPrecisionInTiles) {
  for (int layout = 0; layout < 8; layout++) {
    check_product<BFloat16>(70, 600, 200, layout & 1, layout & 2, layout & 4, 2e-2);
    check_product<BFloat16>(9, 1100, 70, layout & 1, layout & 2, layout & 4, 2e-2);
    check_product<Half>(70, 600, 200, layout & 1, layout & 2, layout & 4, 4e-3);
  }
}

// Small integers, whose products are exact: C = A B + D, where D is a row, a column or a matrix.
TEST(Gemm, HalfPrecisionAddsWhatItIsGiven) {
  constexpr int64_t kRows = 40, kCols = 72, kInner = 64;
  const auto value = [](int64_t i) { return BFloat16(static_cast<float>(i % 5 - 2)); };
  std::vector<BFloat16> a, b, d, c(kRows * kCols);
  for (int64_t i = 0; i < kRows * kInner; i++) a.push_back(value(i * 7 + i / 3));
  for (int64_t i = 0; i < kInner * kCols; i++) b.push_back(value(i * 3 + i / 11));
  for (int64_t i = 0; i < kRows * kCols; i++) d.push_back(value(i * 13));
  const Matrix x{a.data(), kRows, kInner, 1, kRows}, y{b.data(), kInner, kCols, 1, kInner};
  const Matrix z{c.data(), kRows, kCols, kCols, 1};
  const int64_t strides[][2] = {{0, 1}, {1, 0}, {kCols, 1}, {0, 0}};
  for (const auto& s : strides) {
    const Matrix old{d.data(), kRows, kCols, s[0], s[1]};
    parallel_gemm(DType::kBFloat16, z, x, y, 1, 1, old);
    for (int64_t i = 0; i < kRows; i++) {
      for (int64_t j = 0; j < kCols; j++) {
        float sum = static_cast<float>(at<BFloat16>(old, i, j));
        for (int64_t p = 0; p < kInner; p++)
          sum +=
              static_cast<float>(at<BFloat16>(x, i, p)) * static_cast<float>(at<BFloat16>(y, p, j));
        ASSERT_EQ(static_cast<float>(at<BFloat16>(z, i, j)), static_cast<float>(BFloat16(sum)))
            << i << "," << j << " strides " << s[0] << "," << s[1];
      }
    }
  }
}

TEST(Gemm, IntegersWrapAround) {
  std::vector<int8_t> a{100, 100}, b{2, 3}, c{0};
  gemm(DType::kInt8, {c.data(), 1, 1, 1, 1}, {a.data(), 1, 2, 2, 1}, {b.data(), 2, 1, 1, 1});
  EXPECT_EQ(c[0], static_cast<int8_t>(500));
  std::vector<int64_t> x{1, 2, 3, 4}, y{5, 6, 7, 8}, z(4, 100);
  gemm(DType::kInt64, {z.data(), 2, 2, 2, 1}, {x.data(), 2, 2, 2, 1}, {y.data(), 2, 2, 1, 2}, 2, 1);
  EXPECT_EQ(z, (std::vector<int64_t>{100 + 2 * 17, 100 + 2 * 23, 100 + 2 * 39, 100 + 2 * 53}));
}

TEST(Gemm, StridesWithoutUnit) {
  std::vector<float> a{1, 0, 2, 0, 3, 0, 4, 0}, c(4);
  const Matrix spread{a.data(), 2, 2, 4, 2}, repeated{a.data(), 2, 2, 0, 2};
  gemm(DType::kFloat32, {c.data(), 2, 2, 2, 1}, spread, repeated);
  EXPECT_EQ(c, (std::vector<float>{3, 6, 7, 14}));
}

template <class T>
void check_spread_matrices(double tolerance) {
  constexpr int64_t kSide = 60;
  std::mt19937 rng(3);
  auto a = random_matrix<T>(kSide, 2 * kSide, false, 0, rng);
  std::vector<T> c(2 * kSide * kSide);
  const Matrix spread{a.data.data() + 1, kSide, kSide, 2 * kSide, 2};
  const Matrix out{c.data(), kSide, kSide, 2 * kSide, 2}, bias{c.data() + 1, kSide, kSide, 0, 2};
  for (int64_t j = 0; j < kSide; j++) c[static_cast<size_t>(2 * j + 1)] = static_cast<T>(j);
  gemm(kDTypeOf<T>, out, spread, transposed(spread), 1, 1, bias);
  for (int64_t i = 0; i < kSide; i++) {
    for (int64_t j = 0; j < kSide; j++) {
      double sum = static_cast<double>(j);
      for (int64_t p = 0; p < kSide; p++)
        sum += double(at<T>(spread, i, p)) * double(at<T>(spread, j, p));
      ASSERT_NEAR(at<T>(out, i, j), sum, tolerance) << i << "," << j;
    }
  }
}
TEST(Gemm, LargeMatricesWithoutUnitStrides) {
  check_spread_matrices<float>(1e-4);
  check_spread_matrices<double>(1e-12);
}

template <class T>
void check_threads(int64_t m, int64_t n, int64_t k) {
  std::mt19937 rng(2);
  const auto a = random_matrix<T>(m, k, false, 0, rng), b = random_matrix<T>(k, n, true, 0, rng);
  std::vector<T> results[2];
  const int threads = get_num_threads();
  for (int i = 0; i < 2; i++) {
    results[i].resize(static_cast<size_t>(m * n));
    set_num_threads(i == 0 ? 1 : 4);
    parallel_gemm(kDTypeOf<T>, {results[i].data(), m, n, n, 1}, a.matrix, b.matrix);
  }
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(T)), 0);
}
TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  check_threads<float>(333, 401, 257);
  check_threads<float>(40, 401, 257);
  check_threads<double>(333, 401, 257);
  check_threads<double>(40, 601, 700);
  check_threads<BFloat16>(333, 1101, 257);
  check_threads<BFloat16>(17, 1101, 257);
}

}  // namespace
}  // namespace taeda::cpu
