#include "kernels/cpu/index/combine_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index/combine_rows.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T, Reduce kHow>
void combine(void* to, const void* from, int64_t n) {
  using V = Vec<T>;
  T* const y = static_cast<T*>(to);
  const T* const x = static_cast<const T*>(from);
  const auto both = [](V a, V b) HWY_ATTR {
    if constexpr (kHow == Reduce::kSum) return a + b;
    if constexpr (kHow == Reduce::kProd) return a * b;
    if constexpr (kHow == Reduce::kMin) return min(b, a);
    if constexpr (kHow == Reduce::kMax) return max(b, a);
  };
  int64_t i = 0;
  for (; i + V::size() <= n; i += V::size()) store(y + i, both(load(y + i), load(x + i)));
  if (i < n) store_n(y + i, both(load_n(y + i, n - i), load_n(x + i, n - i)), n - i);
}

template <class T>
CombineRows chosen(Reduce how) {
  switch (how) {
    case Reduce::kSum:
      return combine<T, Reduce::kSum>;
    case Reduce::kProd:
      return combine<T, Reduce::kProd>;
    case Reduce::kMin:
      return combine<T, Reduce::kMin>;
    case Reduce::kMax:
      return combine<T, Reduce::kMax>;
    default:
      return nullptr;
  }
}

}  // namespace

CombineRows combine_of_target(DType dtype, Reduce how) {
  if (dtype == DType::kFloat32) return chosen<float>(how);
  return dtype == DType::kFloat64 ? chosen<double>(how) : nullptr;
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(combine_of_target);
CombineRows combine_rows(DType dtype, Reduce how) {
  return HWY_DYNAMIC_DISPATCH(combine_of_target)(dtype, how);
}

}  // namespace taeda::cpu
#endif
