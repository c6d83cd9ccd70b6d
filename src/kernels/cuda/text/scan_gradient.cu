#include "kernels/cuda/text/scan_gradient.cuh"

namespace taeda::device {

#define TD_PRODUCTS(type, T)                                                               \
  TD_GLOBAL(logcumsumexp_##type##_any, RowArgs, logcumsumexp_kernel<T>)                    \
  TD_GLOBAL(recurrence_element_##type##_any, RowArgs, recurrence_kernel<ElementBefore, T>) \
  TD_GLOBAL(products_before_##type##_any, RowArgs, products_before_kernel<T>)              \
  TD_GLOBAL(cumprod_tangent_##type##_any, RowArgs, cumprod_tangent_kernel<T>)
#define TD_LOGARITHMS(type, T)                                                              \
  TD_GLOBAL(recurrence_decrease_##type##_any, RowArgs, recurrence_kernel<ExpOfDecrease, T>) \
  TD_GLOBAL(recurrence_increase_##type##_any, RowArgs, recurrence_kernel<ExpOfIncrease, T>) \
  TD_GLOBAL(exp_difference_##type##_any, RowArgs, exp_difference_kernel<T, false>)

TD_PRODUCTS(f32, float)
TD_PRODUCTS(f64, double)
TD_PRODUCTS(c64, std::complex<float>)
TD_PRODUCTS(c128, std::complex<double>)
TD_LOGARITHMS(f64, double)
TD_LOGARITHMS(c128, std::complex<double>)
TD_GLOBAL(exp_difference_conj_c128_any, RowArgs, exp_difference_kernel<std::complex<double>, true>)

}  // namespace taeda::device
