// Resizing images, and the gradient: y = sum over the taps of each dimension of their weights'
// product times x (kernels/resample_taps.h); gx_i = sum over the results whose taps hold i.
//
// A thread has one element of what is written. Taps are worked out where they are wanted, so
// nothing but x is read, each element by a few threads and mostly from a cache. As the taps of
// results lie in order, those that hold an input are found by bisection.
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/place.cuh"
#include "kernels/cuda/text/resample_args.h"

namespace taeda::device {

// What a result's position sums along one dimension: source(begin) to source(end), weighed.
template <class A>
struct Forward {
  const ResampleAxis<A>& axis;
  ResampleTaps<A> taps;
  int64_t begin, end;

  TD_FN Forward(const ResampleAxis<A>& along, int32_t o) : axis(along), taps(taps_of(along, o)) {
    begin = position_of(axis, taps, 0);
    end = taps.count > 0 ? position_of(axis, taps, taps.count - 1) + 1 : begin;
  }
  TD_FN A weight(int64_t i) const { return weight_at(axis, taps, i); }
  TD_FN static int64_t sources(const ResampleAxis<A>& axis) { return axis.in; }
};

// And an input's position in the gradient.
template <class A>
struct Adjoint {
  const ResampleAxis<A>& axis;
  int64_t at, begin, end;

  TD_FN Adjoint(const ResampleAxis<A>& along, int32_t i) : axis(along), at(i) {
    begin = first_result(
        [&](const ResampleTaps<A>& t) { return position_of(axis, t, t.count - 1) >= at; });
    end = first_result([&](const ResampleTaps<A>& t) { return position_of(axis, t, 0) > at; });
  }
  TD_FN A weight(int64_t o) const { return weight_at(axis, taps_of(axis, o), at); }
  TD_FN static int64_t sources(const ResampleAxis<A>& axis) { return axis.out; }

 private:
  template <class Condition>
  TD_FN int64_t first_result(Condition holds) const {
    int64_t low = 0, high = axis.out;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (holds(taps_of(axis, middle)))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

struct AnyType {};  // of elements, told by the argument
template <class S, class A>
TD_FN A source(const ResampleArgs<A>& a, int64_t i) {
  if constexpr (std::is_same_v<S, AnyType>)
    return load<A>(a.x + i * a.itemsize, a.type);
  else
    return convert<A>(reinterpret_cast<const S*>(a.x)[i]);
}

template <template <class> class Along, class S, class A>
TD_FN void resample_kernel(const ResampleArgs<A>& a) {
  const int64_t slices = Along<A>::sources(a.axes[0]), rows = Along<A>::sources(a.axes[1]);
  const int64_t columns = Along<A>::sources(a.axes[2]);
  for_each_place(a.each, [&](uint64_t r, const Place& p) {
    const Along<A> d(a.axes[0], p.at[0]), h(a.axes[1], p.at[1]), w(a.axes[2], p.at[2]);
    A sum(0);
    for (int64_t i = d.begin; i < d.end; i++) {
      const A slice_weight = d.weight(i);
      for (int64_t j = h.begin; j < h.end; j++) {
        const int64_t row = ((p.plane * slices + i) * rows + j) * columns;
        A along(0);
#pragma unroll 1
        for (int64_t k = w.begin; k < w.end; k++) along += w.weight(k) * source<S>(a, row + k);
        sum += slice_weight * h.weight(j) * along;
      }
    }
    if constexpr (std::is_same_v<S, AnyType>)
      store(a.result + r * a.itemsize, a.type, sum);
    else
      reinterpret_cast<S*>(a.result)[r] = convert<S>(sum);
  });
}

// One tap of weight one in each dimension: elements of a size are moved.
template <class S>
TD_FN void resample_nearest_kernel(const ResampleArgs<float>& a) {
  for_each_place(a.each, [&](uint64_t r, const Place& p) {
    int64_t at = p.plane;
#pragma unroll
    for (int d = 0; d < 3; d++)
      at = at * a.axes[d].in + position_of(a.axes[d], nearest_tap(a.axes[d], p.at[d]), 0);
    reinterpret_cast<S*>(a.result)[r] = reinterpret_cast<const S*>(a.x)[at];
  });
}

TD_FN void resample_bytes_kernel(const ResampleBytesArgs& a) {
  const double one = 1 << a.bits;
  const int64_t inner = a.each.sizes[0].value;
  for_each_place(a.each, [&](uint64_t r, const Place& p) {
    const Forward<double> taps(a.axis, p.at[1]);
    int32_t total = 1 << (a.bits - 1);
    for (int64_t i = taps.begin; i < taps.end; i++) {
      const auto weight = static_cast<int32_t>(std::round(taps.weight(i) * one));
      total += weight * a.x[(p.plane * a.axis.in + i) * inner + p.at[2]];
    }
    total >>= a.bits;
    a.result[r] = static_cast<uint8_t>(total < 0 ? 0 : total > 255 ? 255 : total);
  });
}

}  // namespace taeda::device
