// The pointwise functors' dense loops, in every instruction set that this machine has, against long
// double arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "hwy/targets.h"
#include "kernels/cpu/pointwise/loop.h"
#include "taeda/error.h"

namespace taeda {

// Generated from ops/pointwise.
const DenseTable& dense_acosh();
const DenseTable& dense_add();
const DenseTable& dense_asinh();
const DenseTable& dense_atan();
const DenseTable& dense_atan2();
const DenseTable& dense_atanh();
const DenseTable& dense_bitwise_left_shift();
const DenseTable& dense_bitwise_right_shift();
const DenseTable& dense_cos();
const DenseTable& dense_cosh();
const DenseTable& dense_digamma();
const DenseTable& dense_div();
const DenseTable& dense_div_trunc();
const DenseTable& dense_eq();
const DenseTable& dense_erf();
const DenseTable& dense_erfc();
const DenseTable& dense_erfinv();
const DenseTable& dense_exp();
const DenseTable& dense_exp2();
const DenseTable& dense_expm1();
const DenseTable& dense_floor_divide();
const DenseTable& dense_fmax();
const DenseTable& dense_fmod();
const DenseTable& dense_gelu_backward_none();
const DenseTable& dense_gelu_backward_tanh();
const DenseTable& dense_gelu_none();
const DenseTable& dense_gelu_tanh();
const DenseTable& dense_hypot();
const DenseTable& dense_isnan();
const DenseTable& dense_lgamma();
const DenseTable& dense_log();
const DenseTable& dense_log10();
const DenseTable& dense_log1p();
const DenseTable& dense_log2();
const DenseTable& dense_maximum();
const DenseTable& dense_mul();
const DenseTable& dense_pow();
const DenseTable& dense_remainder();
const DenseTable& dense_round();
const DenseTable& dense_rsqrt();
const DenseTable& dense_silu_backward();
const DenseTable& dense_sin();
const DenseTable& dense_sinh();
const DenseTable& dense_softplus_grad0();
const DenseTable& dense_sqrt();
const DenseTable& dense_tan();
const DenseTable& dense_tanh();
const DenseTable& dense_tanh_backward();

namespace {

using Table = const DenseTable& (*)();
using Real = long double;

// Runs the body once for each instruction set.
class Dense : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string level = GetParam();
    const int64_t all = hwy::SupportedTargets();
    if (level == "baseline") hwy::DisableTargets(~(HWY_EMU128 | HWY_SCALAR));
    if (level == "avx2") {
      if (!(all & HWY_AVX2)) GTEST_SKIP() << "no AVX2 here";
      hwy::DisableTargets(~(HWY_AVX2 | HWY_EMU128 | HWY_SCALAR));
    }
    if (level == "avx512" && !(all & HWY_AVX3)) GTEST_SKIP() << "no AVX-512 here";
  }
  void TearDown() override { hwy::DisableTargets(0); }
};
INSTANTIATE_TEST_SUITE_P(Levels, Dense, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& info) { return std::string(info.param); });

template <class T, class Out = T>
std::vector<Out> run(Table table, const std::vector<std::vector<T>>& inputs,
                     const void* params = nullptr) {
  const size_t n = inputs[0].size();
  const void* data[4];
  for (size_t k = 0; k < inputs.size(); k++) data[k] = inputs[k].data();
  auto out = std::make_unique<Out[]>(n);
  table()[kDTypeOf<T>](out.get(), data, static_cast<int64_t>(n), params, 0);
  return std::vector<Out>(out.get(), out.get() + n);
}

// Distance in units of the last place of T at the true value.
template <class T>
double ulps(T got, Real truth) {
  const T rounded = static_cast<T>(truth);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(rounded)) return got == rounded ? 0 : HUGE_VAL;
  const T magnitude = std::max(std::abs(rounded), std::numeric_limits<T>::min());
  const Real unit = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  return static_cast<double>(std::abs(static_cast<Real>(got) - truth) / unit);
}

