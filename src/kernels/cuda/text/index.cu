// By an element's size: index_gather_TYPE_any, index_scatter_TYPE_any; by the type that is computed
// in: index_combine_TYPE_any.
#include "kernels/cuda/text/index.cuh"

namespace taeda::device {

TD_BY_SIZE(index_gather, IndexArgs, gather_kernel)
TD_BY_SIZE(index_scatter, IndexArgs, scatter_kernel)
TD_GLOBAL(check_bounds_i64_any, BoundsArgs, check_bounds_kernel)
TD_GLOBAL(index_combine_i64_any, IndexArgs, combine_kernel<int64_t>)
TD_GLOBAL(index_combine_f32_any, IndexArgs, combine_kernel<float>)
TD_GLOBAL(index_combine_f64_any, IndexArgs, combine_kernel<double>)
TD_GLOBAL(index_combine_c64_any, IndexArgs, combine_kernel<std::complex<float>>)
TD_GLOBAL(index_combine_c128_any, IndexArgs, combine_kernel<std::complex<double>>)

}  // namespace taeda::device
