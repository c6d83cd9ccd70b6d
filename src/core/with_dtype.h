// From a dtype to a C++ type: `with_dtype<Floating>(t, f)` calls f(T{}) with the type that stores
// elements of `t`, where `Floating` is the list of the types that f is compiled for.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/error.h"

namespace taeda {

template <class... Ts>
struct Types {};
template <class A, class B>
struct JoinTypes;
template <class... As, class... Bs>
struct JoinTypes<Types<As...>, Types<Bs...>> {
  using type = Types<As..., Bs...>;
};
template <class A, class B>
using Join = typename JoinTypes<A, B>::type;

using Integers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using WideFloating = Types<float, double>;
using Floating = Join<Types<Half, BFloat16>, WideFloating>;
using ComplexTypes = Types<std::complex<float>, std::complex<double>>;
using WideInexact = Join<WideFloating, ComplexTypes>;
using WideNumbers = Join<Integers, WideInexact>;
using Numbers = Join<Integers, Floating>;  // neither bool nor complex
using RealTypes = Join<Types<Bool>, Numbers>;
using AllTypes = Join<RealTypes, ComplexTypes>;

// NotImplementedError, naming the function `name`, for a dtype that is not in the list.
template <class List, class F>
void with_dtype(DType t, std::string_view name, F&& f) {
  const bool found = [&]<class... Ts>(Types<Ts...>) {
    return ((t == kDTypeOf<Ts> && (f(Ts{}), true)) || ...);
  }(List{});
  if (!found) {
    fail(ErrorKind::kNotImplemented, "\"{}\" not implemented for '{}'", name, scalar_type_name(t));
  }
}
// For kernels behind a contract that lets no other dtype through.
template <class List, class F>
void with_dtype(DType t, F&& f) {
  with_dtype<List>(t, "this function", f);
}

// The type that arithmetic on floating T is done in: half precision computes in float.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls f with a zero of the type that arithmetic on `t` is done in.
template <class F>
void with_wide_floating(DType t, F&& f) {
  if (t == DType::kFloat64) return f(double{});
  f(float{});
}

}  // namespace taeda