// `lo` to `hi` in even steps, then by powers of two from tiny to hi, then the values where
// functions have edges.
template <class T>
std::vector<T> samples(double lo, double hi) {
  std::vector<T> x;
  for (int i = 0; i <= 4000; i++) x.push_back(static_cast<T>(lo + (hi - lo) * i / 4000));
  for (double v = 1e-30; v < hi; v *= 1.7) {
    x.push_back(static_cast<T>(v));
    if (-v > lo) x.push_back(static_cast<T>(-v));
  }
  return x;
}
template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  return {T(0),
          -T(0),
          L::infinity(),
          -L::infinity(),
          L::quiet_NaN(),
          L::denorm_min(),
          -L::denorm_min(),
          L::min(),
          L::max(),
          -L::max(),
          T(1),
          T(-1),
          T(0.5),
          T(2)};
}

template <class T>
void expect_close(const char* name, Table table, Real (*truth)(Real), double lo, double hi,
                  double bound) {
  std::vector<T> x = samples<T>(lo, hi);
  for (const T v : edges<T>()) x.push_back(v);
  const std::vector<T> y = run<T>(table, {x});
  for (size_t i = 0; i < x.size(); i++) {
    ASSERT_LE(ulps(y[i], truth(x[i])), bound)
        << name << "(" << x[i] << ") = " << y[i] << ", want " << truth(x[i]);
  }
}

