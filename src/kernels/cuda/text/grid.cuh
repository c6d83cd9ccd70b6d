// grid_sampler: images or volumes read at positions in [-1, 1], and the gradients in both.
//
//   y = sum over the taps of each axis of their weights' product times x (kernels/grid_taps.h)
//   ggrid_axis = sum over channels of gy times the same with that axis' slopes in place of weights
//   gx = sum over positions of gy times weights
//
// A thread has a position for all channels. In gx's kernel a warp has a plane (owned.cuh); where
// those are few, several have one: they share the positions, adding by atomics, or go along all of
// them for a share of the elements each. Reads each position's taps, mostly from a cache.
#pragma once
#include "kernels/cuda/text/array.cuh"
#include "kernels/cuda/text/combine.cuh"
#include "kernels/cuda/text/grid_args.h"
#include "kernels/cuda/text/owned.cuh"

namespace taeda::device {

template <class A>
struct PointTaps {
  grid::Tap<A> at[3][grid::kMaxTaps];
  int count[3];
  A start;  // of sums: NaN for a cubic at a position that is not finite
};
template <class A>
TD_FN PointTaps<A> taps_of(const GridArgs& a, int64_t point) {
  PointTaps<A> taps;
  taps.start = 0;
#pragma unroll 1
  for (int axis = 0; axis < 3; axis++) {
    taps.count[axis] = 1;
    taps.at[axis][0] = {0, 1, 0};
    if (axis >= a.axes) continue;
    const A g = get<A>(a.grid, static_cast<uint64_t>(point * a.axes + axis));
    taps.count[axis] = grid::axis_taps(g, a.size[axis], a.options, taps.at[axis]);
    if (a.options.mode == grid::Mode::kBicubic) taps.start += 0 * g;
  }
  return taps;
}

// body(offset in the plane or -1, taps of x, y and z) for all combinations: as many for each point.
template <class A, class Body>
TD_FN void for_each_corner(const GridArgs& a, const PointTaps<A>& taps, Body body) {
  for (int k = 0; k < taps.count[2]; k++) {
    for (int j = 0; j < taps.count[1]; j++) {
#pragma unroll 1
      for (int i = 0; i < taps.count[0]; i++) {
        const grid::Tap<A>&x = taps.at[0][i], &y = taps.at[1][j], &z = taps.at[2][k];
        const bool inside = x.position >= 0 && y.position >= 0 && z.position >= 0;
        const int64_t row = z.position * a.size[1] + y.position;
        body(inside ? row * a.size[0] + x.position : -1, x, y, z);
      }
    }
  }
}

template <class A>
TD_FN void grid_sampler_kernel(const GridArgs& a) {
  const int64_t count = a.batch * a.points;
  for (auto p = static_cast<int64_t>(first_index()); p < count;
       p += static_cast<int64_t>(index_step())) {
    const int64_t sample = p / a.points * a.channels, point = p % a.points;
    const PointTaps<A> taps = taps_of<A>(a, p);
    for (int64_t c = sample; c < sample + a.channels; c++) {
      A total = taps.start;
      for_each_corner(a, taps, [&](int64_t offset, const auto& x, const auto& y, const auto& z) {
        if (offset < 0) return;
        total += get<A>(a.x, static_cast<uint64_t>(c * a.plane + offset)) *
                 (x.weight * y.weight * z.weight);
      });
      set(a.out, static_cast<uint64_t>(c * a.points + point), total);
    }
  }
}

template <class A>
TD_FN void grid_sampler_grid_kernel(const GridArgs& a) {
  const int64_t count = a.batch * a.points;
  for (auto p = static_cast<int64_t>(first_index()); p < count;
       p += static_cast<int64_t>(index_step())) {
    const int64_t sample = p / a.points * a.channels, point = p % a.points;
    const PointTaps<A> taps = taps_of<A>(a, p);
    A sums[3] = {taps.start, taps.start, taps.start};
    for (int64_t c = sample; c < sample + a.channels; c++) {
      const A gy = get<A>(a.gy, static_cast<uint64_t>(c * a.points + point));
      for_each_corner(a, taps, [&](int64_t offset, const auto& x, const auto& y, const auto& z) {
        if (offset < 0) return;
        const A product = get<A>(a.x, static_cast<uint64_t>(c * a.plane + offset)) * gy;
        sums[0] += product * (x.slope * y.weight * z.weight);
        sums[1] += product * (x.weight * y.slope * z.weight);
        sums[2] += product * (x.weight * y.weight * z.slope);
      });
    }
#pragma unroll
    for (int axis = 0; axis < 3; axis++)
      if (axis < a.axes) set(a.out, static_cast<uint64_t>(p * a.axes + axis), sums[axis]);
  }
}

template <class A>
TD_FN void grid_sampler_input_kernel(const GridArgs& a) {
  const Group warp{32};
  const uint64_t tasks = static_cast<uint64_t>(a.batch * a.channels) * a.parts;
  for (uint64_t task = warp.first(); task < tasks; task += warp.step()) {
    const uint64_t plane = task / a.parts;
    const auto part = static_cast<uint32_t>(task - plane * a.parts);
    A* const to = reinterpret_cast<A*>(a.gx) + plane * static_cast<uint64_t>(a.plane);
    const int64_t sample = static_cast<int64_t>(plane) / a.channels * a.points;
    const int64_t step = a.atomic ? int64_t{32} * a.parts : 32;
    for (int64_t base = a.atomic ? int64_t{32} * part : 0; base < a.points; base += step) {
      const int64_t mine = base + warp.rank(), p = mine < a.points ? mine : a.points - 1;
      const PointTaps<A> taps = taps_of<A>(a, sample + p);
      const A gy = get<A>(a.gy, plane * static_cast<uint64_t>(a.points) + static_cast<uint64_t>(p));
      for_each_corner(a, taps, [&](int64_t offset, const auto& x, const auto& y, const auto& z) {
        const int64_t index = mine < a.points ? offset : -1;
        const A value = x.weight * y.weight * z.weight * gy;
        if (!a.atomic)
          add_owned(to, index, value, part, a.parts);
        else if (index >= 0)
          add_atomically(to + index, value);
      });
    }
  }
}

}  // namespace taeda::device
