#include "kernels/cuda/text/search.cuh"

namespace taeda::device {

TD_GLOBAL(search_i64_any, SearchArgs, search_kernel<int64_t>)
TD_GLOBAL(search_f64_any, SearchArgs, search_kernel<double>)
TD_GLOBAL(histogram_bins_f32_any, BinsArgs, histogram_bins_kernel<float>)
TD_GLOBAL(histogram_bins_f64_any, BinsArgs, histogram_bins_kernel<double>)
TD_GLOBAL(histogram_f32_any, HistogramArgs, histogram_kernel<float>)
TD_GLOBAL(histogram_f64_any, HistogramArgs, histogram_kernel<double>)

}  // namespace taeda::device
