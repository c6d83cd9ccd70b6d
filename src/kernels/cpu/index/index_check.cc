#include "kernels/cpu/index/index_common.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index/index_check.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// The sign bits say it: k of k < 0, size - 1 - k of k >= size. Each index is read once: what is
// copied is what was checked.
template <bool kCopies>
bool check(int64_t* to, const int64_t* index, int64_t n, int64_t size) {
  const hn::ScalableTag<int64_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, size - 1);
  auto outside = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto k = hn::LoadU(d, index + i);
    if constexpr (kCopies) hn::StoreU(k, d, to + i);
    outside = hn::Or(outside, hn::Or(k, hn::Sub(last, k)));
  }
  bool inside = hn::AllFalse(d, hn::Lt(outside, hn::Zero(d)));
  for (; i < n; i++) {
    const int64_t k = index[i];
    if constexpr (kCopies) to[i] = k;
    inside &= k >= 0 && k < size;
  }
  return inside;
}

bool are_inside(const int64_t* index, int64_t n, int64_t size) {
  return check<false>(nullptr, index, n, size);
}
bool copy_checked(int64_t* to, const int64_t* index, int64_t n, int64_t size) {
  return check<true>(to, index, n, size);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(are_inside);
HWY_EXPORT(copy_checked);
bool all_inside(const int64_t* index, int64_t n, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(are_inside)(index, n, size);
}
bool copy_if_inside(int64_t* to, const int64_t* index, int64_t n, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(copy_checked)(to, index, n, size);
}

}  // namespace taeda::cpu
#endif
