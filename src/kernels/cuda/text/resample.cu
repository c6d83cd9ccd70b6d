#include "kernels/cuda/text/resample.cuh"

namespace taeda::device {

TD_GLOBAL(resample_f16_any, ResampleArgs<float>, resample_kernel<Forward, Half>)
TD_GLOBAL(resample_bf16_any, ResampleArgs<float>, resample_kernel<Forward, BFloat16>)
TD_GLOBAL(resample_f32_any, ResampleArgs<float>, resample_kernel<Forward, float>)
TD_GLOBAL(resample_f64_any, ResampleArgs<double>, resample_kernel<Forward, double>)
TD_GLOBAL(resample_backward_f32_any, ResampleArgs<float>, resample_kernel<Adjoint, AnyType>)
TD_GLOBAL(resample_backward_f64_any, ResampleArgs<double>, resample_kernel<Adjoint, AnyType>)
TD_GLOBAL(resample_nearest_u8_any, ResampleArgs<float>, resample_nearest_kernel<uint8_t>)
TD_GLOBAL(resample_nearest_i16_any, ResampleArgs<float>, resample_nearest_kernel<uint16_t>)
TD_GLOBAL(resample_nearest_i32_any, ResampleArgs<float>, resample_nearest_kernel<uint32_t>)
TD_GLOBAL(resample_nearest_i64_any, ResampleArgs<float>, resample_nearest_kernel<uint64_t>)
TD_GLOBAL(resample_bytes_u8_any, ResampleBytesArgs, resample_bytes_kernel)

}  // namespace taeda::device
