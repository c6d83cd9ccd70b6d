// Lane<T>: one number with the operators and functions of Vec<T>, for the types that have no vector
// form here (integers, bool, complex) and for machines without AVX2: the functors of
// kernels/pointwise run on it unchanged.
//
// Integer arithmetic wraps around, as PyTorch's does. Complex products are the plain formula; the
// quotient scales first, so that it overflows only where the result does.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/special.h"
#include "taeda/dtype.h"

#ifndef TD_FN
#define TD_FN inline __attribute__((always_inline))
#endif

namespace taeda::cpu::lanes {

template <class S>
concept Number = std::is_arithmetic_v<S>;
template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};

namespace detail {

// Arithmetic through the unsigned type: wraps without undefined behaviour. 16-bit types go through
// 32 bits, since a product of two promoted uint16_t would be a signed int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// By the ratio of the divisor's parts, the smaller to the larger (Smith 1962), as PyTorch divides:
// a finite number divided by an infinity is 0.
template <class T>
std::complex<T> divide(std::complex<T> x, std::complex<T> y) {
  const T a = x.real(), b = x.imag(), c = std::abs(y.real()), d = std::abs(y.imag());
  if (c == 0 && d == 0) return {a / c, b / d};
  const bool real = c >= d;
  const T large = real ? y.real() : y.imag(), small = real ? y.imag() : y.real();
  const T ratio = small / large, scale = 1 / (large + small * ratio);
  return {((real ? a : b) + (real ? b : a) * ratio) * scale,
          real ? (b - a * ratio) * scale : (b * ratio - a) * scale};
}

}  // namespace detail

// A truth value is a byte, 0 or 1: compilers make vectors of loops over bytes, but not of all over
// C++'s bool.
template <class T>
using LaneRaw = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
struct Lane {
  using Element = T;
  using M = bool;
  using R = typename RealOf<T>::Type;
  LaneRaw<T> raw;

  Lane() = default;
  TD_FN Lane(T raw) : raw(raw) {}
  template <class Integer>
  static TD_FN Lane of_bits(Integer bits) {
    Lane lane;
    lane.raw = static_cast<LaneRaw<T>>(bits);
    return lane;
  }
  template <Number S>
    requires(!std::is_same_v<S, T>)
  TD_FN Lane(S s) : raw(static_cast<R>(s)) {}
  static constexpr int64_t size() { return 1; }

  friend TD_FN Lane operator+(Lane a, Lane b) {
    if constexpr (std::is_same_v<T, bool>)
      return of_bits(a.raw | b.raw);
    else if constexpr (kIsInteger<T>)
      return Lane(static_cast<T>(wrap(a) + wrap(b)));
    else
      return Lane(a.raw + b.raw);
  }
  friend TD_FN Lane operator-(Lane a, Lane b) {
    if constexpr (std::is_same_v<T, bool>)
      return of_bits(a.raw ^ b.raw);
    else if constexpr (kIsInteger<T>)
      return Lane(static_cast<T>(wrap(a) - wrap(b)));
    else
      return Lane(a.raw - b.raw);
  }
  friend TD_FN Lane operator*(Lane a, Lane b) {
    if constexpr (std::is_same_v<T, bool>)
      return of_bits(a.raw & b.raw);
    else if constexpr (kIsInteger<T>)
      return Lane(static_cast<T>(wrap(a) * wrap(b)));
    else if constexpr (kIsComplex<T>) {
      const R p = a.raw.real(), q = a.raw.imag(), r = b.raw.real(), s = b.raw.imag();
      return Lane(T(p * r - q * s, p * s + q * r));
    } else
      return Lane(a.raw * b.raw);
  }
  friend TD_FN Lane operator/(Lane a, Lane b) {
    if constexpr (kIsComplex<T>)
      return Lane(detail::divide(a.raw, b.raw));
    else
      return Lane(static_cast<T>(a.raw / b.raw));
  }
  friend TD_FN Lane operator-(Lane a) {
    if constexpr (kIsInteger<T>)
      return Lane(static_cast<T>(0 - wrap(a)));
    else
      return Lane(static_cast<T>(-a.raw));
  }
  friend TD_FN M operator<(Lane a, Lane b) { return a.raw < b.raw; }
  friend TD_FN M operator<=(Lane a, Lane b) { return a.raw <= b.raw; }
  friend TD_FN M operator>(Lane a, Lane b) { return a.raw > b.raw; }
  friend TD_FN M operator>=(Lane a, Lane b) { return a.raw >= b.raw; }
  friend TD_FN M operator==(Lane a, Lane b) { return a.raw == b.raw; }
  friend TD_FN M operator!=(Lane a, Lane b) { return a.raw != b.raw; }

