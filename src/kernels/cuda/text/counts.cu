#include "kernels/cuda/text/counts.cuh"

namespace taeda::device {

TD_GLOBAL(random_poisson_f64_any, CountArgs, poisson_kernel)
TD_GLOBAL(random_gamma_f32_any, CountArgs, gamma_kernel<float>)
TD_GLOBAL(random_gamma_f64_any, CountArgs, gamma_kernel<double>)
TD_GLOBAL(random_binomial_f32_any, CountArgs, binomial_kernel<float>)
TD_GLOBAL(random_binomial_f64_any, CountArgs, binomial_kernel<double>)

}  // namespace taeda::device
