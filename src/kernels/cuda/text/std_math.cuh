// Functions of numbers of the standard library, for NVRTC (std.cuh, which includes this): float
// stays float, integers become double.
#pragma once

namespace std {

#define TD_STD_UNARY(name)                            \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }  \
  template <class T>                                  \
    requires is_integral_v<T>                         \
  double name(T x) { return ::name(static_cast<double>(x)); }
TD_STD_UNARY(acos)
TD_STD_UNARY(acosh)
TD_STD_UNARY(asin)
TD_STD_UNARY(asinh)
TD_STD_UNARY(atan)
TD_STD_UNARY(atanh)
TD_STD_UNARY(ceil)
TD_STD_UNARY(cos)
TD_STD_UNARY(cosh)
TD_STD_UNARY(erf)
TD_STD_UNARY(erfc)
TD_STD_UNARY(exp)
TD_STD_UNARY(exp2)
TD_STD_UNARY(expm1)
TD_STD_UNARY(fabs)
TD_STD_UNARY(floor)
TD_STD_UNARY(lgamma)
TD_STD_UNARY(log)
TD_STD_UNARY(log10)
TD_STD_UNARY(log1p)
TD_STD_UNARY(log2)
TD_STD_UNARY(nearbyint)
TD_STD_UNARY(round)
TD_STD_UNARY(sin)
TD_STD_UNARY(sinh)
TD_STD_UNARY(sqrt)
TD_STD_UNARY(tan)
TD_STD_UNARY(tanh)
TD_STD_UNARY(trunc)
#undef TD_STD_UNARY

#define TD_STD_BINARY(name)                                                                \
  inline float name(float x, float y) { return ::name##f(x, y); }                          \
  inline double name(double x, double y) { return ::name(x, y); }                          \
  template <class T, class U>                                                              \
    requires(is_arithmetic_v<T> && is_arithmetic_v<U> && !is_same_v<T, U>)                 \
  double name(T x, U y) { return ::name(static_cast<double>(x), static_cast<double>(y)); } \
  template <class T>                                                                       \
    requires is_integral_v<T>                                                              \
  double name(T x, T y) { return ::name(static_cast<double>(x), static_cast<double>(y)); }
TD_STD_BINARY(atan2)
TD_STD_BINARY(copysign)
TD_STD_BINARY(fmod)
TD_STD_BINARY(hypot)
TD_STD_BINARY(nextafter)
TD_STD_BINARY(pow)
#undef TD_STD_BINARY

inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return ::fma(x, y, z); }
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
template <class T>
  requires is_integral_v<T>
constexpr T abs(T x) { return x < T(0) ? -x : x; }

template <class T>
bool isnan(T x) {
  return x != x;
}
template <class T>
bool isinf(T x) {
  return fabs(x) == numeric_limits<T>::infinity();
}
template <class T>
bool isfinite(T x) {
  return fabs(x) <= numeric_limits<T>::max();
}
inline bool signbit(float x) { return bit_cast<int32_t>(x) < 0; }
inline bool signbit(double x) { return bit_cast<int64_t>(x) < 0; }
template <class T>
  requires is_integral_v<T>
bool signbit(T x) { return x < T(0); }

}  // namespace std

inline double lgamma_r(double x, int*) { return ::lgamma(x); }
inline float lgammaf_r(float x, int*) { return ::lgammaf(x); }
