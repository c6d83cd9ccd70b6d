// Moving rows of elements between layouts and element types: how kernels that compute in one type
// on dense blocks read and write tensors of any type and any stride.
#pragma once

#include <complex>
#include <cstdint>

#include "core/with_dtype.h"
#include "kernels/view.h"
#include "taeda/dtype.h"

namespace taeda::cpu {

// dst[i * dst_stride] = src[i * src_stride] converted, for i < n. Strides in elements.
void convert_row(void* dst, DType dst_type, int64_t dst_stride, const void* src, DType src_type,
                 int64_t src_stride, int64_t n);

// The same for the dense elements of a sum, product or scan that has a result of `result`: floats
// whose sum is an integer become of that type first, which cuts off what does not fit.
void convert_summand(void* dst, DType compute, int64_t dst_stride, const void* src, DType src_type,
                     int64_t src_stride, int64_t n, DType result);

// The type that reductions and scans of `t` calculate in: int64 for integers and bool.
constexpr DType compute_type(DType t) {
  return is_inexact(t) ? dtype_info(t).compute : DType::kInt64;
}
using ComputeNumbers = Join<Types<int64_t>, WideInexact>;  // the types it gives

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
