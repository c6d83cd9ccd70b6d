// What torch._foreach_norm and _foreach_max make of their lists.
#include "kernels/cuda/text/reduce_list.cuh"

namespace taeda::device {

#define TD_LISTED(name, ...)                                                      \
  TD_GLOBAL(reduce_##name##_list, ReduceListArgs, reduce_list_kernel<__VA_ARGS__>) \
  TD_GLOBAL(join_##name##_list, ReduceListArgs, join_list_kernel<__VA_ARGS__>)

TD_LISTED(norm_f32, NormSum<float>)
TD_LISTED(norm_f64, NormSum<double>)
TD_LISTED(maxnorm_f32, NormExtreme<float>)
TD_LISTED(maxnorm_f64, NormExtreme<double>)
TD_LISTED(max_i64, Extreme<int64_t, true>)
TD_LISTED(max_f32, Extreme<float, true>)
TD_LISTED(max_f64, Extreme<double, true>)

}  // namespace taeda::device
