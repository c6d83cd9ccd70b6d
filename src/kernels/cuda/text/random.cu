#include "kernels/cuda/text/random.cuh"

namespace taeda::device {

#define TD_RANDOM(type, T)                                                      \
  TD_GLOBAL(random_uniform_##type##_any, RandomArgs, uniform_kernel<T>)         \
  TD_GLOBAL(random_normal_##type##_any, RandomArgs, normal_kernel<T>)           \
  TD_GLOBAL(random_log_normal_##type##_any, RandomArgs, log_normal_kernel<T>)   \
  TD_GLOBAL(random_bernoulli_##type##_any, RandomArgs, bernoulli_kernel<T>)     \
  TD_GLOBAL(random_exponential_##type##_any, RandomArgs, exponential_kernel<T>) \
  TD_GLOBAL(random_cauchy_##type##_any, RandomArgs, cauchy_kernel<T>)           \
  TD_GLOBAL(random_geometric_##type##_any, RandomArgs, geometric_kernel<T>)

TD_RANDOM(f32, float)
TD_RANDOM(f64, double)
TD_GLOBAL(random_words_i32_any, RandomArgs, integers_kernel<Integers32>)
TD_GLOBAL(random_words_i64_any, RandomArgs, integers_kernel<Integers64>)
TD_GLOBAL(random_bernoulli_each_f64_any, ChanceArgs, bernoulli_each_kernel)
TD_GLOBAL(shuffle_ties_i64_any, TiesArgs, shuffle_ties_kernel)

}  // namespace taeda::device