  friend TD_FN Lane select(M m, Lane yes, Lane no) { return m ? yes : no; }
  friend TD_FN Lane fma(Lane a, Lane b, Lane c) {
    if constexpr (std::is_floating_point_v<T>)
      return Lane(std::fma(a.raw, b.raw, c.raw));
    else
      return a * b + c;
  }
  friend TD_FN Lane copysign(Lane a, Lane b) { return Lane(std::copysign(a.raw, b.raw)); }
  friend TD_FN Lane max(Lane a, Lane b) { return a.raw > b.raw || a.raw != a.raw ? a : b; }
  friend TD_FN Lane min(Lane a, Lane b) { return a.raw < b.raw || a.raw != a.raw ? a : b; }
  friend TD_FN Lane fmax(Lane a, Lane b) { return a.raw > b.raw || b.raw != b.raw ? a : b; }
  friend TD_FN Lane fmin(Lane a, Lane b) { return a.raw < b.raw || b.raw != b.raw ? a : b; }
  friend TD_FN Lane raw_max(Lane a, Lane b) { return a.raw > b.raw ? a : b; }
  friend TD_FN Lane raw_min(Lane a, Lane b) { return a.raw < b.raw ? a : b; }

 private:
  static TD_FN detail::Wrapping<T> wrap(Lane a) { return static_cast<detail::Wrapping<T>>(a.raw); }
};

TD_FN bool all(bool m) { return m; }
TD_FN bool any(bool m) { return m; }

// Functions that the C library has for real and complex numbers alike.
#define TD_LANE_FUNCTION(name)                        \
  template <class T>                                  \
  TD_FN Lane<T> name(Lane<T> x) {                     \
    return Lane<T>(static_cast<T>(std::name(x.raw))); \
  }
TD_LANE_FUNCTION(sqrt)
TD_LANE_FUNCTION(exp)
TD_LANE_FUNCTION(log)
TD_LANE_FUNCTION(log10)
TD_LANE_FUNCTION(sin)
TD_LANE_FUNCTION(cos)
TD_LANE_FUNCTION(tan)
TD_LANE_FUNCTION(asin)
TD_LANE_FUNCTION(acos)
TD_LANE_FUNCTION(atan)
TD_LANE_FUNCTION(sinh)
TD_LANE_FUNCTION(cosh)
TD_LANE_FUNCTION(tanh)
TD_LANE_FUNCTION(asinh)
TD_LANE_FUNCTION(acosh)
TD_LANE_FUNCTION(atanh)
TD_LANE_FUNCTION(erf)
TD_LANE_FUNCTION(erfc)
#undef TD_LANE_FUNCTION

// Integers are their own roundings.
#define TD_LANE_ROUNDING(name, function)                    \
  template <class T>                                        \
  TD_FN Lane<T> name(Lane<T> x) {                           \
    if constexpr (std::is_integral_v<T>)                    \
      return x;                                             \
    else                                                    \
      return Lane<T>(static_cast<T>(std::function(x.raw))); \
  }
