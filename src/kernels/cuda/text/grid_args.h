// The arguments of grid_sampler's kernels (grid.cuh), which launchers fill (../grid_sampler.cc).
#pragma once
#include "kernels/cuda/text/array_args.h"
#include "kernels/grid_taps.h"

namespace taeda::device {

// x [batch, channels, *size] is read at grid [batch, points, axes]; images are volumes of depth
// one.
struct GridArgs {
  Array x, grid, gy;
  Array out;        // the result or the grid's gradient
  char* gx;         // sums, in the type that is computed in
  int64_t size[3];  // of the x axis, y, z
  int64_t batch, channels, axes, plane, points;
  uint32_t parts;  // warps of a plane of gx: one, or as many as share the points or the elements
  bool atomic;     // they share the points
  grid::Options options;
};

}  // namespace taeda::device
