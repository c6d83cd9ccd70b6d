#include "kernels/cuda/text/fft.cuh"

namespace taeda::device {

TD_GLOBAL(fft_f32_any, FftArgs, fft_kernel<float>)
TD_GLOBAL(fft_f64_any, FftArgs, fft_kernel<double>)

}  // namespace taeda::device
