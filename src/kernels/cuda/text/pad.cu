#include "kernels/cuda/text/pad.cuh"

namespace taeda::device {

TD_BY_SIZE(pad, PadArgs, pad_kernel)
TD_GLOBAL(pad_backward_f32_any, PadArgs, pad_backward_kernel<float>)
TD_GLOBAL(pad_backward_f64_any, PadArgs, pad_backward_kernel<double>)
TD_GLOBAL(pad_backward_c64_any, PadArgs, pad_backward_kernel<std::complex<float>>)
TD_GLOBAL(pad_backward_c128_any, PadArgs, pad_backward_kernel<std::complex<double>>)

}  // namespace taeda::device
