// Element conversion between all pairs of dtypes, over dense arrays.
#include <complex>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/convert.h"
#include "kernels/cpu/pointwise/loop.h"

// Vector code for whatever the baseline instruction set can convert by vectors.
#pragma GCC optimize("O3")

namespace taeda::cpu {

namespace {

template <class T>
inline constexpr bool kComplex = false;
template <class T>
inline constexpr bool kComplex<std::complex<T>> = true;
template <class T>
inline constexpr bool kReduced = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// What a float outside an integer type's range becomes is undefined in C++; here it is what x86's
// conversion gives (the smallest integer of the wider type), then truncated.
template <class Wide, class T>
[[gnu::always_inline]] inline Wide truncate(T x) {
  constexpr T limit = -static_cast<T>(std::numeric_limits<Wide>::min());
  return x >= -limit && x < limit ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min();
}

template <class To, class From>
[[gnu::always_inline]] inline To convert_value(From x) {
  if constexpr (kReduced<From>) {
    return convert_value<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kComplex<To>) {
    using R = typename To::value_type;
    if constexpr (kComplex<From>)
      return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    else
      return To(static_cast<R>(x));
  } else if constexpr (kComplex<From>) {
    return convert_value<To>(x.real());
  } else if constexpr (kReduced<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Wide = std::conditional_t<std::is_signed_v<To> && sizeof(To) <= 4, int32_t, int64_t>;
    return static_cast<To>(truncate<Wide>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = convert_value<To>(x[i]);
}

template <class To>
void convert_bool(void* dst, const void* src, int64_t n) {
  const To zero = convert_value<To>(uint8_t{0}), one = convert_value<To>(uint8_t{1});
  To* y = static_cast<To*>(dst);
  const Bool* x = static_cast<const Bool*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = x[i] ? one : zero;
}

template <class From>
struct Row {
  ConvertFn to[kNumDTypes];
};
template <class From>
constexpr Row<From> row() {
  if constexpr (std::is_same_v<From, Bool>) {
    return {convert_bool<bool>,
            convert_bool<uint8_t>,
            convert_bool<int8_t>,
            convert_bool<int16_t>,
            convert_bool<int32_t>,
            convert_bool<int64_t>,
            convert_bool<Half>,
            convert_bool<BFloat16>,
            convert_bool<float>,
            convert_bool<double>,
            convert_bool<std::complex<float>>,
            convert_bool<std::complex<double>>};
  } else {
    return {convert<bool, From>,
            convert<uint8_t, From>,
            convert<int8_t, From>,
            convert<int16_t, From>,
            convert<int32_t, From>,
            convert<int64_t, From>,
            convert<Half, From>,
            convert<BFloat16, From>,
            convert<float, From>,
            convert<double, From>,
            convert<std::complex<float>, From>,
            convert<std::complex<double>, From>};
  }
}

template <class From>
ConvertFn pick(DType to) {
  static constexpr Row<From> table = row<From>();
  return table.to[static_cast<int>(to)];
}

}  // namespace

ConvertFn convert_fn(DType to, DType from) {
  if (const ConvertFn fast = convert_fn_simd(to, from)) return fast;
  switch (from) {
    case DType::kBool:
      return pick<Bool>(to);
    case DType::kUInt8:
      return pick<uint8_t>(to);
    case DType::kInt8:
      return pick<int8_t>(to);
    case DType::kInt16:
      return pick<int16_t>(to);
    case DType::kInt32:
      return pick<int32_t>(to);
    case DType::kInt64:
      return pick<int64_t>(to);
    case DType::kFloat16:
      return pick<Half>(to);
    case DType::kBFloat16:
      return pick<BFloat16>(to);
    case DType::kFloat32:
      return pick<float>(to);
    case DType::kFloat64:
      return pick<double>(to);
    case DType::kComplex64:
      return pick<std::complex<float>>(to);
    case DType::kComplex128:
      return pick<std::complex<double>>(to);
  }
  return nullptr;
}

}  // namespace taeda::cpu
