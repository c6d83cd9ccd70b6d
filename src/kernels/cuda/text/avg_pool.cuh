// Average pooling over windows of row-major planes, and its gradient.
//
//   y_o = sum over window o of x / divisor_o
//   gx_i = sum over the windows o that hold i of gy_o / divisor_o
//
// A thread has one element of what is written; sums are in the CPU's order. About one pass over
// inputs and results.
#pragma once
#include "kernels/cuda/text/window.cuh"

namespace taeda::device {

// What a dimension multiplies the divisor by: positions inside, or up to the padding's end.
TD_FN int32_t counted(const PoolArgs& a, const Windows& w, int32_t o) {
  if (!a.include_padding || w.kernel == 0) return inside(w, o).count;
  const int32_t start = o * w.stride - w.padding;
  return std::min(start + w.kernel, w.in + w.padding) - start;
}
template <class T>
TD_FN T divisor_of(const PoolArgs& a, const Place& o) {
  if (a.divisor != 0) return static_cast<T>(a.divisor);
  T product(1);
#pragma unroll
  for (int d = 0; d < 3; d++) product *= static_cast<T>(counted(a, a.dims[d], o.at[d]));
  return product;
}

template <class S, class T>
TD_FN void avg_pool_kernel(const PoolArgs& a) {
  const Windows &wh = a.dims[1], &ww = a.dims[2];
  for (uint64_t o = first_index(); o < a.each.count; o += index_step()) {
    const Place p = place_of(a.each, o);
    const Inside d = inside(a.dims[0], p.at[0]), h = inside(wh, p.at[1]), w = inside(ww, p.at[2]);
    T sum(0);
    for (int32_t kd = 0; kd < d.count; kd++) {
      for (int32_t kh = 0; kh < h.count; kh++) {
        const int64_t row = int64_t{d.begin + kd} * wh.in + h.begin + kh;
        const int64_t at = p.plane * a.in + row * ww.in + w.begin;
#pragma unroll 1
        for (int32_t kw = 0; kw < w.count; kw++) sum += element<S, T>(a, a.x, at + kw);
      }
    }
    set_result<S>(a, o, static_cast<T>(sum / divisor_of<T>(a, p)));
  }
}
template <class S, class T>
TD_FN void avg_pool_backward_kernel(const PoolArgs& a) {
  for (uint64_t i = first_index(); i < a.each.count; i += index_step()) {
    T sum(0);
    for_each_holder(a, place_of(a.each, i), [&](const Place& window, int64_t o, uint32_t) {
      sum += element<S, T>(a, a.x, o) / divisor_of<T>(a, window);
    });
    set_result<S>(a, i, sum);
  }
}

}  // namespace taeda::device
