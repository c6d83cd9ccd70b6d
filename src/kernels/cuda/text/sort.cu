#include "kernels/cuda/text/sort.cuh"

namespace taeda::device {

TD_GLOBAL(sort_load_i64_any, SortArgs, sort_load_kernel<int64_t>)
TD_GLOBAL(sort_load_f64_any, SortArgs, sort_load_kernel<double>)
TD_GLOBAL(sort_merge_i64_any, SortArgs, sort_merge_kernel)
TD_GLOBAL(sort_store_u8_any, SortArgs, sort_store_kernel<uint8_t>)
TD_GLOBAL(sort_store_i16_any, SortArgs, sort_store_kernel<uint16_t>)
TD_GLOBAL(sort_store_i32_any, SortArgs, sort_store_kernel<uint32_t>)
TD_GLOBAL(sort_store_i64_any, SortArgs, sort_store_kernel<uint64_t>)

}  // namespace taeda::device
