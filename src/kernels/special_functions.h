// Bessel and Airy functions: their enumeration, and each of one number in double precision for CUDA
// devices (the CPU's are vectors', kernels/cpu/pointwise/bessel.cc). Iterations stop at terms of
// relative size `precision`.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace taeda {

// In the order of their names in special_function_names.h.
enum class SpecialFunction : uint8_t {
  kBesselJ0,
  kBesselJ1,
  kBesselY0,
  kBesselY1,
  kModifiedK0,
  kModifiedK1,
  kScaledK0,
  kScaledK1,
  kSphericalJ0,
  kAiryAi
};

namespace special_functions {

inline constexpr double kPi = 3.141592653589793, kEulerGamma = 0.5772156649015329;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Modified Bessel functions of the second kind, of one order and the next, times e^x.
struct ScaledK {
  double lower, upper;
};

// Orders 0 and 1 for x <= 2: Temme's series (J. Comput. Phys. 19, 1975).
inline ScaledK temme_series(double x, double precision) {
  double f = -std::log(x / 2) - kEulerGamma, p = 0.5, c = 1, sum0 = f, sum1 = p;
  for (int k = 1; k < 40; k++) {
    f = (f * k + 2 * p) / (k * k);
    p /= k;
    c *= x * x / 4 / k;
    const double term0 = c * f, term1 = c * (p - k * f);
    sum0 += term0;
    sum1 += term1;
    if (std::abs(term0) <= sum0 * precision && std::abs(term1) <= sum1 * precision) break;
  }
  const double scale = std::exp(x);
  return {sum0 * scale, sum1 * 2 / x * scale};
}

inline double inverse(double x) { return 1 / x; }
inline std::complex<double> inverse(std::complex<double> z) {
  return std::conj(z) / (z.real() * z.real() + z.imag() * z.imag());
}

// The continued fraction z_1 / z_0 of Temme and its sum, by Steed's algorithm, for x > 2 and on the
// imaginary axis from 3 on: K_nu(x) = sqrt(pi / (2 x)) e^-x / sum.
template <class X>
struct Steed {
  X sum, fraction;
};
template <class X>
Steed<X> steed_fraction(double nu, X x, double precision) {
  const double first = 0.25 - nu * nu;
  double a = -first, c = first;
  X b = 2.0 * (1.0 + x), d = inverse(b), step = d, fraction = d;
  X q_before = 0, q = 1, weight = c, sum = 1.0 + weight * step;
  for (int i = 2; i < 500; i++) {
    a -= 2 * (i - 1);
    c *= -a / i;
    const X q_next = (q_before - b * q) / a;
    q_before = q;
    q = q_next;
    weight = weight + c * q;
    b = b + 2.0;
    d = inverse(b + a * d);
    step = step * (b * d - 1.0);
    fraction = fraction + step;
    sum = sum + weight * step;
    if (std::abs(weight * step) < std::abs(sum) * precision) break;
  }
  return {sum, fraction};
}

inline ScaledK scaled_k(double x, double precision) {
  if (std::isnan(x) || x < 0) return {kNaN, kNaN};
  if (x == 0) return {kInf, kInf};
  if (std::isinf(x)) return {0, 0};
  if (x <= 2) return temme_series(x, precision);
  const Steed<double> at = steed_fraction(0, x, precision);
  const double lower = std::sqrt(kPi / (2 * x)) / at.sum;
  return {lower, lower * (x + 0.5 - 0.25 * at.fraction) / x};
}

inline double airy_series(double x) {
  double even = 1, odd = x, f = even, g = odd;
  for (int k = 3; k < 90; k += 3) {
    even *= x * x * x / ((k - 1) * k);
    odd *= x * x * x / (k * (k + 1));
    f += even;
    g += odd;
  }
  return 0.35502805388781724 * f - 0.25881940379280680 * g;
}

// Ai by its power series near 0, else by K of order 1/3 [Abramowitz & Stegun 10.4.14] at
// 2/3 |x|^(3/2), for negative x times i.
inline double airy_ai(double x, double precision) {
  if (!std::isfinite(x)) return kNaN;
  if (x > -3 && x < 2.2) return airy_series(x);
  const double size = std::abs(x), at = 2. / 3 * size * std::sqrt(size);
  if (x > 0 && at > 800) return 0;
  const double scale = std::sqrt(size / (6 * kPi * at));
  if (x > 0) return scale * std::exp(-at) / steed_fraction(1. / 3, at, precision).sum;
  const std::complex<double> scaled =
      inverse(steed_fraction(1. / 3, std::complex<double>(0, at), precision).sum);
  const double angle = kPi / 4 - at;
  return 2 * scale * (std::cos(angle) * scaled.real() - std::sin(angle) * scaled.imag());
}

}  // namespace special_functions

inline double special_function(SpecialFunction which, double x, double precision) {
  using namespace special_functions;
  switch (which) {
    case SpecialFunction::kBesselJ0:
      return std::isinf(x) ? kNaN : ::j0(x);
    case SpecialFunction::kBesselJ1:
      return std::isinf(x) ? kNaN : ::j1(x);
    case SpecialFunction::kBesselY0:
      return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNaN : ::y0(x);
    case SpecialFunction::kBesselY1:
      return x == 0 ? -kInf : x < 0 || std::isinf(x) ? kNaN : ::y1(x);
    case SpecialFunction::kSphericalJ0:
      return x == 0 ? 1 : std::isinf(x) ? 0 : std::sin(x) / x;
    case SpecialFunction::kAiryAi:
      return airy_ai(x, precision);
    default:
      break;
  }
  const ScaledK k = scaled_k(x, precision);
  const bool upper = which == SpecialFunction::kModifiedK1 || which == SpecialFunction::kScaledK1;
  const bool scaled = which == SpecialFunction::kScaledK0 || which == SpecialFunction::kScaledK1;
  const double value = upper ? k.upper : k.lower;
  if (scaled) return value;
  return std::isinf(x) && x > 0 ? 0 : value * std::exp(-x);
}

}  // namespace taeda