TD_LANE_ROUNDING(floor, floor)
TD_LANE_ROUNDING(ceil, ceil)
TD_LANE_ROUNDING(trunc, trunc)
TD_LANE_ROUNDING(round, nearbyint)
#undef TD_LANE_ROUNDING

template <class T>
TD_FN Lane<T> abs(Lane<T> x) {
  if constexpr (std::is_unsigned_v<T>)
    return x;
  else if constexpr (kIsInteger<T>)
    return select(x.raw < 0, -x, x);  // the smallest integer stays itself
  else
    return Lane<T>(std::fabs(x.raw));
}
// The modulus of a complex number, a real one.
template <class T>
TD_FN Lane<T> abs(Lane<std::complex<T>> x) {
  return Lane<T>(std::hypot(x.raw.real(), x.raw.imag()));
}
template <class T>
TD_FN Lane<T> rsqrt(Lane<T> x) {
  return Lane<T>(1) / sqrt(x);
}
template <class T>
TD_FN Lane<T> exp2(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return exp(x * 0.69314718055994531);
  else
    return Lane<T>(std::exp2(x.raw));
}
template <class T>
TD_FN Lane<T> log2(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return Lane<T>(std::log(x.raw) * static_cast<typename T::value_type>(1.4426950408889634));
  else
    return Lane<T>(std::log2(x.raw));
}
// e^(a+bi) - 1 = expm1(a) cos b - 2 sin^2(b/2) + i e^a sin b: no cancellation near 0.
template <class T>
TD_FN Lane<T> expm1(Lane<T> x) {
  if constexpr (kIsComplex<T>) {
    const auto a = x.raw.real(), b = x.raw.imag(), s = std::sin(b / 2);
    return Lane<T>(T(std::expm1(a) * std::cos(b) - 2 * s * s, std::exp(a) * std::sin(b)));
  } else
    return Lane<T>(std::expm1(x.raw));
}
// log|1 + a + bi| = log1p(a (2 + a) + b^2) / 2.
template <class T>
TD_FN Lane<T> log1p(Lane<T> x) {
  if constexpr (kIsComplex<T>) {
    const auto a = x.raw.real(), b = x.raw.imag();
    if (std::abs(a) + std::abs(b) > 0.5) return log(x + 1);
    return Lane<T>(T(std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)));
  } else
    return Lane<T>(std::log1p(x.raw));
}
template <class T>
TD_FN Lane<T> erfinv(Lane<T> x) {
  return Lane<T>(special::erfinv(x.raw));
}
template <class T>
TD_FN Lane<T> lgamma(Lane<T> x) {
  return Lane<T>(special::lgamma(x.raw));
}
template <class T>
TD_FN Lane<T> digamma(Lane<T> x) {
  return Lane<T>(special::digamma(x.raw));
}
template <class T>
TD_FN Lane<T> trigamma(Lane<T> x) {
  return Lane<T>(special::trigamma(x.raw));
}
template <class T>
TD_FN Lane<T> zeta(Lane<T> s, Lane<T> q) {
  return Lane<T>(special::zeta(s.raw, q.raw));
}
template <class T>
TD_FN Lane<T> igamma(Lane<T> a, Lane<T> x) {
  return Lane<T>(special::igamma(a.raw, x.raw));
}
template <class T>
TD_FN Lane<T> igammac(Lane<T> a, Lane<T> x) {
  return Lane<T>(special::igammac(a.raw, x.raw));
}
template <class T>
TD_FN Lane<T> erfcx(Lane<T> x) {
  return Lane<T>(special::erfcx(x.raw));
}
template <class T>
TD_FN Lane<T> ndtri(Lane<T> x) {
  return Lane<T>(special::ndtri(x.raw));
}
template <class T>
TD_FN Lane<T> i0e(Lane<T> x) {
  return Lane<T>(special::i0e(x.raw));
}
template <class T>
TD_FN Lane<T> i1e(Lane<T> x) {
  return Lane<T>(special::i1e(x.raw));
}

