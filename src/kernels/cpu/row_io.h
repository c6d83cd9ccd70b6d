// Moving rows of elements between layouts and element types: how kernels that compute in one type on dense blocks
// read and write tensors of any type and any stride.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/view.h"
#include "taeda/dtype.h"

namespace taeda::cpu {

// One element converted as PyTorch converts: to bool by comparing with zero, complex to real by dropping the imaginary
// part, floating to integer by truncation (through int64, so that a narrow type wraps).
template <class To, class From>
inline To convert_value(const From& x) {
  constexpr bool from_complex = is_complex(kDTypeOf<From>), to_complex = is_complex(kDTypeOf<To>);
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (from_complex) return x != From(0);
    else if constexpr (is_reduced_floating(kDTypeOf<From>)) return static_cast<float>(x) != 0.0f;
    else return x != From(0);
  } else if constexpr (to_complex) {
    using R = typename To::value_type;
    if constexpr (from_complex) return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    else return To(static_cast<R>(x), R(0));
  } else if constexpr (from_complex) {
    return convert_value<To>(x.real());
  } else if constexpr (is_reduced_floating(kDTypeOf<To>)) {
    return To(static_cast<float>(x));
  } else if constexpr (is_integral(kDTypeOf<To>) && is_floating(kDTypeOf<From>)) {
    return static_cast<To>(static_cast<int64_t>(static_cast<std::conditional_t<std::is_same_v<From, double>, double, float>>(x)));
  } else {
    return static_cast<To>(x);
  }
}

// dst[i * dst_stride] = src[i * src_stride] converted, for i < n. Strides in elements.
void convert_row(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type, int64_t src_stride,
                 int64_t n);

// Calls f(T{}) with the C++ type of `t`.
template <class F>
decltype(auto) with_dtype(DType t, F&& f) {
  switch (t) {
    case DType::kBool: return f(bool{});
    case DType::kUInt8: return f(uint8_t{});
    case DType::kInt8: return f(int8_t{});
    case DType::kInt16: return f(int16_t{});
    case DType::kInt32: return f(int32_t{});
    case DType::kInt64: return f(int64_t{});
    case DType::kFloat16: return f(Half{});
    case DType::kBFloat16: return f(BFloat16{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
    case DType::kComplex64: return f(std::complex<float>{});
    default: return f(std::complex<double>{});
  }
}

// As with_dtype for the types kernels compute in: half and bfloat16 count as float (the caller converts).
template <class F>
decltype(auto) with_floating(DType t, F&& f) {
  if (t == DType::kFloat64) return f(double{});
  return f(float{});
}

// The type that arithmetic on `t` is done in: float for half and bfloat16, int64 for integers and bool.
constexpr DType compute_type(DType t) {
  if (is_reduced_floating(t)) return DType::kFloat32;
  return is_inexact(t) ? t : DType::kInt64;
}

inline char* at(const View& v, int64_t offset) { return static_cast<char*>(v.data) + offset * item_size(v.dtype); }

}  // namespace taeda::cpu
