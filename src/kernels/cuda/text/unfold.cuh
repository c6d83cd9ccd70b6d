// im2col and its adjoint, col2im: the windows of images as columns, and the sums of overlapping
// ones.
//
//   column[k][o] = x[o * stride - padding + k * dilation], 0 outside
//   x[i] = sum over the taps k of column[k][o] where that is i
//
// A thread has one element of what is written: columns are moved by an element's size, sums are
// gathered in the CPU's order. Each column is read or written once.
#pragma once
#include "kernels/cuda/text/move.cuh"
#include "kernels/cuda/text/place.cuh"
#include "kernels/cuda/text/unfold_args.h"

namespace taeda::device {

template <class S>
TD_FN void im2col_kernel(const UnfoldArgs& a) {
  for_each_place(a.each, [&](uint64_t r, const Place& p) {
    const uint32_t tap = static_cast<uint32_t>(p.at[0]), kh = divide(tap, a.kernel_w);
    const int32_t kw = static_cast<int32_t>(tap - kh * a.kernel_w.value);
    const int32_t i = p.at[1] * a.h.stride - a.h.padding + static_cast<int32_t>(kh) * a.h.dilation;
    const int32_t j = p.at[2] * a.w.stride - a.w.padding + kw * a.w.dilation;
    S x{};
    if (i >= 0 && i < a.h.in && j >= 0 && j < a.w.in)
      x = reinterpret_cast<const S*>(a.x)[(p.plane * a.h.in + i) * a.w.in + j];
    reinterpret_cast<S*>(a.result)[r] = x;
  });
}

// Which window has position i as its tap k; -1: none.
TD_FN int32_t window_at(const Windows& w, int32_t i, int32_t k) {
  const int32_t start = i + w.padding - k * w.dilation;
  const int32_t o = start / w.stride;
  return start >= 0 && o < w.out && o * w.stride == start ? o : -1;
}

// T adds: float for half precision, and for truth values, of which any sum but 0 is true.
template <class T>
TD_FN void col2im_kernel(const UnfoldArgs& a) {
  for_each_place(a.each, [&](uint64_t r, const Place& p) {
    T sum(0);
    for (int32_t kh = 0; kh < a.h.kernel; kh++) {
      const int32_t oh = window_at(a.h, p.at[1], kh);
      if (oh < 0) continue;
#pragma unroll 1
      for (int32_t kw = 0; kw < a.w.kernel; kw++) {
        const int32_t ow = window_at(a.w, p.at[2], kw);
        if (ow < 0) continue;
        const int64_t column = (p.plane * a.h.kernel + kh) * a.w.kernel + kw;
        const int64_t at = (column * a.h.out + oh) * a.w.out + ow;
        sum = sum + load<T>(a.x + at * a.itemsize, a.type);
      }
    }
    store(a.result + static_cast<int64_t>(r) * a.itemsize, a.type, sum);
  });
}

}  // namespace taeda::device
