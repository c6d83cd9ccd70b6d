// Elements of any dtype as the type that a kernel computes in, and back: so type promotion costs no
// pass over memory and no further kernels.
#pragma once
#include "kernels/cpu/simd/lane.h"
#include "kernels/cuda/text/element_type.h"
#include "kernels/cuda/text/float16.cuh"

namespace taeda::device {

template <class T>
constexpr bool kIsComplex = cpu::lanes::kIsComplex<T>;

// As Tensor::to: anything but zero is true, floats lose their fraction, complex numbers their
// imaginary part.
template <class T, class S>
TD_FN T convert(S s) {
  if constexpr (std::is_same_v<T, S>)
    return s;
  else if constexpr (kIsStoredFloat<S>)
    return convert<T>(widen(s));
  else if constexpr (kIsStoredFloat<T>) {
    T t;
    narrow(convert<float>(s), t);
    return t;
  } else if constexpr (std::is_same_v<T, bool>)
    return s != S(0);
  else if constexpr (kIsComplex<T> && !kIsComplex<S>)
    return T(static_cast<typename T::value_type>(s));
  else if constexpr (kIsComplex<S> && !kIsComplex<T>)
    return convert<T>(s.real());
  else
    return static_cast<T>(s);
}

// x as an element of half precision has it; of other types as it is.
template <class T>
TD_FN T rounded(T x, ElementType type) {
  if (type == ElementType::kFloat16) return convert<T>(convert<Half>(x));
  if (type == ElementType::kBFloat16) return convert<T>(convert<BFloat16>(x));
  return x;
}

template <class S, class T>
TD_FN T load_as(const char* p) {
  return convert<T>(*reinterpret_cast<const S*>(p));
}
template <class S, class T>
TD_FN void store_as(char* p, T t) {
  *reinterpret_cast<S*>(p) = convert<S>(t);
}

// X(enumerator, type in memory), but for truth values: they are read as bytes, any but 0 being
// true.
#define TD_NUMBERS(X)    \
  X(kUInt8, uint8_t)     \
  X(kInt8, int8_t)       \
  X(kInt16, int16_t)     \
  X(kInt32, int32_t)     \
  X(kInt64, int64_t)     \
  X(kFloat16, Half)      \
  X(kBFloat16, BFloat16) \
  X(kFloat32, float)     \
  X(kFloat64, double)
#define TD_LOAD_CASE(code, S) \
  case ElementType::code:     \
    return load_as<S, T>(p);
#define TD_STORE_CASE(code, S) \
  case ElementType::code:      \
    return store_as<S>(p, t);

// Real kernels are given no complex operands.
template <class T>
TD_FN T load(const char* p, ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return convert<T>(convert<bool>(*reinterpret_cast<const uint8_t*>(p)));
      TD_NUMBERS(TD_LOAD_CASE)
    default:
      break;
  }
  if constexpr (kIsComplex<T>) {
    if (type == ElementType::kComplex64) return load_as<std::complex<float>, T>(p);
    return load_as<std::complex<double>, T>(p);
  } else {
    return T();
  }
}
template <class T>
TD_FN void store(char* p, ElementType type, T t) {
  switch (type) {
    case ElementType::kBool:
      return store_as<bool>(p, t);
      TD_NUMBERS(TD_STORE_CASE)
    case ElementType::kComplex64:
      return store_as<std::complex<float>>(p, t);
    case ElementType::kComplex128:
      return store_as<std::complex<double>>(p, t);
  }
}
#undef TD_NUMBERS
#undef TD_LOAD_CASE
#undef TD_STORE_CASE

}  // namespace taeda::device
