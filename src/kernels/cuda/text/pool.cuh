// Max pooling over windows of row-major planes, and its gradients.
//
//   y_o = max over window o of x, and which tap of the window or element of the plane it is
//   gx_i = sum of gy_o over the windows o that hold i and have their maximum there
//
// A thread has one element of what is written and gathers what belongs to it: nothing is atomic,
// and sums are in the CPU's order. Each result reads its window, mostly from a cache: about one
// pass over inputs and results. A NaN is a window's maximum; of equal values the first counts, of
// NaN the last.
#pragma once
#include "kernels/cuda/text/owned.cuh"
#include "kernels/cuda/text/window.cuh"

namespace taeda::device {

TD_FN int64_t position(const Windows& w, int32_t o, uint32_t tap) {
  return int64_t{o} * w.stride - w.padding + int64_t{tap} * w.dilation;
}

inline constexpr uint32_t kNoTap = 0xffffffff;  // of an empty window; its low byte, in bytes
TD_FN uint32_t tap_at(const PoolArgs& a, int64_t o) {
  return a.bytes ? reinterpret_cast<const uint8_t*>(a.argmax)[o]
                 : reinterpret_cast<const uint32_t*>(a.argmax)[o];
}

template <class S, class T>
TD_FN void max_pool_kernel(const PoolArgs& a) {
  const Windows &wd = a.dims[0], &wh = a.dims[1], &ww = a.dims[2];
  for (uint64_t o = first_index(); o < a.each.count; o += index_step()) {
    const Place p = place_of(a.each, o);
    const Inside d = inside(wd, p.at[0]), h = inside(wh, p.at[1]), w = inside(ww, p.at[2]);
    T most;
    if constexpr (std::is_floating_point_v<T>)
      most = -std::numeric_limits<T>::infinity();
    else
      most = a.lowest;
    uint32_t tap = kNoTap;
    int64_t index = 0;
    for (int32_t kd = 0; kd < d.count; kd++) {
      for (int32_t kh = 0; kh < h.count; kh++) {
        const int64_t slice = d.begin + kd * wd.dilation, row = h.begin + kh * wh.dilation;
        const uint32_t taps = tap_number(a, d.first + kd, h.first + kh, w.first);
        int64_t at = (slice * wh.in + row) * ww.in + w.begin;
#pragma unroll 1
        for (int32_t kw = 0; kw < w.count; kw++, at += ww.dilation) {
          const T x = element<S, T>(a, a.x, p.plane * a.in + at);
          if (tap == kNoTap || x > most || x != x)
            most = x, tap = taps + static_cast<uint32_t>(kw), index = at;
        }
      }
    }
    set_result<S>(a, o, most);
    if (a.indices) a.indices[o] = index;
    if (!a.argmax) continue;
    if (a.bytes)
      reinterpret_cast<uint8_t*>(a.argmax)[o] = static_cast<uint8_t>(tap);
    else
      reinterpret_cast<uint32_t*>(a.argmax)[o] = tap;
  }
}

template <class S, class T>
TD_FN void max_pool_scatter_kernel(const PoolArgs& a) {
  for (uint64_t i = first_index(); i < a.each.count; i += index_step()) {
    T sum(0);
    for_each_holder(a, place_of(a.each, i), [&](const Place&, int64_t o, uint32_t tap) {
      if (tap_at(a, o) == tap) sum += element<S, T>(a, a.x, o);
    });
    set_result<S>(a, i, sum);
  }
}

// Where in its plane each window's maximum is; 0 where that is not inside.
TD_FN void max_pool_indices_kernel(const PoolArgs& a) {
  const Windows &wd = a.dims[0], &wh = a.dims[1], &ww = a.dims[2];
  for (uint64_t o = first_index(); o < a.each.count; o += index_step()) {
    const Place p = place_of(a.each, o);
    const uint32_t tap = tap_at(a, static_cast<int64_t>(o));
    const auto rows = static_cast<uint32_t>(wh.kernel), columns = static_cast<uint32_t>(ww.kernel);
    const uint32_t kw = tap % columns, kh = tap / columns % rows, kd = tap / columns / rows;
    const int64_t d = position(wd, p.at[0], kd), h = position(wh, p.at[1], kh);
    const int64_t at = (d * wh.in + h) * ww.in + position(ww, p.at[2], kw);
    const bool is_empty = tap == (a.bytes ? kNoTap & 255 : kNoTap);
    a.indices[o] = !is_empty && at >= 0 && at < a.in ? at : 0;
  }
}

// gx[plane][index] += gy: a warp has a plane.
template <class S, class T>
TD_FN void pool_scatter_kernel(const PoolArgs& a) {
  const Group group{32};
  for (uint64_t plane = group.first(); plane < a.each.count; plane += group.step()) {
    S* const to = reinterpret_cast<S*>(a.result) + plane * a.in;
    for (int64_t base = 0; base < a.out; base += 32) {
      const int64_t i = base + group.rank(), o = static_cast<int64_t>(plane) * a.out + i;
      int64_t index = i < a.out ? a.indices[o] : -1;
      if (i < a.out && (index < 0 || index >= a.in)) report(a.message, index, a.in), index = -1;
      add_owned(to, index, i < a.out ? element<S, T>(a, a.x, o) : T(0));
    }
  }
}

}  // namespace taeda::device
