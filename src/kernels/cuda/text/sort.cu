#include "kernels/cuda/text/pick.cuh"
#include "kernels/cuda/text/row_order.cuh"
#include "kernels/cuda/text/sort.cuh"

namespace taeda::device {

TD_GLOBAL(sort_load_i64_any, SortArgs, sort_load_kernel<int64_t>)
TD_GLOBAL(sort_load_f64_any, SortArgs, sort_load_kernel<double>)
TD_GLOBAL(sort_merge_i64_any, SortArgs, sort_merge_kernel)
TD_GLOBAL(sort_store_u8_any, SortArgs, sort_store_kernel<uint8_t>)
TD_GLOBAL(sort_store_i16_any, SortArgs, sort_store_kernel<uint16_t>)
TD_GLOBAL(sort_store_i32_any, SortArgs, sort_store_kernel<uint32_t>)
TD_GLOBAL(sort_store_i64_any, SortArgs, sort_store_kernel<uint64_t>)
TD_GLOBAL(sort_pick_u8_any, SortArgs, sort_pick_kernel<uint8_t>)
TD_GLOBAL(sort_pick_i16_any, SortArgs, sort_pick_kernel<uint16_t>)
TD_GLOBAL(sort_pick_i32_any, SortArgs, sort_pick_kernel<uint32_t>)
TD_GLOBAL(sort_pick_i64_any, SortArgs, sort_pick_kernel<uint64_t>)
TD_GLOBAL(row_merge_i64_any, RowOrderArgs, row_merge_kernel<int64_t>)
TD_GLOBAL(row_merge_f64_any, RowOrderArgs, row_merge_kernel<double>)

}  // namespace taeda::device
