#include "kernels/cuda/text/loss.cuh"

namespace taeda::device {

#define TD_LOSS(type, T)                                                           \
  TD_GLOBAL(cross_entropy_##type##_any, CrossEntropyArgs, cross_entropy_kernel<T>) \
  TD_GLOBAL(cross_entropy_backward_##type##_any, CrossEntropyArgs,                 \
            cross_entropy_backward_kernel<T>)                                      \
  TD_GLOBAL(binary_cross_entropy_##type##_any, BinaryCrossEntropyArgs,             \
            binary_cross_entropy_kernel<T>)

TD_LOSS(f32, float)
TD_LOSS(f64, double)

}  // namespace taeda::device
