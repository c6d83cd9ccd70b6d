// By an element's size: index_read_TYPE_any, index_write_TYPE_any; by the type that is computed in:
// index_runs_TYPE_any.
#include "kernels/cuda/text/index_runs.cuh"
#include "kernels/cuda/text/indexing.cuh"

namespace taeda::device {

TD_BY_SIZE(index_read, IndexingArgs, index_read_kernel)
TD_BY_SIZE(index_write, IndexingArgs, index_write_kernel)
TD_GLOBAL(index_offsets_i64_any, IndexingArgs, index_offsets_kernel)
TD_GLOBAL(index_last_i64_any, IndexRunsArgs, index_last_kernel)

TD_GLOBAL(index_runs_i64_any, IndexRunsArgs, index_runs_kernel<int64_t>)
TD_GLOBAL(index_runs_f32_any, IndexRunsArgs, index_runs_kernel<float>)
TD_GLOBAL(index_runs_f64_any, IndexRunsArgs, index_runs_kernel<double>)
TD_GLOBAL(index_runs_c64_any, IndexRunsArgs, index_runs_kernel<std::complex<float>>)
TD_GLOBAL(index_runs_c128_any, IndexRunsArgs, index_runs_kernel<std::complex<double>>)

}  // namespace taeda::device
