// dense<Load, T, N>: a pointwise functor over N dense arrays of T, by vectors; included once per
// instruction set.
//
// `Load::load<T>(params)` makes the functor from the parameters that the operator's caller laid
// out. Outputs may be the same memory as an input: each vector is read before it is written, and
// nothing beyond the n elements is touched. An input whose bit is set in `repeated` is one vector
// of equal elements.
#if defined(TAEDA_KERNELS_CPU_DENSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_DENSE_INL_H_
#undef TAEDA_KERNELS_CPU_DENSE_INL_H_
#else
#define TAEDA_KERNELS_CPU_DENSE_INL_H_
#endif

#include <utility>

#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

template <class T>
T element_of(Vec<T>);
template <class T>
bool element_of(Mask<T>);

template <class T, class F, size_t... I>
TD_FN void dense_loop(const F& f, void* out, const void* const* in, int64_t n, uint32_t repeated,
                      std::index_sequence<I...>) {
  using V = Vec<T>;
  const T* const x[] = {static_cast<const T*>(in[I])...};
  using Out = decltype(element_of(f(load(x[I])...)));
  Out* y = static_cast<Out*>(out);
  int64_t i = 0;
  // The position where an input moves, else 0.
  const int64_t moves[] = {(repeated >> I & 1 ? 0 : -1)...};
  for (; i + V::size() <= n; i += V::size()) store(y + i, f(load(x[I] + (i & moves[I]))...));
  if (i < n) store_n(y + i, f(load_n(x[I] + (i & moves[I]), n - i)...), n - i);
}

// Reached through tables only: its instantiations, thousands, stay out of the library's symbols.
template <class Load, class T, int N>
[[gnu::visibility("hidden")]] void dense(void* out, const void* const* in, int64_t n,
                                         const void* params, uint32_t repeated) {
  dense_loop<T>(Load::template load<T>(params), out, in, n, repeated,
                std::make_index_sequence<N>());
}

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_DENSE_INL_H_
