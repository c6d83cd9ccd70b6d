// By an element's size: index_read_TYPE_any, index_write_TYPE_any; by the type that is computed in:
// index_runs_TYPE_any, index_partials_TYPE_any.
#include "kernels/cuda/text/index_runs.cuh"
#include "kernels/cuda/text/indexing.cuh"

namespace taeda::device {

TD_BY_SIZE(index_read, IndexingArgs, index_read_kernel)
TD_BY_SIZE(index_write, IndexingArgs, index_write_kernel)
TD_GLOBAL(index_offsets_i64_any, IndexingArgs, index_offsets_kernel)
TD_GLOBAL(index_last_i64_any, IndexRunsArgs, index_last_kernel)

#define TD_RUNS(type, T)                                                                \
  TD_GLOBAL(index_runs_##type##_any, IndexRunsArgs, combine_pieces<T, SliceElement<T>>) \
  TD_GLOBAL(index_partials_##type##_any, IndexRunsArgs, combine_partials<T, SliceElement<T>>)
TD_RUNS(i64, int64_t)
TD_RUNS(f32, float)
TD_RUNS(f64, double)
TD_RUNS(c64, std::complex<float>)
TD_RUNS(c128, std::complex<double>)

}  // namespace taeda::device
