// Conversion between float and the 16-bit floating types, by vectors.
#include "kernels/cpu/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/convert_simd.cc"
#include "kernels/cpu/simd.h"

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

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(half_to_float);
HWY_EXPORT(float_to_half);
HWY_EXPORT(bfloat16_to_float);
HWY_EXPORT(float_to_bfloat16);

ConvertFn convert_fn_simd(DType to, DType from) {
  if (to == DType::kFloat32 && from == DType::kFloat16) return HWY_DYNAMIC_DISPATCH(half_to_float);
  if (to == DType::kFloat16 && from == DType::kFloat32) return HWY_DYNAMIC_DISPATCH(float_to_half);
  if (to == DType::kFloat32 && from == DType::kBFloat16)
    return HWY_DYNAMIC_DISPATCH(bfloat16_to_float);
  if (to == DType::kBFloat16 && from == DType::kFloat32)
    return HWY_DYNAMIC_DISPATCH(float_to_bfloat16);
  return nullptr;
}

}  // namespace taeda::cpu
#endif
