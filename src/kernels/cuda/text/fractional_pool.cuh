// Fractional max pooling (Graham, 2014): maxima of windows at pseudorandom distances.
//
//   y_o = max over window o of x, and the index of it in its plane
//
// Along a dimension with a = (in - kernel) / (out - 1) and a random number u of the plane, window o
// starts at trunc((o + u) a) - trunc(u a), in the type of the elements, and the last one at
// in - kernel. A thread has a result and goes along its window: about one pass over inputs and
// results. Of equal values the first counts, of NaN the last.
#pragma once
#include "kernels/cuda/text/window.cuh"

namespace taeda::device {

// The start of window o of `w`; numbers are rounded to S as on the CPU.
template <class S, class T>
TD_FN int32_t window_start(const Windows& w, int32_t o, T u) {
  constexpr T kMost = T(4e18);
  const int32_t last = w.in - w.kernel;
  if (o + 1 >= w.out) return last;
  const auto rounded = [](T x) { return convert<T>(convert<S>(x)); };
  const T distance = rounded(static_cast<T>(last) / static_cast<T>(w.out - 1));
  const auto begin = [&](int32_t i) {
    const T at = rounded(rounded(static_cast<T>(i) + u) * distance);
    return static_cast<int64_t>(at > kMost ? kMost : at < -kMost ? -kMost : at);
  };
  const int64_t start = begin(o) - begin(0);
  return start < 0 ? 0 : start > last ? last : static_cast<int32_t>(start);
}

template <class S, class T>
TD_FN void fractional_max_pool_kernel(const PoolArgs& a) {
  const Windows &wd = a.dims[0], &wh = a.dims[1], &ww = a.dims[2];
  const S* const x = reinterpret_cast<const S*>(a.x);
  for (uint64_t o = first_index(); o < a.each.count; o += index_step()) {
    const Place p = place_of(a.each, o);
    const S* const samples = reinterpret_cast<const S*>(a.samples) + p.plane * a.spatial;
    int32_t begin[3] = {};
#pragma unroll
    for (int d = 0; d < 3; d++) {
      // planes' samples begin with the width, volumes' with the depth
      const int32_t k = a.spatial == 3 ? d : 2 - d;
      if (k >= a.spatial) continue;
      T u = convert<T>(samples[k]);
      if (!std::isfinite(u)) report(a.message, 0, 0), u = 0;
      begin[d] = window_start<S>(a.dims[d], p.at[d], u);
    }
    int64_t index = (int64_t{begin[0]} * wh.in + begin[1]) * ww.in + begin[2];
    T most = -std::numeric_limits<T>::infinity();
    for (int32_t d = begin[0]; d < begin[0] + wd.kernel; d++) {
      for (int32_t h = begin[1]; h < begin[1] + wh.kernel; h++) {
        const int64_t row = (int64_t{d} * wh.in + h) * ww.in;
#pragma unroll 1
        for (int64_t at = row + begin[2]; at < row + begin[2] + ww.kernel; at++) {
          const T value = convert<T>(x[p.plane * a.in + at]);
          if (value > most || value != value) most = value, index = at;
        }
      }
    }
    set_result<S>(a, o, most);
    a.indices[o] = index;
  }
}

}  // namespace taeda::device
