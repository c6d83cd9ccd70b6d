#include "kernels/cpu/simd/special.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <optional>

#include "kernels/cpu/simd/bessel_fits.h"

namespace taeda::cpu::special {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kFloatPrecision = 1e-10;  // of terms left out, where the sum is rounded to float

// -pi cot(pi x), with the angle reduced exactly before it is multiplied by pi.
double reflected_cotangent(double x) { return -kPi / std::tan(kPi * (x - std::round(x))); }

}  // namespace

// Shifts the argument to x >= 10 by digamma(x) = digamma(x + 1) - 1/x, then the asymptotic series
// log x - 1/(2x) - sum B_2k / (2k x^2k)  [Abramowitz & Stegun 6.3.18].
double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  double sum = 0;
  if (x < 0) {
    if (x == std::floor(x)) return kNaN;  // also -inf
    sum = reflected_cotangent(x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  if (x > 1e17) return sum + std::log(x);
  const double z = 1 / (x * x);
  const double series =
      z * (1. / 12 -
           z * (1. / 120 -
                z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return sum + std::log(x) - 0.5 / x - series;
}
float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

// trigamma(x) = trigamma(x + 1) + 1/x^2, then 1/x + 1/(2x^2) + sum B_2k / x^(2k+1)  [A&S 6.4.12];
// for negative x the reflection pi^2 / sin^2(pi x) - trigamma(1 - x).
double trigamma(double x) {
  if (x == 0) return kInf;
  if (x < 0) {
    if (x == std::floor(x)) return kInf;
    const double s = kPi / std::sin(kPi * (x - std::round(x)));
    return s * s - trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const double z = 1 / (x * x);
  const double series =
      z *
      (1. / 6 - z * (1. / 30 - z * (1. / 42 - z * (1. / 30 - z * (5. / 66 - z * (691. / 2730))))));
  return sum + (1 + 0.5 / x + series) / x;
}
float trigamma(float x) { return static_cast<float>(trigamma(static_cast<double>(x))); }

// The first terms one by one, until the Euler-Maclaurin formula holds for the rest [DLMF 25.11.28]:
// sum_{k<n} (q+k)^-s + w^(1-s) / (s-1) + w^-s / 2 + sum_j B_2j/(2j)! s (s+1) ... (s+2j-2)
// w^(1-s-2j) with w = q + n.
namespace {

double zeta(double s, double q, double least, double precision) {
  if (s == 1) return kInf;
  if (s < 1 || std::isnan(q)) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNaN;  // a negative number to a broken power
  }
  if (std::isnan(s)) return kNaN;
  if (s == kInf || q == kInf) return q < 1 ? kInf : q == 1 ? 1 : kNaN;  // as PyTorch, for 0
  double sum = 0, w = q;
  for (; w < least; w += 1) {
    const double term = std::pow(w, -s);
    sum += term;
    if (w > 0 && term <= precision * sum) return sum;
  }
  constexpr double kBernoulli[] = {1. / 12,          -1. / 720,
                                   1. / 30240,       -1. / 1209600,
                                   1. / 47900160,    -691. / 1307674368000,
                                   1. / 74724249600, -3617. / 10670622842880000};
  const double power = std::pow(w, -s);
  sum += power * (w / (s - 1) + 0.5);
  double factor = power * s / w;
  for (int j = 0; j < 8; j++) {
    sum += kBernoulli[j] * factor;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
  }
  return sum;
}

}  // namespace

// Eight terms of the formula are 2e-15 off from w = s + 10 on, 5e-10 from s / 2 + 4 on.
double zeta(double s, double q) { return zeta(s, q, s + 10, 1e-17); }
float zeta(float s, float q) {
  return static_cast<float>(zeta(s, q, 0.5 * static_cast<double>(s) + 4, kFloatPrecision));
}

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// x^a e^-x / Gamma(a + 1). For large a by Stirling's series [A&S 6.1.41], in which the largest
// terms cancel before they are rounded.
double gamma_term(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  const double u = (x - a) / a, r = 1 / (a * a);
  const double rest =
      (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / a;
  return std::exp(a * (std::log1p(u) - u) - rest) / std::sqrt(2 * kPi * a);
}

// P(a, x) by its power series [A&S 6.5.29].
double igamma_series(double a, double x, double precision) {
  double term = 1, sum = 1;
  for (double n = 1; term > sum * precision; n++) sum += term *= x / (a + n);
  return gamma_term(a, x) * sum;
}

// Q(a, x) by its continued fraction [A&S 6.5.31], evaluated by Lentz' algorithm.
double igammac_fraction(double a, double x, double precision) {
  double b = x + 1 - a, c = 1 / kEpsilon / kEpsilon, d = 1 / b, product = d;
  for (double n = 1; n < 1e5; n++) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    product *= c * d;
    if (std::abs(c * d - 1) <= precision) break;
  }
  return gamma_term(a, x) * a * product;
}

// Q(a, x) = 1 - x^a / Gamma(a + 1) (1 + a sum (-x)^n / (n! (a + n))), the parts of 1 by expm1.
double igammac_small(double a, double x) {
  double term = 1, sum = 0;
  for (double n = 1; std::abs(term) > kEpsilon * std::abs(sum) && n < 100; n++) {
    term *= -x / n;
    sum += term / (a + n);
  }
  constexpr double kEuler = 0.57721566490153286, kZeta3 = 1.2020569031595943;
  const double series =
      a * (a * (kPi * kPi / 12 - a * (kZeta3 / 3 - a * (kPi * kPi * kPi * kPi / 360))) - kEuler);
  const double lgamma1p = a < 1e-4 ? series : std::lgamma(a + 1);
  const double log_power = a * std::log(x) - lgamma1p;
  return -std::expm1(log_power) - std::exp(log_power) * a * sum;
}

// Q(a, x) for a so large that the first term of Temme's uniform expansion is all [DLMF 8.12.4].
double igammac_uniform(double a, double x) {
  const double u = (x - a) / a, half_eta2 = u - std::log1p(u);
  const double eta = std::copysign(std::sqrt(2 * std::max(half_eta2, 0.0)), u);
  const double correction = std::abs(u) < 1e-5 ? -1.0 / 3 : 1 / u - 1 / eta;
  return 0.5 * std::erfc(eta * std::sqrt(a / 2)) +
         std::exp(-a * half_eta2) * correction / std::sqrt(2 * kPi * a);
}

// P at the edges of the plane, where PyTorch asks in this order; nothing elsewhere.
std::optional<double> igamma_at_edge(double a, double x) {
  if (x < 0 || a < 0) return kNaN;
  if (a == 0) return x > 0 ? 1 : kNaN;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  if (std::isinf(x)) return 1;
  if (std::isnan(a) || std::isnan(x)) return kNaN;
  return std::nullopt;
}

constexpr double kUniform = 1e6;  // the other methods take some sqrt(a) steps

// Once in a module for CUDA, whose kernels for float16 would have eight copies each; NVRTC heeds
// no [[gnu::noinline]].
__attribute__((noinline)) double igammac(double a, double x, double precision) {
  if (const auto value = igamma_at_edge(a, x)) return 1 - *value;
  if (a > kUniform) return igammac_uniform(a, x);
  if (x < a && a > 0.1) return 1 - igamma_series(a, x, precision);
  return x > 1.1 ? igammac_fraction(a, x, precision) : igammac_small(a, x);
}
__attribute__((noinline)) double igamma(double a, double x, double precision) {
  if (const auto value = igamma_at_edge(a, x)) return *value;
  if (a > kUniform) return 1 - igammac_uniform(a, x);
  const bool near = x <= 1 || x <= a;
  return near ? std::min(1.0, igamma_series(a, x, precision)) : 1 - igammac(a, x, precision);
}

}  // namespace

double igamma(double a, double x) { return igamma(a, x, kEpsilon); }
float igamma(float a, float x) {
  return static_cast<float>(
      igamma(static_cast<double>(a), static_cast<double>(x), kFloatPrecision));
}
double igammac(double a, double x) { return igammac(a, x, kEpsilon); }
float igammac(float a, float x) {
  return static_cast<float>(
      igammac(static_cast<double>(a), static_cast<double>(x), kFloatPrecision));
}

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x < 10) {  // the exponent in two parts: its rounding error counts
    const double square = x * x, power = std::exp(square);
    if (std::isinf(power)) return power;
    return power * (1 + std::fma(x, x, -square)) * std::erfc(x);
  }
  // The asymptotic series [A&S 7.1.23].
  const double r = 1 / (2 * x * x);
  double term = 1, sum = 1;
  for (int n = 1; n < 25 && std::abs(term) > kEpsilon; n++) sum += term *= -(2 * n - 1) * r;
  return sum / (x * std::sqrt(kPi));
}
float erfcx(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }

// A rational guess [A&S 26.2.23], good to 4.5e-4, and two of Halley's steps, each of which triples
// the digits; near 1/2 toward erf = 2 p - 1, which does not cancel. Where the density is subnormal
// they are Newton's toward log p.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNaN;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (p == 0.5) return 0;
  if (p > 0.5) return -ndtri(1 - p);
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;
  for (int i = 0; p < 1e-300 && i < 3; i++) {
    const double tail = erfcx(-x / std::numbers::sqrt2);  // 2 e^(x^2 / 2) times the probability
    x -= (std::log(tail / 2) - x * x / 2 - std::log(p)) * tail * std::sqrt(kPi / 2);
  }
  if (p < 1e-300) return x;
  for (int i = 0; i < 2; i++) {
    const double at = x / std::numbers::sqrt2;
    const double error = p > 0.2 ? 0.5 * std::erf(at) - (p - 0.5) : 0.5 * std::erfc(-at) - p;
    const double u = error * std::sqrt(2 * kPi) * std::exp(x * x / 2);
    x -= u / (1 + x * u / 2);
  }
  return x;
}

namespace {

// c[0] + c[1] x + ..., even and odd powers apart: half as many steps that wait for each other.
template <size_t n>
double polynomial(double x, const double (&c)[n]) {
  const double z = x * x;
  double even = n % 2 ? c[n - 1] : 0, odd = 0;
#pragma GCC unroll 16
  for (size_t i = n / 2 * 2; i >= 2; i -= 2) {
    even = even * z + c[i - 2];
    odd = odd * z + c[i - 1];
  }
  return even + x * odd;
}

constexpr double kTailTop[] = {2.938163982698783e+00,  4.374664141464968e+00,
                               -2.549732539343734e+00, -2.400758277161838e+00,
                               -3.223964580411365e-01, -7.784894002430293e-03};
constexpr double kTailBottom[] = {1, 3.754408661907416e+00, 2.445134137142996e+00,
                                  3.224671290700398e-01, 7.784695709041462e-03};
constexpr double kMiddleTop[] = {2.506628277459239e+00, -3.066479806614716e+01,
                                 1.383577518672690e+02, -2.759285104469687e+02,
                                 2.209460984245205e+02, -3.969683028665376e+01};
constexpr double kMiddleBottom[] = {1,
                                    -1.328068155288572e+01,
                                    6.680131188771972e+01,
                                    -1.556989798598866e+02,
                                    1.615858368580409e+02,
                                    -5.447609879822406e+01};

// Rational functions of p - 1/2 and, in the tails, of sqrt(-2 log p), good to 1.2e-9 [Acklam 2003].
double rational_ndtri(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.47575)
    return q * polynomial(q * q, kMiddleTop) / polynomial(q * q, kMiddleBottom);
  const double t = std::sqrt(-2 * std::log(q < 0 ? p : 1 - p));
  const double tail = polynomial(t, kTailTop) / polynomial(t, kTailBottom);
  return q < 0 ? tail : -tail;
}

}  // namespace

