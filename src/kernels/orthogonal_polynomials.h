// Orthogonal polynomials p_n(x): p_0 = 1, p_1 and a recurrence of three terms [Abramowitz & Stegun
// 22.7], in x's precision, for every device (NVRTC compiles them, too).
//
// n is rounded towards zero; p_n = 0 for negative n. What overflows becomes NaN two terms later, as
// PyTorch's does. Chebyshev polynomials of more than a few terms inside of (-1, 1) are computed by
// their trigonometric forms.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace taeda {

// In the order of their names in special_function_names.h; Chebyshev's kinds, then those of 2x - 1.
enum class Polynomial : uint8_t {
  kT,
  kU,
  kV,
  kW,
  kShiftedT,
  kShiftedU,
  kShiftedV,
  kShiftedW,
  kHermiteH,
  kHermiteHe,
  kLaguerre,
  kLegendre
};

namespace polynomials {

// next(k, p_k, p_(k-1)) is p_(k+1).
template <class T, class Next>
T recur(int64_t n, T first, Next next) {
  if (n == 0) return 1;
  T before = 1, p = first;
  for (int64_t k = 1; k < n && !std::isnan(p); k++) {
    const T following = next(static_cast<T>(k), p, before);
    before = p;
    p = following;
  }
  return p;
}

// Of the four kinds: values at the ends, at x = cos(t), and p_1.
template <class T>
T chebyshev(Polynomial kind, T x, int64_t n) {
  using enum Polynomial;
  const T sign = n % 2 == 0 ? T(1) : T(-1), m = static_cast<T>(n);
  if (x == 1) return kind == kT || kind == kV ? T(1) : kind == kU ? m + 1 : m + m + 1;
  if (x == -1) return sign * (kind == kT || kind == kW ? T(1) : kind == kU ? m + 1 : m + m + 1);
  if (n > 6 && std::abs(x) < 1) {
    const T t = std::acos(x), half = T(0.5);
    const T at = kind == kT ? m : kind == kU ? m + 1 : m + half, unit = kind == kU ? t : t * half;
    const bool even = kind == kT || kind == kV;
    const T above = even ? std::cos(at * t) : std::sin(at * t);
    return kind == kT ? above : above / (even ? std::cos(unit) : std::sin(unit));
  }
  const T first = kind == kT ? x : kind == kU ? x + x : kind == kV ? x + x - 1 : x + x + 1;
  return recur(n, first, [x](T, T p, T before) { return (x + x) * p - before; });
}

// Beyond this degree PyTorch's Hermite polynomials are NaN.
template <class T>
inline constexpr int64_t kHermiteLimit = sizeof(T) == 4 ? 128 : 512;

// He_n(x) for a scale of 1, H_n(x) for one of 2.
template <class T>
T hermite(T x, int64_t n, T scale) {
  if (n > kHermiteLimit<T>) return std::numeric_limits<T>::quiet_NaN();
  return recur(n, scale * x,
               [=](T k, T p, T before) { return scale * x * p - scale * k * before; });
}
template <class T>
T laguerre(T x, int64_t n) {
  if (x == 0) return 1;
  return recur(n, 1 - x,
               [x](T k, T p, T before) { return ((k + k + 1 - x) * p - k * before) / (k + 1); });
}
template <class T>
T legendre(T x, int64_t n) {
  if (std::abs(x) == 1) return x > 0 || n % 2 == 0 ? T(1) : T(-1);
  return recur(n, x,
               [x](T k, T p, T before) { return ((k + k + 1) * x * p - k * before) / (k + 1); });
}

// The degree of an element: -1 for NaN and for what int64 does not hold, as in PyTorch.
template <class T>
int64_t degree(T n) {
  return std::abs(n) < T(0x1p63) ? static_cast<int64_t>(n) : -1;
}

}  // namespace polynomials

template <class T>
T orthogonal_polynomial(Polynomial which, T x, T n) {
  using namespace polynomials;
  const int64_t k = degree(n);
  if (k < 0) return 0;
  switch (which) {
    case Polynomial::kHermiteH:
      return hermite(x, k, T(2));
    case Polynomial::kHermiteHe:
      return hermite(x, k, T(1));
    case Polynomial::kLaguerre:
      return laguerre(x, k);
    case Polynomial::kLegendre:
      return legendre(x, k);
    default:
      break;
  }
  constexpr auto kShift = static_cast<uint8_t>(Polynomial::kShiftedT);
  const auto kind = static_cast<uint8_t>(which);
  if (kind < kShift) return chebyshev(which, x, k);
  return chebyshev(static_cast<Polynomial>(kind - kShift), x + x - 1, k);
}

}  // namespace taeda
