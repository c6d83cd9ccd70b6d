#include "kernels/cpu/pointwise/add_steps.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/add_steps.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
void add(T* out, int64_t n, double from, double step, int64_t first, int64_t direction,
         bool is_fused) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // the other sets round products
  using V = Vec<double>;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<T, decltype(wide)> narrow;
  const V start(from), by(step), more(static_cast<double>(direction * V::size()));
  V at = V(hn::Iota(wide, 0)) * V(static_cast<double>(direction)) + V(static_cast<double>(first));
  for (; i + V::size() <= n; i += V::size(), at = at + more) {
    const V sum = is_fused ? fma(at, by, start) : at * by + start;
    if constexpr (std::is_same_v<T, double>)
      store(out + i, sum);
    else
      hn::StoreU(hn::DemoteTo(narrow, sum.raw), narrow, out + i);
  }
#endif
  for (; i < n; i++) {
    const auto k = static_cast<double>(first + i * direction);
    out[i] = static_cast<T>(is_fused ? std::fma(k, step, from) : from + k * step);
  }
}

void add_floats(float* out, int64_t n, double from, double step, int64_t first, int64_t direction,
                bool is_fused) {
  add(out, n, from, step, first, direction, is_fused);
}
void add_doubles(double* out, int64_t n, double from, double step, int64_t first, int64_t direction,
                 bool is_fused) {
  add(out, n, from, step, first, direction, is_fused);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_doubles);

void add_steps(float* out, int64_t n, double from, double step, int64_t first, int64_t direction,
               bool is_fused) {
  HWY_DYNAMIC_DISPATCH(add_floats)(out, n, from, step, first, direction, is_fused);
}
void add_steps(double* out, int64_t n, double from, double step, int64_t first, int64_t direction,
               bool is_fused) {
  HWY_DYNAMIC_DISPATCH(add_doubles)(out, n, from, step, first, direction, is_fused);
}

}  // namespace taeda::cpu
#endif
