#include "kernels/cuda/text/norm.cuh"

namespace taeda::device {

#define TD_NORM(type, T)                                                        \
  TD_GLOBAL(norm_##type##_any, NormArgs, norm_kernel<T>)                        \
  TD_GLOBAL(norm_backward_##type##_any, NormArgs, norm_backward_kernel<T>)      \
  TD_GLOBAL(norm_sums_##type##_any, NormSumsArgs, norm_sums_kernel<T>)          \
  TD_GLOBAL(norm_sums_join_##type##_any, NormSumsArgs, norm_sums_join_kernel<T>) \
  TD_GLOBAL(norm_channel_##type##_any, ChannelArgs, channel_kernel<T>)          \
  TD_GLOBAL(norm_apply_##type##_any, ApplyArgs, apply_kernel<T>)

TD_NORM(f32, float)
TD_NORM(f64, double)

}  // namespace taeda::device
