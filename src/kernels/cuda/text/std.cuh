// The standard library as far as kernels and functors use it, for NVRTC, which has none.
//
// NVRTC gets this text under the names <cmath>, <complex>, <cstdint>, ... (tools/nvrtc.py), so that
// the functors, kernels/cpu/simd/lane.h and special.cc compile for a device as they are. On the
// host, where the emulator of tests/device/emulator runs the same kernels, the real headers are
// used; complex.cuh is then tested beside std::complex.
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = unsigned long;
using uintptr_t = unsigned long;

namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;

// --- types ---

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;
template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <bool kFirst, class A, class B>
struct choice {
  using type = A;
};
template <class A, class B>
struct choice<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using conditional_t = typename choice<kFirst, A, B>::type;
template <class T, class... Others>
inline constexpr bool is_one_of = (is_same_v<T, Others> || ...);
template <class T>
inline constexpr bool is_floating_point_v = is_one_of<T, float, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
              unsigned long, long long, unsigned long long>;
template <class T>
inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;
template <class T>
constexpr bool has_sign() {
  if constexpr (is_arithmetic_v<T>)
    return T(-1) < T(0);
  else
    return false;
}
template <class T>
inline constexpr bool is_signed_v = has_sign<T>();
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;
template <class T>
using make_unsigned_t = conditional_t<
    sizeof(T) == 8, uint64_t,
    conditional_t<sizeof(T) == 4, uint32_t, conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <class T, T... I>
struct integer_sequence {};
template <size_t... I>
using index_sequence = integer_sequence<size_t, I...>;
template <size_t N, size_t... I>
struct count_down : count_down<N - 1, N - 1, I...> {};
template <size_t... I>
struct count_down<0, I...> {
  using type = index_sequence<I...>;
};
template <size_t N>
using make_index_sequence = typename count_down<N>::type;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

// --- what functors and special functions hold ---

struct nullopt_t {};
inline constexpr nullopt_t nullopt;
template <class T>
class optional {
 public:
  constexpr optional(nullopt_t) {}
  constexpr optional(T value) : value_(value), given_(true) {}
  constexpr explicit operator bool() const { return given_; }
  constexpr T operator*() const { return value_; }

 private:
  T value_{};
  bool given_ = false;
};

namespace numbers {
inline constexpr double sqrt2 = 1.4142135623730951;
}

template <class T>
struct numeric_limits {
  static constexpr T min() {
    return is_signed_v<T> ? static_cast<T>(make_unsigned_t<T>(1) << (8 * sizeof(T) - 1)) : T(0);
  }
  static constexpr T max() { return static_cast<T>(~min()); }
  static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<float> {
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float max() { return 0x1.fffffep127f; }
  static constexpr float lowest() { return -max(); }
  static constexpr float epsilon() { return 0x1p-23f; }
  static constexpr float infinity() { return bit_cast<float>(0x7f800000u); }
  static constexpr float quiet_NaN() { return bit_cast<float>(0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double lowest() { return -max(); }
  static constexpr double epsilon() { return 0x1p-52; }
  static constexpr double infinity() { return bit_cast<double>(uint64_t{0x7ff0000000000000}); }
  static constexpr double quiet_NaN() { return bit_cast<double>(uint64_t{0x7ff8000000000000}); }
};

template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T gcd(T a, T b) {
  while (b != 0) {
    const T rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

}  // namespace std

#include "kernels/cuda/text/std_math.cuh"

#define TD_STD std
#include "kernels/cuda/text/complex.cuh"
