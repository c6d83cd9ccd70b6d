// The kernels of reductions: reduce_NAME_TYPE_any takes elements in, join_NAME_TYPE_any combines the states
// of parts.
#include "kernels/cuda/text/reducers.cuh"

namespace taeda::device {

#define TD_REDUCTION(name, ...)                                      \
  TD_GLOBAL(reduce_##name##_any, ReduceArgs, reduce_kernel<__VA_ARGS__>) \
  TD_GLOBAL(join_##name##_any, ReduceArgs, join_kernel<__VA_ARGS__>)

using c64 = std::complex<float>;
using c128 = std::complex<double>;

TD_REDUCTION(sum_i64, Sum<int64_t>)
TD_REDUCTION(sum_f32, Sum<float>)
TD_REDUCTION(sum_f64, Sum<double>)
TD_REDUCTION(sum_c64, Sum<c64>)
TD_REDUCTION(sum_c128, Sum<c128>)
TD_REDUCTION(nansum_f32, Sum<float, true>)
TD_REDUCTION(nansum_f64, Sum<double, true>)
TD_REDUCTION(prod_i64, Product<int64_t>)
TD_REDUCTION(prod_f32, Product<float>)
TD_REDUCTION(prod_f64, Product<double>)
TD_REDUCTION(prod_c64, Product<c64>)
TD_REDUCTION(prod_c128, Product<c128>)
TD_REDUCTION(nonzero_i64, Nonzero<int64_t>)
TD_REDUCTION(nonzero_f64, Nonzero<double>)
TD_REDUCTION(nonzero_c128, Nonzero<c128>)
TD_REDUCTION(max_i64, Extreme<int64_t, true>)
TD_REDUCTION(max_f32, Extreme<float, true>)
TD_REDUCTION(max_f64, Extreme<double, true>)
TD_REDUCTION(min_i64, Extreme<int64_t, false>)
TD_REDUCTION(min_f32, Extreme<float, false>)
TD_REDUCTION(min_f64, Extreme<double, false>)
TD_REDUCTION(xor_i64, Xor<int64_t>)
TD_REDUCTION(xor_f64, Xor<double>)
TD_REDUCTION(var_f32, Moments<float, false>)
TD_REDUCTION(var_f64, Moments<double, false>)
TD_REDUCTION(std_f32, Moments<float, true>)
TD_REDUCTION(std_f64, Moments<double, true>)
TD_REDUCTION(norm_f32, NormSum<float>)
TD_REDUCTION(norm_f64, NormSum<double>)
TD_REDUCTION(norm_c64, NormSum<c64>)
TD_REDUCTION(norm_c128, NormSum<c128>)
TD_REDUCTION(maxnorm_f32, NormExtreme<float>)
TD_REDUCTION(maxnorm_f64, NormExtreme<double>)
TD_REDUCTION(maxnorm_c64, NormExtreme<c64>)
TD_REDUCTION(maxnorm_c128, NormExtreme<c128>)
TD_REDUCTION(logsumexp_f32, LogSumExp<float>)
TD_REDUCTION(logsumexp_f64, LogSumExp<double>)

}  // namespace taeda::device
