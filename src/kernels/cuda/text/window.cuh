// Windows over row-major planes of one to three dimensions: what a result's window covers, and
// which windows hold an input.
#pragma once
#include "kernels/cuda/text/group.cuh"
#include "kernels/cuda/text/place.cuh"
#include "kernels/cuda/text/pool_args.h"

namespace taeda::device {

struct Integers {};  // of the type that the argument names

// Element i of an array of S, which may be Integers, as T.
template <class S, class T>
TD_FN T element(const PoolArgs& a, const char* x, int64_t i) {
  if constexpr (std::is_same_v<S, Integers>)
    return load<T>(x + i * a.itemsize, a.type);
  else
    return convert<T>(reinterpret_cast<const S*>(x)[i]);
}
template <class S, class T>
TD_FN void set_result(const PoolArgs& a, uint64_t i, T value) {
  if constexpr (std::is_same_v<S, Integers>)
    store(a.result + i * a.itemsize, a.type, value);
  else
    reinterpret_cast<S*>(a.result)[i] = convert<S>(value);
}

// The part of a window that lies inside: `count` positions from `begin` on, the first being tap
// `first`.
struct Inside {
  int32_t begin, count, first;
};
TD_FN int32_t steps(int32_t distance, int32_t step) {  // at least the distance
  return step == 1 ? distance : (distance + step - 1) / step;
}
// a b / c, rounded down.
TD_FN int32_t share(int32_t a, int32_t b, int32_t c) {
  return static_cast<int32_t>(int64_t{a} * b / c);
}
TD_FN int32_t share_up(int32_t a, int32_t b, int32_t c) {
  return static_cast<int32_t>((int64_t{a} * b + c - 1) / c);
}
TD_FN Inside inside(const Windows& w, int32_t o) {
  if (w.kernel == 0) {
    const int32_t begin = share(o, w.in, w.out);
    return {begin, share_up(o + 1, w.in, w.out) - begin, 0};
  }
  const int32_t start = o * w.stride - w.padding, left = w.in - start;
  const int32_t first = start >= 0 ? 0 : steps(-start, w.dilation);
  const int32_t last = left <= 0 ? 0 : std::min(w.kernel, steps(left, w.dilation));
  return {start + first * w.dilation, last - first, first};
}
// The windows that hold position i are among those from `begin` to `end`.
struct Holders {
  int32_t begin, end;
};
TD_FN Holders holders(const Windows& w, int32_t i) {
  if (w.kernel == 0) return {share(i, w.out, w.in), share_up(i + 1, w.out, w.in)};
  const int32_t reach = i + w.padding, before = reach - (w.kernel - 1) * w.dilation;
  return {before <= 0 ? 0 : steps(before, w.stride), std::min(w.out, reach / w.stride + 1)};
}
// Which tap of a window o of these position i is; -1: none.
TD_FN int32_t tap_of(const Windows& w, int32_t o, int32_t i) {
  const int32_t offset = i + w.padding - o * w.stride;
  if (w.kernel == 0) return 0;
  if (w.dilation == 1) return offset;
  return offset % w.dilation == 0 ? offset / w.dilation : -1;
}

// Taps are numbered along rows, then rows, then slices.
TD_FN uint32_t tap_number(const PoolArgs& a, int32_t d, int32_t h, int32_t w) {
  const auto rows = static_cast<uint32_t>(a.dims[1].kernel);
  const auto columns = static_cast<uint32_t>(a.dims[2].kernel);
  return (static_cast<uint32_t>(d) * rows + static_cast<uint32_t>(h)) * columns +
         static_cast<uint32_t>(w);
}

// body(window, its number among all, tap) for the windows that hold an element, in their order.
template <class Body>
TD_FN void for_each_holder(const PoolArgs& a, const Place& p, Body body) {
  const Windows &wd = a.dims[0], &wh = a.dims[1], &ww = a.dims[2];
  const Holders d = holders(wd, p.at[0]), h = holders(wh, p.at[1]), w = holders(ww, p.at[2]);
  for (int32_t od = d.begin; od < d.end; od++) {
    const int32_t kd = tap_of(wd, od, p.at[0]);
    for (int32_t oh = h.begin; oh < h.end; oh++) {
      const int32_t kh = tap_of(wh, oh, p.at[1]);
      if (kd < 0 || kh < 0) continue;
      const int64_t first = p.plane * a.out + (int64_t{od} * wh.out + oh) * ww.out;
      const uint32_t taps = tap_number(a, kd, kh, 0);
#pragma unroll 1
      for (int32_t ow = w.begin; ow < w.end; ow++) {
        const int32_t kw = tap_of(ww, ow, p.at[2]);
        if (kw >= 0)
          body(Place{p.plane, {od, oh, ow}}, first + ow, taps + static_cast<uint32_t>(kw));
      }
    }
  }
}

}  // namespace taeda::device
