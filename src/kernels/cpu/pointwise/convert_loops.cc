// Conversions among integers, from integers to bool and floats, from bool to integers, and from
// floats to integers below 64 bits: loops that the compiler vectorizes for each instruction set.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/pointwise/convert.h"
#include "kernels/cpu/pointwise/convert_value.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/convert_loops.cc"
#include "kernels/cpu/simd/simd.h"

#pragma GCC optimize("O3")

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// y[i] = x[i]: of integers, what does not fit is cut off at the top.
template <class To, class From>
void cast(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = convert_value<To>(x[i]);
}

// By 32 bits where a block's numbers all fit; else as `rest` does.
template <class To, class From, void (*rest)(void*, const void*, int64_t)>
void truncate(void* dst, const void* src, int64_t n) {
  constexpr int64_t kBlock = 1024;
  constexpr From kLimit = From(0x7fffff00);  // a float
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    std::conditional_t<sizeof(From) == 8, int64_t, int32_t> outside = 0;
#pragma GCC ivdep
    for (int64_t i = begin; i < end; i++) {
      const bool fits = std::abs(x[i]) < kLimit;
      outside |= !fits;
      y[i] = static_cast<To>(static_cast<int32_t>(fits ? x[i] : From(0)));
    }
    if (outside) rest(y + begin, x + begin, end - begin);
  }
}

using Function = Conversion::Function;

template <class To, class From>
Function integer() {
  using Plain = std::make_unsigned_t<From>;  // a sign counts only where the number gets longer
  if constexpr (sizeof(From) >= sizeof(To))
    return cast<To, Plain>;
  else
    return cast<To, From>;
}
template <class From>
Function from_integer(DType to) {
  if (to == DType::kBool) return cast<bool, std::make_unsigned_t<From>>;
  if (to == DType::kFloat32) return std::is_same_v<From, uint64_t> ? nullptr : cast<float, From>;
  if (to == DType::kFloat64)
    return (std::is_signed_v<From> && sizeof(From) > 1) || sizeof(From) == 8 ? nullptr
                                                                             : cast<double, From>;
  if (!is_integral(to)) return nullptr;
  switch (item_size(to)) {
    case 1:
      return integer<uint8_t, From>();
    case 2:
      return integer<uint16_t, From>();
    case 4:
      return integer<uint32_t, From>();
    default:
      return integer<uint64_t, From>();
  }
}

// Any byte but 0 is true.
template <class To>
void cast_bool(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const uint8_t* x = static_cast<const uint8_t*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = x[i] != 0;
}
Function from_bool(DType to) {
  if (!is_integral(to)) return nullptr;
  switch (item_size(to)) {
    case 1:
      return cast_bool<uint8_t>;
    case 2:
      return cast_bool<uint16_t>;
    case 4:
      return cast_bool<uint32_t>;
    default:
      return cast_bool<uint64_t>;
  }
}

template <class From>
Function from_floating(DType to) {
  switch (to) {
    case DType::kUInt8:
      return truncate<uint8_t, From, scalar::convert<uint8_t, From>>;
    case DType::kInt8:
      return truncate<int8_t, From, scalar::convert<int8_t, From>>;
    case DType::kInt16:
      return truncate<int16_t, From, scalar::convert<int16_t, From>>;
    case DType::kInt32:
      return truncate<int32_t, From, scalar::convert<int32_t, From>>;
    case DType::kUInt16:
      return truncate<uint16_t, From, scalar::convert<uint16_t, From>>;
    case DType::kUInt32:
      return truncate<uint32_t, From, scalar::convert<uint32_t, From>>;
    default:
      return nullptr;
  }
}

Function loop(DType to, DType from) {
  switch (from) {
    case DType::kBool:
      return from_bool(to);
    case DType::kUInt8:
      return from_integer<uint8_t>(to);
    case DType::kInt8:
      return from_integer<int8_t>(to);
    case DType::kUInt16:
      return from_integer<uint16_t>(to);
    case DType::kInt16:
      return from_integer<int16_t>(to);
    case DType::kUInt32:
      return from_integer<uint32_t>(to);
    case DType::kInt32:
      return from_integer<int32_t>(to);
    case DType::kUInt64:
      return from_integer<uint64_t>(to);
    case DType::kInt64:
      return from_integer<int64_t>(to);
    case DType::kFloat32:
      return from_floating<float>(to);
    case DType::kFloat64:
      return from_floating<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(loop);
Conversion::Function convert_loop(DType to, DType from) {
  return HWY_DYNAMIC_DISPATCH(loop)(to, from);
}
}  // namespace taeda::cpu
#endif
