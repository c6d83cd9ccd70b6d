// Sampling an image at up to 64 positions, linearly or at the nearest pixel, by vectors: the usual
// case of grid_sample.cc. T is float or double.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/grid_taps.h"

namespace taeda::cpu {

struct GridPlane {
  int64_t width, height;
  bool nearest;
  GridPadding padding;
  bool align_corners;
};

// What each position reads: `corners` (1 or 4) indices into the image, negative where they lie
// outside and count as zero, with their weights and the weights' derivatives along x and y. The
// four are upper left, upper right, lower left and lower right.
template <class T>
struct GridTaps {
  static constexpr int64_t kPoints = 64;
  using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  int corners;
  bool inside[kPoints];  // whether all indices of the vector that starts at a position are
  alignas(64) Index index[4][kPoints];
  alignas(64) T weight[kPoints][4], along_x[4][kPoints], along_y[4][kPoints];
};

template <class T>
struct GridTable {
  // The taps of n <= kPoints positions, pairs (x, y).
  void (*find)(GridTaps<T>* taps, const GridPlane& plane, const T* positions, int64_t n);
  // y[p] = the image at position p.
  void (*read)(T* y, const T* image, const GridTaps<T>& taps, int64_t n);
  // gx[p], gy[p] += g[p] times the image's derivatives at position p.
  void (*slopes)(T* gx, T* gy, const T* image, const T* g, const GridTaps<T>& taps, int64_t n);
};
template <class T>
const GridTable<T>& grid_table();

}  // namespace taeda::cpu
