// Conversions by vectors: between float and the 16-bit floating types, from bfloat16 to double,
// from int32 to bfloat16, from float to int64 and to the 8-bit floating types, from floats to bool,
// and from bool to float.
#include "kernels/cpu/pointwise/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/convert_simd.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

template <class To, class From>
void convert_dense(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i));
  for (; i < n; i++) y[i] = To(static_cast<float>(x[i]));
}

void half_to_float(void* y, const void* x, int64_t n) { convert_dense<float, Half>(y, x, n); }
void float_to_half(void* y, const void* x, int64_t n) { convert_dense<Half, float>(y, x, n); }
void bfloat16_to_float(void* y, const void* x, int64_t n) {
  convert_dense<float, BFloat16>(y, x, n);
}
void float_to_bfloat16(void* y, const void* x, int64_t n) {
  convert_dense<BFloat16, float>(y, x, n);
}
void bfloat16_to_double(void* dst, const void* src, int64_t n) {
  double* y = static_cast<double*>(dst);
  const BFloat16* x = static_cast<const BFloat16*>(src);
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> floats;
  const hn::RebindToUnsigned<decltype(floats)> words;
  const hn::Rebind<uint16_t, decltype(d)> shorts;
  constexpr int64_t kLanes = Vec<double>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto bits = hn::LoadU(shorts, reinterpret_cast<const uint16_t*>(x + i));
    const auto single = hn::BitCast(floats, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
    hn::StoreU(hn::PromoteTo(d, single), d, y + i);
  }
  for (; i < n; i++) y[i] = static_cast<double>(static_cast<float>(x[i]));
}
// By way of float, and rounded like it (simd.h), but without NaN.
void int32_to_bfloat16(void* dst, const void* src, int64_t n) {
  BFloat16* y = static_cast<BFloat16*>(dst);
  const int32_t* x = static_cast<const int32_t*>(src);
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<uint16_t, decltype(d)> shorts;
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto u = hn::BitCast(words, hn::ConvertTo(d, hn::LoadU(integers, x + i)));
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(words, 1));
    const auto rounded = hn::Add(u, hn::Add(odd, hn::Set(words, 0x7fff)));
    hn::StoreU(hn::TruncateTo(shorts, hn::ShiftRight<16>(rounded)), shorts,
               reinterpret_cast<uint16_t*>(y + i));
  }
  for (; i < n; i++) y[i] = BFloat16(static_cast<float>(x[i]));
}

// What does not fit becomes the smallest int64, as in convert.cc.
void float_to_int64(void* dst, const void* src, int64_t n) {
  int64_t* y = static_cast<int64_t*>(dst);
  const float* x = static_cast<const float*>(src);
  const hn::ScalableTag<int64_t> integers;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  constexpr float kLimit = 9223372036854775808.0f;
  constexpr int64_t kLanes = Vec<double>::size();
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX3  // one instruction
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::Vec<decltype(integers)>{_mm512_cvttps_epi64(hn::LoadU(narrow, x + i).raw)},
               integers, y + i);
#endif
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = hn::PromoteTo(wide, hn::LoadU(narrow, x + i));
    const auto fits = hn::And(hn::Ge(v, hn::Set(wide, -kLimit)), hn::Lt(v, hn::Set(wide, kLimit)));
    const auto whole = hn::ConvertTo(integers, hn::IfThenElseZero(fits, v));
    const auto lowest = hn::Set(integers, std::numeric_limits<int64_t>::min());
    hn::StoreU(hn::IfThenElse(hn::RebindMask(integers, fits), whole, lowest), integers, y + i);
  }
  for (; i < n; i++)
    y[i] = x[i] >= -kLimit && x[i] < kLimit ? static_cast<int64_t>(x[i])
                                            : std::numeric_limits<int64_t>::min();
}

template <class T>
void convert_to_bool(void* dst, const void* src, int64_t n) {
  bool* y = static_cast<bool*>(dst);
  const T* x = static_cast<const T*>(src);
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i) != 0);
  for (; i < n; i++) y[i] = x[i] != 0;
}
void float_to_bool(void* y, const void* x, int64_t n) { convert_to_bool<float>(y, x, n); }
void double_to_bool(void* y, const void* x, int64_t n) { convert_to_bool<double>(y, x, n); }

void bool_to_float(void* dst, const void* src, int64_t n) {
  float* y = static_cast<float*>(dst);
  const uint8_t* x = static_cast<const uint8_t*>(src);
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  constexpr int64_t kLanes = Vec<float>::size();
  const auto none = hn::Zero(words);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto is_false = hn::Eq(hn::PromoteTo(words, hn::LoadU(bytes, x + i)), none);
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, is_false), hn::Set(d, 1.0f)), d, y + i);
  }
  for (; i < n; i++) y[i] = x[i] != 0;
}

