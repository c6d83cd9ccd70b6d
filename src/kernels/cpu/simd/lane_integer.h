// Division and bits on Lane<T>; included by lane.h.
//
// Integers divided by zero raise a RuntimeError, as in PyTorch; the smallest integer divided by -1
// wraps around.
#pragma once

#include <limits>
#include <numeric>

#include "kernels/cpu/simd/lane.h"
#include "taeda/error.h"

namespace taeda::cpu::lanes {

namespace detail {

template <class T>
TD_FN void check_divisor(T y) {
  TD_CHECK(y != 0, "ZeroDivisionError");
}
template <class T>
TD_FN bool is_minus_one(T y) {
  return std::is_signed_v<T> && y == static_cast<T>(-1);
}

template <class T>
TD_FN bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return false;
  else
    return x < 0;
}

}  // namespace detail

template <class T>
TD_FN Lane<T> fmod(Lane<T> x, Lane<T> y) {
  if constexpr (kIsInteger<T>) {
    detail::check_divisor(y.raw);
    return Lane<T>(detail::is_minus_one(y.raw) ? T(0) : static_cast<T>(x.raw % y.raw));
  } else
    return Lane<T>(std::fmod(x.raw, y.raw));
}
template <class T>
TD_FN Lane<T> remainder(Lane<T> x, Lane<T> y) {
  const T r = fmod(x, y).raw;
  if constexpr (!kIsInteger<T>) {
    return Lane<T>(r != 0 && std::signbit(r) != std::signbit(y.raw) ? r + y.raw : r);
  } else if constexpr (std::is_signed_v<T>) {
    // No branch: the sign of a remainder is anyone's guess. The mask is -1 where r is not 0 and has
    // another sign than y.
    using Wide = decltype(r + r);
    const Wide mask = ((r ^ y.raw) & (r | -r)) >> (sizeof(Wide) * 8 - 1);
    return Lane<T>(static_cast<T>(r + (y.raw & mask)));
  } else {
    return Lane<T>(r);
  }
}
template <class T>
TD_FN Lane<T> trunc_divide(Lane<T> x, Lane<T> y) {
  if constexpr (kIsInteger<T>) {
    detail::check_divisor(y.raw);
    return detail::is_minus_one(y.raw) ? -x : Lane<T>(static_cast<T>(x.raw / y.raw));
  } else
    return Lane<T>(std::trunc(x.raw / y.raw));
}
template <class T>
TD_FN Lane<T> floor_divide(Lane<T> x, Lane<T> y) {
  if constexpr (kIsInteger<T>) {
    detail::check_divisor(y.raw);
    if (detail::is_minus_one(y.raw)) return -x;
    const T q = static_cast<T>(x.raw / y.raw), r = static_cast<T>(x.raw - q * y.raw);
    const bool below = (r != 0) & (detail::is_negative(r) != detail::is_negative(y.raw));
    return Lane<T>(static_cast<T>(q - static_cast<T>(below)));
  } else {
    if (y.raw == 0) return Lane<T>(x.raw / y.raw);
    const T r = std::fmod(x.raw, y.raw);
    T d = (x.raw - r) / y.raw;
    if (r != 0 && detail::is_negative(r) != detail::is_negative(y.raw)) d -= 1;
    if (d == 0) return Lane<T>(std::copysign(T(0), x.raw / y.raw));
    const T f = std::floor(d);
    return Lane<T>(d - f > T(0.5) ? f + 1 : f);
  }
}

// On magnitudes. The smallest integer has none: remainders of it, which PyTorch goes on with, may
// end in a negative divisor.
template <class T>
TD_FN Lane<T> gcd(Lane<T> x, Lane<T> y) {
  using U = std::make_unsigned_t<T>;
  constexpr T kLeast = std::numeric_limits<T>::min();
  if (kLeast < 0 && (x.raw == kLeast || y.raw == kLeast)) [[unlikely]] {
    T a = abs(x).raw, b = abs(y).raw;
    while (a != 0) {
      const T rest = a == b ? T(0) : static_cast<T>(b % a);
      b = a, a = rest;
    }
    return Lane<T>(b);
  }
  return Lane<T>(static_cast<T>(std::gcd(static_cast<U>(abs(x).raw), static_cast<U>(abs(y).raw))));
}
template <class T>
TD_FN Lane<T> lcm(Lane<T> x, Lane<T> y) {
  const Lane<T> g = gcd(x, y);
  return g.raw == 0 ? g : abs(trunc_divide(x, g)) * abs(y);
}

template <class T>
TD_FN Lane<T> bit_and(Lane<T> x, Lane<T> y) {
  return Lane<T>::of_bits(x.raw & y.raw);
}
template <class T>
TD_FN Lane<T> bit_or(Lane<T> x, Lane<T> y) {
  return Lane<T>::of_bits(x.raw | y.raw);
}
template <class T>
TD_FN Lane<T> bit_xor(Lane<T> x, Lane<T> y) {
  return Lane<T>::of_bits(x.raw ^ y.raw);
}
template <class T>
TD_FN Lane<T> bit_not(Lane<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return Lane<T>(!x.raw);
  else
    return Lane<T>(static_cast<T>(~x.raw));
}
template <class T>
inline constexpr T kBits = static_cast<T>(sizeof(T) * 8);
template <class T>
TD_FN Lane<T> shift_left(Lane<T> x, Lane<T> y) {
  if (y.raw < 0 || y.raw >= kBits<T>) return Lane<T>(T(0));
  return Lane<T>(static_cast<T>(static_cast<std::make_unsigned_t<T>>(x.raw) << y.raw));
}
template <class T>
TD_FN Lane<T> shift_right(Lane<T> x, Lane<T> y) {
  if (y.raw < 0 || y.raw >= kBits<T>) return Lane<T>(static_cast<T>(x.raw < 0 ? -1 : 0));
  return Lane<T>(static_cast<T>(x.raw >> y.raw));
}

}  // namespace taeda::cpu::lanes
