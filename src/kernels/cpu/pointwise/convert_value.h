// One element as another type: what a conversion gives, whatever loop makes it.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "taeda/dtype.h"

namespace taeda::cpu {

template <class T>
inline constexpr bool kComplex = false;
template <class T>
inline constexpr bool kComplex<std::complex<T>> = true;

// What a float outside an integer type's range becomes is undefined in C++; here it is what x86's
// conversion gives (the smallest integer of the wider type), then truncated.
template <class Wide, class T>
[[gnu::always_inline]] inline Wide truncate_to(T x) {
  constexpr T limit = -static_cast<T>(std::numeric_limits<Wide>::min());
  return x >= -limit && x < limit ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min();
}

template <class To, class From>
[[gnu::always_inline]] inline To convert_value(From x) {
  if constexpr (StoredFloat<From>) {
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
  } else if constexpr (StoredFloat<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, uint64_t> && std::is_floating_point_v<From>) {
    // By halves of the range, each as int64: 2^64 and more is 0.
    constexpr From half = From(0x1p63);
    return x >= half ? static_cast<To>(truncate_to<int64_t>(x - half)) ^ (To{1} << 63)
                     : static_cast<To>(truncate_to<int64_t>(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr bool narrow = (std::is_signed_v<To> && sizeof(To) <= 4) || sizeof(To) == 2;
    using Wide = std::conditional_t<narrow, int32_t, int64_t>;
    return static_cast<To>(truncate_to<Wide>(x));
  } else {
    return static_cast<To>(x);
  }
}

namespace scalar {
// n elements, one by one.
template <class To, class From>
void convert(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = convert_value<To>(x[i]);
}
}  // namespace scalar

}  // namespace taeda::cpu
