#include "kernels/cuda/text/scan.cuh"

namespace taeda::device {

#define TD_SCAN(type, T)                                   \
  TD_GLOBAL(cumsum_##type##_any, RowArgs, cumsum_kernel<T>) \
  TD_GLOBAL(cumprod_##type##_any, RowArgs, cumprod_kernel<T>)
#define TD_EXTREMES(type, T)                                             \
  TD_GLOBAL(cummax_##type##_any, RowArgs, cumextreme_kernel<T, true>)    \
  TD_GLOBAL(cummin_##type##_any, RowArgs, cumextreme_kernel<T, false>)

TD_SCAN(i64, int64_t)
TD_SCAN(f32, float)
TD_SCAN(f64, double)
TD_SCAN(c64, std::complex<float>)
TD_SCAN(c128, std::complex<double>)
TD_EXTREMES(i64, int64_t)
TD_EXTREMES(f32, float)
TD_EXTREMES(f64, double)

}  // namespace taeda::device
