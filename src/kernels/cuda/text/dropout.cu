#include "kernels/cuda/text/dropout.cuh"

namespace taeda::device {

#define TD_DROPOUT(type, S, T)                                      \
  TD_GLOBAL(dropout_##type##_any, DropoutArgs, dropout_kernel<S, T>) \
  TD_GLOBAL(dropout_backward_##type##_any, DropoutArgs, dropout_backward_kernel<S, T>)

TD_DROPOUT(f32, float, float)
TD_DROPOUT(f16, Half, float)
TD_DROPOUT(bf16, BFloat16, float)
TD_DROPOUT(f64, double, double)

}  // namespace taeda::device