// encode_float8 (float8.h).
template <Float8Format kFormat>
void convert_to_float8(Float8<kFormat>* y, const void* src, int64_t n) {
  const float* x = static_cast<const float*>(src);
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::RebindToSigned<decltype(d)> numbers;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  constexpr int kDropped = 23 - kFormat.mantissa;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kFormat.bias) << 23;
  constexpr uint32_t kUnit = static_cast<uint32_t>(127 + 24 - kFormat.bias - kFormat.mantissa)
                             << 23;
  constexpr uint32_t kShift = (1u << (kDropped - 1)) - 1 - kRebias;
  const auto number = [&](uint32_t bits) { return hn::Set(numbers, static_cast<int32_t>(bits)); };
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto u = hn::BitCast(words, hn::LoadU(d, x + i));
    const auto magnitude = hn::And(u, hn::Set(words, 0x7fffffffu));
    const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, hn::Set(words, kUnit)));
    const auto denormal = hn::Sub(hn::BitCast(words, sum), hn::Set(words, kUnit));
    const auto odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(words, 1u));
    const auto normal =
        hn::ShiftRight<kDropped>(hn::Add(hn::Add(magnitude, odd), hn::Set(words, kShift)));
    const auto size = hn::BitCast(numbers, magnitude);
    auto code = hn::IfThenElse(hn::Lt(size, number(kRebias + (1u << 23))),
                               hn::BitCast(numbers, denormal), hn::BitCast(numbers, normal));
    code = hn::IfThenElse(hn::Gt(code, number(kFormat.largest)), number(kFormat.overflow), code);
    code = hn::IfThenElse(hn::Gt(size, number(0x7f800000u)), number(kFormat.nan), code);
    auto sign = hn::BitCast(numbers, hn::And(hn::ShiftRight<24>(u), hn::Set(words, 0x80u)));
    if constexpr (kFormat.fnuz) sign = hn::IfThenZeroElse(hn::Eq(code, number(0)), sign);
    hn::StoreU(hn::DemoteTo(bytes, hn::Or(code, sign)), bytes, reinterpret_cast<uint8_t*>(y + i));
  }
  for (; i < n; i++) y[i] = Float8<kFormat>(x[i]);
}
void float_to_float8_e4m3fn(void* y, const void* x, int64_t n) {
  convert_to_float8(static_cast<Float8E4M3FN*>(y), x, n);
}
void float_to_float8_e5m2(void* y, const void* x, int64_t n) {
  convert_to_float8(static_cast<Float8E5M2*>(y), x, n);
}
void float_to_float8_e4m3fnuz(void* y, const void* x, int64_t n) {
  convert_to_float8(static_cast<Float8E4M3FNUZ*>(y), x, n);
}
void float_to_float8_e5m2fnuz(void* y, const void* x, int64_t n) {
  convert_to_float8(static_cast<Float8E5M2FNUZ*>(y), x, n);
}
// The exponent, rounded: half of the smallest normal number rounds down, NaN stays 255.
void float_to_float8_e8m0fnu(void* dst, const void* src, int64_t n) {
  Float8E8M0* y = static_cast<Float8E8M0*>(dst);
  const float* x = static_cast<const float*>(src);
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> numbers;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto half = hn::Set(numbers, 1 << 22);
  constexpr int64_t kLanes = Vec<float>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto magnitude = hn::BitCast(numbers, hn::Abs(hn::LoadU(d, x + i)));
    const auto rounded = hn::Add(hn::Min(magnitude, hn::Set(numbers, 0x7f800000)), half);
    const auto down = hn::VecFromMask(numbers, hn::Eq(magnitude, half));  // -1
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<23>(hn::Add(rounded, down))), bytes,
               reinterpret_cast<uint8_t*>(y + i));
  }
  for (; i < n; i++) y[i] = Float8E8M0(x[i]);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(half_to_float);
HWY_EXPORT(float_to_half);
HWY_EXPORT(bfloat16_to_float);
HWY_EXPORT(float_to_bfloat16);
HWY_EXPORT(bfloat16_to_double);
HWY_EXPORT(int32_to_bfloat16);
HWY_EXPORT(float_to_int64);
HWY_EXPORT(bool_to_float);
HWY_EXPORT(float_to_bool);
HWY_EXPORT(double_to_bool);
HWY_EXPORT(float_to_float8_e4m3fn);
HWY_EXPORT(float_to_float8_e5m2);
HWY_EXPORT(float_to_float8_e4m3fnuz);
HWY_EXPORT(float_to_float8_e5m2fnuz);
HWY_EXPORT(float_to_float8_e8m0fnu);

Conversion::Function convert_simd(DType to, DType from) {
  if (to == DType::kFloat32 && from == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(half_to_float);
  if (to == DType::kFloat16 && from == DType::kFloat32) return HWY_DYNAMIC_DISPATCH(float_to_half);
  if (to == DType::kFloat32 && from == DType::kBFloat16)
    return HWY_DYNAMIC_DISPATCH(bfloat16_to_float);
  if (to == DType::kBFloat16 && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_bfloat16);
  if (to == DType::kFloat64 && from == DType::kBFloat16)
    return HWY_DYNAMIC_DISPATCH(bfloat16_to_double);
  if (to == DType::kBFloat16 && from == DType::kInt32)
    return HWY_DYNAMIC_DISPATCH(int32_to_bfloat16);
  if (to == DType::kInt64 && from == DType::kFloat32) return HWY_DYNAMIC_DISPATCH(float_to_int64);
  if (to == DType::kFloat32 && from == DType::kBool) return HWY_DYNAMIC_DISPATCH(bool_to_float);
  if (to == DType::kBool && from == DType::kFloat32) return HWY_DYNAMIC_DISPATCH(float_to_bool);
  if (to == DType::kBool && from == DType::kFloat64) return HWY_DYNAMIC_DISPATCH(double_to_bool);
  if (to == DType::kFloat8E4M3FN && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_float8_e4m3fn);
  if (to == DType::kFloat8E5M2 && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_float8_e5m2);
  if (to == DType::kFloat8E4M3FNUZ && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_float8_e4m3fnuz);
  if (to == DType::kFloat8E5M2FNUZ && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_float8_e5m2fnuz);
  if (to == DType::kFloat8E8M0FNU && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_float8_e8m0fnu);
  return nullptr;
}

}  // namespace taeda::cpu
#endif
