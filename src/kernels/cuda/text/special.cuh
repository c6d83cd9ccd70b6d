// Functions of one element each, by the definitions that all devices share: out_i = f(x_i, ...),
//
//   Bessel and Airy functions, in double (kernels/special_functions.h)
//   orthogonal polynomials p_n(x), in x's precision (kernels/orthogonal_polynomials.h)
//   gradients of gamma and Dirichlet numbers (kernels/implicit_gradients.h)
//
// A thread has an element; operands are read once, the result is written once. Which function it is
// comes with the argument, so that there is one kernel for all: computing takes longer than
// choosing.
#pragma once
#include "kernels/cuda/text/kernel.cuh"
// kernel.cuh first: what it defines is for the others
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/elementwise_args.h"
#include "kernels/cuda/text/walk.cuh"
#include "kernels/implicit_gradients.h"
#include "kernels/orthogonal_polynomials.h"
#include "kernels/special_functions.h"
#if defined(__CUDACC_RTC__)
#include "kernels/cpu/simd/special.cc"  // a module has all that its kernels call
#endif

namespace taeda::device {

TD_FN void special_function_kernel(const ElementwiseArgs& a) {
  const auto which = static_cast<SpecialFunction>(a.which);
  const double precision = a.out.type == ElementType::kFloat32 ? 1e-9 : 1e-17;
  for (uint64_t i = first_index(); i < a.n; i += index_step())
    set(a.out, i, special_function(which, get<double>(a.in[0], i), precision));
}

template <class T>
TD_FN void orthogonal_polynomial_kernel(const ElementwiseArgs& a) {
  const auto which = static_cast<Polynomial>(a.which);
  for (uint64_t i = first_index(); i < a.n; i += index_step())
    set(a.out, i, orthogonal_polynomial(which, get<T>(a.in[0], i), get<T>(a.in[1], i)));
}

TD_FN void standard_gamma_grad_kernel(const ElementwiseArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const double shape = get<double>(a.in[0], i), x = get<double>(a.in[1], i);
    set(a.out, i, implicit_gradients::gamma_gradient(shape, x));
  }
}

template <class T>
TD_FN void dirichlet_grad_kernel(const ElementwiseArgs& a) {
  for (uint64_t i = first_index(); i < a.n; i += index_step()) {
    const T x = get<T>(a.in[0], i), alpha = get<T>(a.in[1], i), total = get<T>(a.in[2], i);
    set(a.out, i, implicit_gradients::dirichlet_gradient(x, alpha, total));
  }
}

}  // namespace taeda::device