template <class T>
TD_FN Lane<T> atan2(Lane<T> y, Lane<T> x) {
  return Lane<T>(std::atan2(y.raw, x.raw));
}
template <class T>
TD_FN Lane<T> hypot(Lane<T> x, Lane<T> y) {
  return Lane<T>(std::hypot(x.raw, y.raw));
}
template <class T>
TD_FN Lane<T> nextafter(Lane<T> x, Lane<T> y) {
  return Lane<T>(std::nextafter(x.raw, y.raw));
}
// Integer powers wrap around; a negative exponent gives the rounded quotient 1 / x^-y, which is 0
// except for x = +-1.
template <class T>
TD_FN Lane<T> pow(Lane<T> x, Lane<T> y) {
  if constexpr (std::is_same_v<T, bool>) {
    return Lane<T>(x.raw || !y.raw);
  } else if constexpr (kIsInteger<T>) {
    const bool odd = y.raw & 1;
    if (y.raw < T(0)) return x.raw == T(1) ? x : x.raw == T(-1) ? (odd ? x : -x) : Lane<T>(T(0));
    Lane<T> result(T(1));
    for (auto n = static_cast<std::make_unsigned_t<T>>(y.raw); n;
         n = static_cast<decltype(n)>(n >> 1), x = x * x) {
      if (n & 1) result = result * x;
    }
    return result;
  } else if constexpr (kIsComplex<T>) {
    if (y.raw == T(0)) return Lane<T>(T(1));
    return Lane<T>(std::pow(x.raw, y.raw));
  } else
    return Lane<T>(std::pow(x.raw, y.raw));
}

template <class T>
TD_FN bool isnan(Lane<T> x) {
  return x.raw != x.raw;
}
template <class T>
TD_FN bool isinf(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return std::isinf(x.raw.real()) || std::isinf(x.raw.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return std::isinf(x.raw);
  else
    return false;
}
template <class T>
TD_FN bool isfinite(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return std::isfinite(x.raw.real()) && std::isfinite(x.raw.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return std::isfinite(x.raw);
  else
    return true;
}
template <class T>
TD_FN bool signbit(Lane<T> x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::signbit(x.raw);
  else
    return x.raw < T(0);
}

// Parts of complex numbers; real numbers are their own real part.
template <class T>
TD_FN Lane<typename RealOf<T>::Type> real(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return {x.raw.real()};
  else
    return x;
}
template <class T>
TD_FN Lane<typename RealOf<T>::Type> imag(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return {x.raw.imag()};
  else
    return {T(0)};
}
template <class T>
TD_FN Lane<T> conj(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return Lane<T>(std::conj(x.raw));
  else
    return x;
}

template <class T>
TD_FN Lane<T> sgn(Lane<T> x) {
  if constexpr (kIsComplex<T>) {
    const auto modulus = std::hypot(x.raw.real(), x.raw.imag());
    return Lane<T>(modulus == 0 ? T(0) : x.raw / modulus);
  } else
    return select(x > 0, Lane<T>(1), select(x < 0, Lane<T>(-1), Lane<T>(0)));
}
template <class T>
TD_FN Lane<typename RealOf<T>::Type> angle(Lane<T> x) {
  if constexpr (kIsComplex<T>)
    return {std::atan2(x.raw.imag(), x.raw.real())};
  else
    return select(x != x, x, select(x < 0, Lane<T>(3.1415926535897932), Lane<T>(0)));
}
// i z / |z|^2
template <class T>
TD_FN Lane<T> angle_gradient(Lane<T> x) {
  if constexpr (kIsComplex<T>) {
    const auto a = x.raw.real(), b = x.raw.imag(), n = a * a + b * b;
    return Lane<T>(n == 0 ? T(0) : T(-b / n, a / n));
  } else
    return Lane<T>(0);
}

}  // namespace taeda::cpu::lanes

#include "kernels/cpu/simd/lane_integer.h"
