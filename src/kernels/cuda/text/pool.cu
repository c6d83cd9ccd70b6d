#include "kernels/cuda/text/avg_pool.cuh"
#include "kernels/cuda/text/fractional_pool.cuh"
#include "kernels/cuda/text/pool.cuh"

namespace taeda::device {

#define TD_POOL(type, S, T)                                                         \
  TD_GLOBAL(max_pool_##type##_any, PoolArgs, max_pool_kernel<S, T>)                 \
  TD_GLOBAL(max_pool_scatter_##type##_any, PoolArgs, max_pool_scatter_kernel<S, T>) \
  TD_GLOBAL(fractional_max_pool_##type##_any, PoolArgs, fractional_max_pool_kernel<S, T>) \
  TD_GLOBAL(pool_scatter_##type##_any, PoolArgs, pool_scatter_kernel<S, T>)         \
  TD_GLOBAL(avg_pool_##type##_any, PoolArgs, avg_pool_kernel<S, T>)                 \
  TD_GLOBAL(avg_pool_backward_##type##_any, PoolArgs, avg_pool_backward_kernel<S, T>)

TD_POOL(f16, Half, float)
TD_POOL(bf16, BFloat16, float)
TD_POOL(f32, float, float)
TD_POOL(f64, double, double)
TD_GLOBAL(max_pool_i64_any, PoolArgs, max_pool_kernel<Integers, int64_t>)
TD_GLOBAL(avg_pool_i64_any, PoolArgs, avg_pool_kernel<int64_t, int64_t>)
TD_GLOBAL(max_pool_indices_i64_any, PoolArgs, max_pool_indices_kernel)

}  // namespace taeda::device
