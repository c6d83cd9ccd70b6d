#include "kernels/cuda/text/unfold.cuh"

namespace taeda::device {

TD_GLOBAL(im2col_u8_any, UnfoldArgs, im2col_kernel<uint8_t>)
TD_GLOBAL(im2col_i16_any, UnfoldArgs, im2col_kernel<uint16_t>)
TD_GLOBAL(im2col_i32_any, UnfoldArgs, im2col_kernel<uint32_t>)
TD_GLOBAL(im2col_i64_any, UnfoldArgs, im2col_kernel<uint64_t>)
TD_GLOBAL(im2col_c128_any, UnfoldArgs, im2col_kernel<Unit16>)
TD_GLOBAL(col2im_f32_any, UnfoldArgs, col2im_kernel<float>)
TD_GLOBAL(col2im_f64_any, UnfoldArgs, col2im_kernel<double>)
TD_GLOBAL(col2im_c64_any, UnfoldArgs, col2im_kernel<std::complex<float>>)
TD_GLOBAL(col2im_c128_any, UnfoldArgs, col2im_kernel<std::complex<double>>)

}  // namespace taeda::device
