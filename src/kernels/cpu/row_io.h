// Moving rows of elements between layouts and element types: how kernels that compute in one type
// on dense blocks read and write tensors of any type and any stride.
#pragma once

#include <complex>
#include <cstdint>

#include "kernels/view.h"
#include "taeda/dtype.h"

namespace taeda::cpu {

// dst[i * dst_stride] = src[i * src_stride] converted, for i < n. Strides in elements.
void convert_row(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type,
                 int64_t src_stride, int64_t n);

// Calls f(T{}) with the C++ type of `t`.
template <class F>
decltype(auto) with_dtype(DType t, F&& f) {
  switch (t) {
    case DType::kBool:
      return f(bool{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kFloat16:
      return f(Half{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

// As with_dtype for the types kernels compute in: half and bfloat16 count as float (the caller
// converts).
template <class F>
decltype(auto) with_floating(DType t, F&& f) {
  if (t == DType::kFloat64) return f(double{});
  return f(float{});
}

// The type that arithmetic on `t` is done in: float for half and bfloat16, int64 for integers and
// bool.
constexpr DType compute_type(DType t) {
  if (is_reduced_floating(t)) return DType::kFloat32;
  return is_inexact(t) ? t : DType::kInt64;
}

// Calls f(T{}) with a type as wide as an element: moving data needs no more.
struct Bytes16 {
  uint64_t low, high;
};
template <class F>
decltype(auto) with_width(DType t, F&& f) {
  switch (item_size(t)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Bytes16{});
  }
}

inline char* at(const View& v, int64_t offset) {
  return static_cast<char*>(v.data) + offset * item_size(v.dtype);
}

}  // namespace taeda::cpu
