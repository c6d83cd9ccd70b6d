#include "kernels/cuda/text/unfold.cuh"

namespace taeda::device {

TD_BY_SIZE(im2col, UnfoldArgs, im2col_kernel)
TD_GLOBAL(col2im_f32_any, UnfoldArgs, col2im_kernel<float>)
TD_GLOBAL(col2im_f64_any, UnfoldArgs, col2im_kernel<double>)
TD_GLOBAL(col2im_c64_any, UnfoldArgs, col2im_kernel<std::complex<float>>)
TD_GLOBAL(col2im_c128_any, UnfoldArgs, col2im_kernel<std::complex<double>>)

}  // namespace taeda::device
