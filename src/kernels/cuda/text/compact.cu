#include "kernels/cuda/text/compact.cuh"

namespace taeda::device {

TD_GLOBAL(compact_count_i64_any, CompactArgs, compact_count_kernel)
TD_GLOBAL(compact_starts_i64_any, CompactArgs, compact_starts_kernel)
TD_GLOBAL(compact_nonzero_i64_any, CompactArgs, compact_nonzero_kernel)
TD_BY_SIZE(compact_select, CompactArgs, compact_select_kernel)
TD_BY_SIZE(compact_scatter, CompactArgs, compact_scatter_kernel)

}  // namespace taeda::device
