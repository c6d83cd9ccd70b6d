// By an element's size: index_gather_TYPE_any, index_scatter_TYPE_any; by the type that is computed
// in: index_combine_TYPE_any.
#include "kernels/cuda/text/index.cuh"

namespace taeda::device {

#define TD_MOVE(type, S)                                       \
  TD_GLOBAL(index_gather_##type##_any, IndexArgs, gather_kernel<S>) \
  TD_GLOBAL(index_scatter_##type##_any, IndexArgs, scatter_kernel<S>)
TD_MOVE(u8, uint8_t)
TD_MOVE(i16, uint16_t)
TD_MOVE(i32, uint32_t)
TD_MOVE(i64, uint64_t)
TD_MOVE(c128, Bytes16)

TD_GLOBAL(index_combine_i64_any, IndexArgs, combine_kernel<int64_t>)
TD_GLOBAL(index_combine_f32_any, IndexArgs, combine_kernel<float>)
TD_GLOBAL(index_combine_f64_any, IndexArgs, combine_kernel<double>)
TD_GLOBAL(index_combine_c64_any, IndexArgs, combine_kernel<std::complex<float>>)
TD_GLOBAL(index_combine_c128_any, IndexArgs, combine_kernel<std::complex<double>>)

}  // namespace taeda::device