float ndtri(float p) {
  if (!(p > 0 && p < 1)) return static_cast<float>(ndtri(static_cast<double>(p)));
  return static_cast<float>(rational_ndtri(p));
}

namespace {

// I_n(x) e^-x for x >= 0: the power series [A&S 9.6.10], whose terms are positive, or the
// asymptotic one [A&S 9.7.1], whose smallest term is about e^-2x.
double bessel_ie(int n, double x) {
  if (x == 0) return n == 0;
  double term = 1, sum = 1;
  if (x < 20) {
    const double quarter = x * x / 4;
    for (int k = 1; term > sum * kEpsilon; k++) sum += term *= quarter / (k * (k + n));
    return sum * (n == 0 ? 1 : x / 2) * std::exp(-x);
  }
  for (int k = 1; k < 40 && std::abs(term) > kEpsilon; k++)
    sum += term *= ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * n * n) / (8 * x * k);
  return sum / (std::sqrt(2 * kPi) * std::sqrt(x));  // 2 pi x may overflow
}

using bessel_fits::kFloatI0Far;
using bessel_fits::kFloatI0Near;
using bessel_fits::kFloatI1Far;
using bessel_fits::kFloatI1Near;

}  // namespace

double i0e(double x) { return bessel_ie(0, std::abs(x)); }
float i0e(float x) {
  const double size = std::abs(static_cast<double>(x));
  if (!(size > 4)) return static_cast<float>(polynomial(size / 2 - 1, kFloatI0Near));
  return static_cast<float>(polynomial(8 / size - 1, kFloatI0Far) / std::sqrt(size));
}
double i1e(double x) { return std::copysign(bessel_ie(1, std::abs(x)), x); }
float i1e(float x) {
  const double value = static_cast<double>(x), size = std::abs(value);
  if (!(size > 4)) return static_cast<float>(value * polynomial(size / 2 - 1, kFloatI1Near));
  const double far = polynomial(8 / size - 1, kFloatI1Far) / std::sqrt(size);
  return static_cast<float>(std::copysign(far, value));
}

// A starting value from log(1 - x^2) [Winitzki 2008], then Halley's steps on erf(y) - x, with erfc
// in the tails where erf(y) rounds to 1.
double erfinv(double x) {
  if (!(x > -1 && x < 1)) {
    return x == 1 || x == -1 ? std::copysign(kInf, x) : kNaN;
  }
  const double a = std::fabs(x);
  if (a < 1e-8) return x * 0.88622692545275801;  // sqrt(pi)/2: the cubic term is below half an ulp
  const double l = std::log1p(-a * a), t = 2 / (kPi * 0.147) + 0.5 * l;
  double y = std::sqrt(std::sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 3; i++) {
    const double error = a > 0.5 ? (1 - a) - std::erfc(y) : std::erf(y) - a;
    const double step = error / (1.1283791670955126 * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}
float erfinv(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }

double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}

}  // namespace taeda::cpu::special
