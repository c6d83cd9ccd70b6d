#include "kernels/cpu/gemv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemv.cc"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// `kRows` rows at a time share the loads of x and give the memory as many streams.
template <int kRows, class T>
void dot_block(float* y, const T* w, int64_t ld, int64_t k, const float* x) {
  using V = Vec<float>;
  constexpr int64_t kLanes = V::size();
  V even[kRows], odd[kRows];
  for (int r = 0; r < kRows; r++) even[r] = odd[r] = V(0.0f);
  int64_t j = 0;
  for (; j + 2 * kLanes <= k; j += 2 * kLanes) {
    const V x0 = load(x + j), x1 = load(x + j + kLanes);
    for (int r = 0; r < kRows; r++) {
      even[r] = fma(load(w + r * ld + j), x0, even[r]);
      odd[r] = fma(load(w + r * ld + j + kLanes), x1, odd[r]);
    }
  }
  for (int r = 0; r < kRows; r++) {
    const typename V::Tag d;
    float sum = hn::GetLane(hn::SumOfLanes(d, (even[r] + odd[r]).raw));
    for (int64_t i = j; i < k; i++) sum += static_cast<float>(w[r * ld + i]) * x[i];
    y[r] = sum;
  }
}

template <class T>
void dot_all(float* y, const void* matrix, int64_t ld, int64_t rows, int64_t k, const float* x) {
  const T* w = static_cast<const T*>(matrix);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) dot_block<4>(y + i, w + i * ld, ld, k, x);
  for (; i < rows; i++) dot_block<1>(y + i, w + i * ld, ld, k, x);
}

void dot_rows_any(DType dtype, float* y, const void* w, int64_t ld, int64_t rows, int64_t k,
                  const float* x) {
  if (dtype == DType::kBFloat16) return dot_all<BFloat16>(y, w, ld, rows, k, x);
  if (dtype == DType::kFloat16) return dot_all<Half>(y, w, ld, rows, k, x);
  dot_all<float>(y, w, ld, rows, k, x);
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(dot_rows_any);

void dot_rows(DType dtype, float* y, const void* w, int64_t ld, int64_t rows, int64_t k,
              const float* x) {
  HWY_DYNAMIC_DISPATCH(dot_rows_any)(dtype, y, w, ld, rows, k, x);
}

}  // namespace taeda::cpu
#endif
