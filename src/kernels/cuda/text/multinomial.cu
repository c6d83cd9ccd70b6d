#include "kernels/cuda/text/multinomial.cuh"

namespace taeda::device {

TD_GLOBAL(multinomial_rows_f32_any, MultinomialArgs, multinomial_rows_kernel<float>)
TD_GLOBAL(multinomial_rows_f64_any, MultinomialArgs, multinomial_rows_kernel<double>)
TD_GLOBAL(multinomial_search_f64_any, MultinomialArgs, multinomial_search_kernel)

}  // namespace taeda::device