// Newton's method in long double from the double's own answer.
Real inverse_erf(Real x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? x * HUGE_VALL : std::nanl("");
  const Real a = std::abs(x);
  Real y = a < 0.5 ? a * 0.886L : std::sqrt(-std::log((1 - a) * 2)) + 0.1L;
  for (int i = 0; i < 60; i++) {
    const Real error = a > 0.5L ? (1 - a) - std::erfc(y) : std::erf(y) - a;
    const Real step = error / (2 / std::sqrt(std::numbers::pi_v<Real>) * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}
// The shift to 40, then the asymptotic series [A&S 6.3.18].
Real digamma(Real x) {
  if (x == 0) return std::copysign(HUGE_VALL, -x);
  Real sum = 0;
  if (x < 0) {
    if (x == std::floor(x)) return std::nanl("");
    sum = -std::numbers::pi_v<Real> / std::tan(std::numbers::pi_v<Real> * (x - std::round(x)));
    x = 1 - x;
  }
  for (; x < 40; x += 1) sum -= 1 / x;
  const Real z = 1 / (x * x);
  const Real series = z * (1 / 12.L - z * (1 / 120.L - z * (1 / 252.L - z * (1 / 240.L))));
  return sum + std::log(x) - 0.5L / x - series;
}
Real log_gamma(Real x) {
  int sign;
  return ::lgammal_r(x, &sign);
}

TEST_P(Dense, ElementaryFunctions) {
  struct Case {
    const char* name;
    Table table;
    Real (*truth)(Real);
    double lo, hi, bound;
  };
  const Case cases[] = {
      {"exp", dense_exp, std::exp, -110, 95, 1.5},
      {"exp2", dense_exp2, std::exp2, -160, 130, 1.5},
      {"expm1", dense_expm1, std::expm1, -30, 95, 2},
      {"log", dense_log, std::log, 0, 50, 1.5},
      {"log2", dense_log2, std::log2, 0, 50, 2.5},
      {"log10", dense_log10, std::log10, 0, 50, 2.5},
      {"log1p", dense_log1p, std::log1p, -1, 50, 2.5},
      {"sin", dense_sin, std::sin, -60, 60, 1.5},
      {"cos", dense_cos, std::cos, -60, 60, 1.5},
      {"tan", dense_tan, std::tan, -60, 60, 4},
      {"atan", dense_atan, std::atan, -60, 60, 3},
      {"sinh", dense_sinh, std::sinh, -85, 85, 4},
      {"cosh", dense_cosh, std::cosh, -85, 85, 4},
      {"tanh", dense_tanh, std::tanh, -20, 20, 2.5},
      {"asinh", dense_asinh, std::asinh, -60, 60, 4},
      {"acosh", dense_acosh, std::acosh, -2, 60, 4},
      {"atanh", dense_atanh, std::atanh, -1, 1, 4},
      {"erf", dense_erf, std::erf, -6, 6, 5},
      {"erfc", dense_erfc, std::erfc, -6, 28, GetParam() == std::string("baseline") ? 2.5 : 1.5},
      {"erfinv", dense_erfinv, inverse_erf, -1, 1, 3},
      {"lgamma", dense_lgamma, log_gamma, 0, 60, 5},
      {"sqrt", dense_sqrt, std::sqrt, 0, 100, 0.5},
      {"rsqrt", dense_rsqrt, [](Real x) { return 1 / std::sqrt(x); }, 0, 100, 1.5},
  };
  for (const Case& c : cases) {
    expect_close<float>(c.name, c.table, c.truth, c.lo, c.hi, c.bound);
    expect_close<double>(c.name, c.table, c.truth, c.lo, c.hi, c.bound);
  }
  expect_close<double>("erf", dense_erf, std::erf, -6, 6, 1.5);
  expect_close<float>("lgamma", dense_lgamma, log_gamma, 0, 60, 2);
}

// lgamma and the inverse of erf where their ranges of approximation end.
TEST_P(Dense, EdgesOfApproximations) {
  std::vector<double> x = {5e-324, 1e-310, 1e-20, 7.99999, 8, 1e3, 1e10, 1e100, 2.55e305};
  for (const double edge : {0.75, 1.0, 1.3, 2.0, 2.25, 3.25, 8.0}) {
    for (const double d : {1e-15, 1e-9, 1e-4, 0.01}) x.insert(x.end(), {edge - d, edge, edge + d});
  }
  const std::vector<double> y = run<double>(dense_lgamma, {x});
  for (size_t i = 0; i < x.size(); i++) EXPECT_LE(ulps(y[i], log_gamma(x[i])), 5) << x[i];
  const std::vector<float> narrow(x.begin(), x.end() - 1), z = run<float>(dense_lgamma, {narrow});
  for (size_t i = 0; i < narrow.size(); i++) {
    if (narrow[i] == 0 || narrow[i] > 1e30f) continue;
    EXPECT_LE(ulps(z[i], log_gamma(narrow[i])), 2) << narrow[i];
  }
  std::vector<double> u;
  for (double tail = 0.5; tail > 1e-16; tail *= 0.71) u.insert(u.end(), {1 - tail, tail - 1, tail});
  const std::vector<double> inverse = run<double>(dense_erfinv, {u});
  for (size_t i = 0; i < u.size(); i++) EXPECT_LE(ulps(inverse[i], inverse_erf(u[i])), 3) << u[i];
}

// Huge angles leave the vector code's range.
TEST_P(Dense, HugeAngles) {
  const std::vector<double> x = {1e7, -3e8, 1e15, 1e22, 12345678.9};
  const std::vector<double> y = run<double>(dense_sin, {x});
  for (size_t i = 0; i < x.size(); i++)
    EXPECT_LE(ulps(y[i], std::sin(static_cast<Real>(x[i]))), 1.5) << x[i];
}

// Near their zeros these have an absolute error, not a relative one.
template <class T>
void expect_near_zeros(const char* name, Table table, Real (*truth)(Real), double tolerance) {
  const std::vector<T> x = samples<T>(-20, 20);
  const std::vector<T> y = run<T>(table, {x});
  for (size_t i = 0; i < x.size(); i++) {
    const Real want = truth(x[i]);
    if (x[i] == std::floor(x[i]) && x[i] <= 0) continue;  // poles
    ASSERT_NEAR(static_cast<double>(y[i]), static_cast<double>(want),
                tolerance * std::max(1.0, static_cast<double>(std::abs(want))))
        << name << "(" << x[i] << ")";
  }
}
TEST_P(Dense, GammaFunctionsOnBothSidesOfZero) {
  expect_near_zeros<float>("lgamma", dense_lgamma, log_gamma, 2e-7);
  expect_near_zeros<double>("lgamma", dense_lgamma, log_gamma, 1e-15);
  expect_near_zeros<float>("digamma", dense_digamma, digamma, 2e-7);
  expect_near_zeros<double>("digamma", dense_digamma, digamma, 4e-14);
  expect_close<double>("digamma", dense_digamma, digamma, 2, 60, 12);
}

// Powers of positive numbers over the whole range of results, denormal and infinite ones included.
TEST_P(Dense, PowersOverTheWholeRange) {
  for (const double exponent : {2.5, -3.7, 0.1, 100.3, 1e-3, -0.25, 1e5, -1e5}) {
    const std::vector<double> x = samples<double>(1e-3, 1e6);
    const std::vector<double> y(x.size(), exponent);
    const std::vector<double> got = run<double>(dense_pow, {x, y});
    const std::vector<float> xf(x.begin(), x.end()), yf(y.begin(), y.end());
    const std::vector<float> got_float = run<float>(dense_pow, {xf, yf});
    for (size_t i = 0; i < x.size(); i++) {
      ASSERT_LE(ulps(got[i], std::pow(static_cast<Real>(x[i]), static_cast<Real>(exponent))), 1.5)
          << x[i] << " ** " << exponent << " = " << got[i];
      ASSERT_LE(ulps(got_float[i], std::pow(static_cast<Real>(xf[i]), static_cast<Real>(yf[i]))), 1)
          << xf[i] << " ** " << yf[i] << " = " << got_float[i];
    }
  }
}

TEST_P(Dense, SpecialFunctions) {
  const double euler = std::numbers::egamma;
  const std::vector<double> at = {1, 2, 0.5, 10, -0.5};
  const std::vector<double> digamma = {-euler, 1 - euler, -euler - 2 * std::log(2.0),
                                       2.2517525890667211, 0.03648997397857652};
  const std::vector<double> got = run<double>(dense_digamma, {at});
  for (size_t i = 0; i < at.size(); i++) EXPECT_NEAR(got[i], digamma[i], 1e-14);
  const std::vector<double> x = samples<double>(-0.999, 0.999);
  const std::vector<double> inverse = run<double>(dense_erfinv, {x}),
                            back = run<double>(dense_erf, {inverse});
  for (size_t i = 0; i < x.size(); i++) EXPECT_NEAR(back[i], x[i], 4e-16);
  const std::vector<double> gammas = run<double>(dense_lgamma, {at});
  for (size_t i = 0; i < at.size(); i++) EXPECT_NEAR(gammas[i], std::lgamma(at[i]), 1e-14);
}

Real normal_cdf(Real x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
Real gelu_tanh(Real x) {
  return x / 2 *
         (1 + std::tanh(std::sqrt(2 / std::numbers::pi_v<Real>) * (x + 0.044715L * x * x * x)));
}

TEST_P(Dense, GeluAndItsGradient) {
  const std::vector<float> x = samples<float>(-8, 8), ones(x.size(), 1);
  const auto y = run<float>(dense_gelu_none, {x}),
             gx = run<float>(dense_gelu_backward_none, {ones, x});
  const auto yt = run<float>(dense_gelu_tanh, {x}),
             gt = run<float>(dense_gelu_backward_tanh, {ones, x});
  for (size_t i = 0; i < x.size(); i++) {
    const Real v = x[i], density = std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
    ASSERT_NEAR(y[i], v * normal_cdf(v), 1e-6);
    ASSERT_NEAR(gx[i], normal_cdf(v) + v * density, 1e-6);
    ASSERT_NEAR(yt[i], gelu_tanh(v), 1e-6);
    ASSERT_NEAR(gt[i], (gelu_tanh(v + 1e-6L) - gelu_tanh(v - 1e-6L)) / 2e-6L, 2e-6);
  }
}

// Derivatives by dual numbers against differences.
TEST_P(Dense, DualNumbers) {
  const auto silu = [](Real x) { return x / (1 + std::exp(-x)); };
  const std::vector<double> x = samples<double>(-30, 30), ones(x.size(), 1);
  const auto first = run<double>(dense_silu_backward, {ones, x});
  for (size_t i = 0; i < x.size(); i++) {
    const Real v = x[i], h = 1e-4L;
    ASSERT_NEAR(first[i], (silu(v + h) - silu(v - h)) / (2 * h), 1e-8);
  }
  // Far out, where e^-x overflows, the derivative is 0 and not NaN.
  EXPECT_EQ(run<float>(dense_silu_backward, {{1.0f}, {-200.0f}})[0], 0.0f);
  const Scalar softplus[] = {Scalar(2), Scalar(20)};  // beta, threshold
  EXPECT_NEAR(run<double>(dense_softplus_grad0, {{3.0}, {0.25}}, softplus)[0],
              3 / (1 + std::exp(-0.5)), 1e-12);
}

// Every length up to several vectors; memory beyond the n elements keeps its bytes, in place too.
TEST_P(Dense, TailsStayInBounds) {
  const Scalar alpha(2);
  for (size_t n = 0; n < 70; n++) {
    std::vector<float> x(n + 20, 7), y(n + 20, 5), out(n + 20, -1);
    const void* in[] = {x.data(), y.data()};
    dense_add()[DType::kFloat32](out.data(), in, static_cast<int64_t>(n), &alpha, 0);
    for (size_t i = 0; i < out.size(); i++) ASSERT_EQ(out[i], i < n ? 17.0f : -1.0f);
    dense_add()[DType::kFloat32](x.data(), in, static_cast<int64_t>(n), &alpha, 0);
    for (size_t i = 0; i < x.size(); i++) ASSERT_EQ(x[i], i < n ? 17.0f : 7.0f);
    std::vector<char> flags(n + 20, 9);
    const void* same[] = {y.data(), y.data()};
    dense_eq()[DType::kFloat32](flags.data(), same, static_cast<int64_t>(n), nullptr, 0);
    for (size_t i = 0; i < flags.size(); i++) ASSERT_EQ(flags[i], i < n ? 1 : 9);
  }
}

// One element for all: the kernel reads no more than kRepeatBytes of it.
TEST_P(Dense, RepeatedInputs) {
  for (size_t n = 0; n < 600; n += n < 70 ? 1 : 37) {
    const Scalar alpha(2);
    const auto count = static_cast<int64_t>(n);
    const std::vector<float> x(n, 3), five(kRepeatBytes / sizeof(float), 5);
    std::vector<float> out(n);
    const void* second[] = {x.data(), five.data()};
    dense_add()[DType::kFloat32](out.data(), second, count, &alpha, 2);
    EXPECT_EQ(out, std::vector<float>(n, 13));
    const void* first[] = {five.data(), x.data()};
    dense_add()[DType::kFloat32](out.data(), first, count, &alpha, 1);
    EXPECT_EQ(out, std::vector<float>(n, 11));
    const std::vector<int64_t> i(n, 3), seven(kRepeatBytes / sizeof(int64_t), 7);
    std::vector<int64_t> sums(n);
    const void* integers[] = {i.data(), seven.data()};
    dense_add()[DType::kInt64](sums.data(), integers, count, &alpha, 2);
    EXPECT_EQ(sums, std::vector<int64_t>(n, 17));
  }
}

TEST_P(Dense, NaNRules) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {1, nan, 1, nan, 3}, b = {2, 1, nan, nan, -1};
  const auto larger = run<float>(dense_maximum, {a, b}), ignoring = run<float>(dense_fmax, {a, b});
  const auto tests = run<float, bool>(dense_isnan, {a});
  for (size_t i = 0; i < a.size(); i++) {
    EXPECT_EQ(std::isnan(larger[i]), std::isnan(a[i]) || std::isnan(b[i]));
    EXPECT_EQ(std::isnan(ignoring[i]), std::isnan(a[i]) && std::isnan(b[i]));
    EXPECT_EQ(tests[i], std::isnan(a[i]));
  }
  EXPECT_EQ(ignoring[1], 1);
  EXPECT_EQ(larger[4], 3);
  EXPECT_EQ(run<double>(dense_round, {{0.5, 1.5, -2.5}}), (std::vector<double>{0, 2, -2}));
}

TEST_P(Dense, TwoArguments) {
  std::vector<float> a, b;
  for (const float x :
       {0.0f, 1.0f, -1.0f, 0.3f, -2.5f, 1e20f, -1e-20f, 7.0f, HUGE_VALF, -HUGE_VALF}) {
    for (const float y :
         {0.0f, -0.0f, 1.0f, 2.0f, 3.0f, 0.5f, -0.5f, -1.0f, -2.0f, 2.3f, -1e20f, HUGE_VALF}) {
      a.push_back(x), b.push_back(y);
    }
  }
  const auto power = run<float>(dense_pow, {a, b}), angle = run<float>(dense_atan2, {a, b});
  const auto length = run<float>(dense_hypot, {a, b});
  for (size_t i = 0; i < a.size(); i++) {
    const Real x = a[i], y = b[i];
    EXPECT_LE(ulps(power[i], std::pow(x, y)), 2) << x << " ** " << y << " = " << power[i];
    EXPECT_LE(ulps(angle[i], std::atan2(x, y)), 4) << x << " " << y;
    EXPECT_LE(ulps(length[i], std::hypot(x, y)), 2) << x << " " << y;
  }
}

TEST_P(Dense, FloatDivision) {
  std::vector<double> a, b;
  for (const double x : {7.0, -7.0, 6.0, 0.0, 1e300, 0.3, -0.3, 5.5}) {
    for (const double y : {2.0, -2.0, 3.0, 0.1, -0.1, 1e-300, 5.5}) a.push_back(x), b.push_back(y);
  }
  const auto r = run<double>(dense_fmod, {a, b}), m = run<double>(dense_remainder, {a, b});
  const auto q = run<double>(dense_floor_divide, {a, b});
  for (size_t i = 0; i < a.size(); i++) {
    const double truth = std::fmod(a[i], b[i]);
    EXPECT_EQ(r[i], truth) << a[i] << " " << b[i];
    EXPECT_EQ(m[i], truth != 0 && (truth < 0) != (b[i] < 0) ? truth + b[i] : truth);
    if (std::abs(a[i] / b[i]) < 1e15) {
      EXPECT_EQ(q[i], std::floor((a[i] - m[i]) / b[i] + 0.5));
    }
  }
  EXPECT_EQ(run<double>(dense_floor_divide, {{1.0}, {0.0}})[0],
            std::numeric_limits<double>::infinity());
}

TEST(DenseIntegers, DivisionNeverTraps) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> a = {7, -7, 7, -7, kMin, kMin, 0}, b = {2, 2, -2, -2, -1, 1, 5};
  EXPECT_EQ(run<int64_t>(dense_floor_divide, {a, b}),
            (std::vector<int64_t>{3, -4, -4, 3, kMin, kMin, 0}));
  EXPECT_EQ(run<int64_t>(dense_remainder, {a, b}), (std::vector<int64_t>{1, 1, -1, -1, 0, 0, 0}));
  EXPECT_EQ(run<int64_t>(dense_fmod, {a, b}), (std::vector<int64_t>{1, -1, 1, -1, 0, 0, 0}));
  EXPECT_EQ(run<int64_t>(dense_div_trunc, {a, b}),
            (std::vector<int64_t>{3, -3, -3, 3, kMin, kMin, 0}));
  const std::vector<int32_t> one = {1}, zero = {0};
  EXPECT_THROW(run<int32_t>(dense_floor_divide, {one, zero}), Error);
  EXPECT_THROW(run<int32_t>(dense_remainder, {one, zero}), Error);
}

TEST(DenseIntegers, WrapAroundShiftsAndPowers) {
  EXPECT_EQ(run<int32_t>(dense_mul, {{1 << 30}, {4}})[0], 0);
  EXPECT_EQ(run<int16_t>(dense_mul, {{-1}, {-1}})[0], 1);
  EXPECT_EQ(run<uint8_t>(dense_mul, {{200}, {2}})[0], 144);
  const std::vector<int32_t> x = {1, 1, -8, -8, 5}, by = {3, 40, 1, 40, -1};
  EXPECT_EQ(run<int32_t>(dense_bitwise_left_shift, {x, by}),
            (std::vector<int32_t>{8, 0, -16, 0, 0}));
  EXPECT_EQ(run<int32_t>(dense_bitwise_right_shift, {x, by}),
            (std::vector<int32_t>{0, 0, -4, -1, 0}));
  EXPECT_EQ(run<int64_t>(dense_pow, {{2, 3, -1, 2, 10, 7}, {10, 4, -3, -1, 0, 1}}),
            (std::vector<int64_t>{1024, 81, -1, 0, 1, 7}));
}

TEST(DenseComplex, ArithmeticAndGradient) {
  using C = std::complex<double>;
  const std::vector<C> a = {{1, 2}, {-3, 0.5}, {1e200, 1e200}},
                       b = {{0.5, -1}, {2, 2}, {1e200, -1e200}};
  const auto product = run<C>(dense_mul, {a, b}), quotient = run<C>(dense_div, {a, b});
  EXPECT_LT(std::abs(product[0] - a[0] * b[0]), 1e-15);
  EXPECT_LT(std::abs(quotient[1] - a[1] / b[1]), 1e-15);
  EXPECT_LT(std::abs(quotient[2] - C(0, 1)), 1e-15);  // no overflow in between
  // PyTorch's convention: the gradient is conjugated.
  const C gy(1, 1), y(0.25, 0.5);
  const C gx = run<C>(dense_tanh_backward, {{gy}, {y}})[0];
  EXPECT_LT(std::abs(gx - gy * std::conj(C(1) - y * y)), 1e-15);
}

}  // namespace
}  // namespace taeda
