#include "kernels/cuda/text/softmax.cuh"

namespace taeda::device {

#define TD_SOFTMAX(type, T)                                                               \
  TD_GLOBAL(softmax_##type##_any, RowArgs, softmax_kernel<T, false>)                        \
  TD_GLOBAL(log_softmax_##type##_any, RowArgs, softmax_kernel<T, true>)                     \
  TD_GLOBAL(softmax_backward_##type##_any, RowArgs, softmax_backward_kernel<T, false>)      \
  TD_GLOBAL(log_softmax_backward_##type##_any, RowArgs, softmax_backward_kernel<T, true>)

TD_SOFTMAX(f32, float)
TD_SOFTMAX(f64, double)

}  // namespace taeda::device
