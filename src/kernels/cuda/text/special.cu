#include "kernels/cuda/text/special.cuh"

namespace taeda::device {

TD_GLOBAL(special_function_f64_any, ElementwiseArgs, special_function_kernel)
TD_GLOBAL(orthogonal_polynomial_f32_any, ElementwiseArgs, orthogonal_polynomial_kernel<float>)
TD_GLOBAL(orthogonal_polynomial_f64_any, ElementwiseArgs, orthogonal_polynomial_kernel<double>)
TD_GLOBAL(standard_gamma_grad_f64_any, ElementwiseArgs, standard_gamma_grad_kernel)
TD_GLOBAL(dirichlet_grad_f32_any, ElementwiseArgs, dirichlet_grad_kernel<float>)
TD_GLOBAL(dirichlet_grad_f64_any, ElementwiseArgs, dirichlet_grad_kernel<double>)

}  // namespace taeda::device
