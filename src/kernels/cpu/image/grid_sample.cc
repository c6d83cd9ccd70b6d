// grid_sampler: an image or volume [n, c, (d,) h, w] read at the positions grid [n, ..., 2 or 3] in
// [-1, 1], x first, and the gradients in both.
//
// Along each axis a position means a few input positions ("taps") with weights; the result is the
// sum over all combinations of taps of the axes. A tap that lies outside counts as zero.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/image/grid_plane.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/grid_taps.h"
#include "kernels/view.h"

namespace taeda::cpu {
namespace {

using namespace grid;

constexpr int64_t kBlock = 64;         // positions at a time
constexpr int64_t kWork = 1 << 14;     // values worth a task
constexpr int64_t kChannelGroup = 16;  // channels that share their taps in the gradient

// One combination of taps: where it reads, its weight, and the weight's derivatives along x, y, z.
template <class A>
struct Corner {
  int64_t offset;
  A weight, slope[3];
};

// Geometry of one call; images are volumes of depth one.
struct Shape {
  int64_t batch, channels, axes, size[3], plane, points;

  Shape(const View& input, const View& grid) {
    axes = input.ndim() - 2;
    batch = input.sizes[0];
    channels = input.sizes[1];
    plane = points = 1;
    for (int64_t a = 0; a < 3; a++)  // x is the last dimension
      size[a] = a < axes ? input.sizes[static_cast<size_t>(axes + 1 - a)] : 1;
    for (int64_t a = 0; a < axes; a++) {
      plane *= size[a];
      points *= grid.sizes[static_cast<size_t>(a + 1)];
    }
  }
};

// The corners inside the image of one position; returns how many.
template <class A, class T>
int corners_of(const Shape& s, const T* position, const Options& o, Corner<A>* corners) {
  Tap<A> taps[3][kMaxTaps] = {{}, {}, {{0, 1, 0}}};
  int count[3] = {1, 1, 1}, found = 0;
  for (int64_t a = 0; a < s.axes; a++)
    count[a] = axis_taps(static_cast<A>(position[a]), s.size[a], o, taps[a]);
  for (int k = 0; k < count[2]; k++) {
    for (int j = 0; j < count[1]; j++) {
      for (int i = 0; i < count[0]; i++) {
        const Tap<A>&x = taps[0][i], &y = taps[1][j], &z = taps[2][k];
        if (x.position < 0 || y.position < 0 || z.position < 0) continue;
        corners[found++] = {(z.position * s.size[1] + y.position) * s.size[0] + x.position,
                            x.weight * y.weight * z.weight,
                            {x.slope * y.weight * z.weight, x.weight * y.slope * z.weight,
                             x.weight * y.weight * z.slope}};
      }
    }
  }
  return found;
}

// The corners of neighbouring points, worked out once for all channels.
template <class A, class T>
struct Block {
  Corner<A> corners[kBlock][16];
  int count[kBlock];
  A start[kBlock];  // of the sums: 0, NaN for a cubic at a position that is not finite
  void fill(const Shape& s, const T* grid, const Options& o, int64_t points) {
    for (int64_t p = 0; p < points; p++) {
      const T* position = grid + p * s.axes;
      count[p] = corners_of<A>(s, position, o, corners[p]);
      start[p] = 0;
      for (int64_t a = 0; a < s.axes && o.mode == Mode::kBicubic; a++)
        start[p] += 0 * static_cast<A>(position[a]);
    }
  }
};

Options options_of(int64_t mode, int64_t padding, bool align_corners) {
  return {static_cast<Mode>(mode), static_cast<Padding>(padding), align_corners};
}

// Calls f(block, sample, first point, number of points) for every block of every sample.
template <class A, class T, class F>
void for_each_block(const Shape& s, const Options& o, const View& grid, const F& f) {
  const int64_t blocks = (s.points + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, kWork / (kBlock * std::max<int64_t>(1, s.channels)));
  parallel_for(0, s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    Block<A, T> block;
    for (int64_t i = begin; i < end; i++) {
      const int64_t b = i / blocks, first = i % blocks * kBlock;
      const int64_t n = std::min(kBlock, s.points - first);
      block.fill(s, grid.as<T>() + (b * s.points + first) * s.axes, o, n);
      f(block, b, first, n);
    }
  });
}

// Whether vectors do it: images of float or double, sampled linearly or at the nearest element,
// whose rows and columns T counts exactly.
template <class T>
bool is_plane(const Shape& s, const Options& o) {
  constexpr int64_t kExact = int64_t{1} << std::min(std::numeric_limits<T>::digits, 31);
  return std::is_same_v<T, Sum<T>> && s.axes == 2 && o.mode != Mode::kBicubic &&
         s.plane < std::numeric_limits<int32_t>::max() && std::max(s.size[0], s.size[1]) <= kExact;
}
GridPlane plane_of(const Shape& s, const Options& o) {
  return {s.size[0], s.size[1], o.mode == Mode::kNearest, o.padding, o.align_corners};
}

// for_each_block for planes.
template <class T, class F>
void for_each_plane_block(const Shape& s, const Options& o, const View& grid, const F& f) {
  const GridPlane plane = plane_of(s, o);
  const int64_t blocks = (s.points + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, kWork / (kBlock * std::max<int64_t>(1, s.channels)));
  parallel_for(0, s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    GridTaps<T> taps;
    for (int64_t i = begin; i < end; i++) {
      const int64_t b = i / blocks, first = i % blocks * kBlock;
      const int64_t n = std::min(kBlock, s.points - first);
      grid_table<T>().find(&taps, plane, grid.as<T>() + (b * s.points + first) * 2, n);
      f(taps, b, first, n);
    }
  });
}

template <class T>
void sample_plane(const Shape& s, const Options& o, const View& result, const View& input,
                  const View& grid) {
  for_each_plane_block<T>(s, o, grid,
                          [&](const GridTaps<T>& taps, int64_t b, int64_t first, int64_t n) {
                            for (int64_t c = b * s.channels; c < (b + 1) * s.channels; c++) {
                              grid_table<T>().read(result.as<T>() + c * s.points + first,
                                                   input.as<T>() + c * s.plane, taps, n);
                            }
                          });
}

}  // namespace

void grid_sampler(const View& result, const View& input, const View& grid, int64_t mode,
                  int64_t padding, bool align_corners) {
  const Shape s(input, grid);
  const Options o = options_of(mode, padding, align_corners);
  with_dtype<Floating>(input.dtype, [&]<class T>(T) {
    using A = Sum<T>;
    if constexpr (std::is_same_v<T, A>) {
      if (is_plane<T>(s, o)) return sample_plane<T>(s, o, result, input, grid);
    }
    for_each_block<A, T>(
        s, o, grid, [&](const Block<A, T>& block, int64_t b, int64_t first, int64_t n) {
          for (int64_t c = 0; c < s.channels; c++) {
            const T* x = input.as<T>() + (b * s.channels + c) * s.plane;
            T* y = result.as<T>() + (b * s.channels + c) * s.points + first;
            for (int64_t p = 0; p < n; p++) {
              A total = block.start[p];
              for (int k = 0; k < block.count[p]; k++)
                total += static_cast<A>(x[block.corners[p][k].offset]) * block.corners[p][k].weight;
              y[p] = T(total);
            }
          }
        });
  });
}

namespace {

// gx[corner] += weight gy, a group of channels of one sample at a time.
template <class T>
void input_gradient(const Shape& s, const Options& o, const View& gx, const View& gy,
                    const View& grid) {
  using A = Sum<T>;
  const int64_t groups = (s.channels + kChannelGroup - 1) / kChannelGroup;
  parallel_for(0, s.batch * groups, 1, [&](int64_t begin, int64_t end) {
    Block<A, T> block;
    const Scratch<A> sums(kChannelGroup * s.plane);
    for (int64_t i = begin; i < end; i++) {
      const int64_t b = i / groups, from = i % groups * kChannelGroup;
      const int64_t channels = std::min(kChannelGroup, s.channels - from);
      sliced_fill(sums.data(), channels * s.plane, A(0));
      for (int64_t first = 0; first < s.points; first += kBlock) {
        const int64_t n = std::min(kBlock, s.points - first);
        block.fill(s, grid.as<T>() + (b * s.points + first) * s.axes, o, n);
        for (int64_t c = 0; c < channels; c++) {
          A* sum = sums.data() + c * s.plane;
          const T* g = gy.as<T>() + (b * s.channels + from + c) * s.points + first;
          for (int64_t p = 0; p < n; p++) {
            for (int k = 0; k < block.count[p]; k++)
              sum[block.corners[p][k].offset] += block.corners[p][k].weight * static_cast<A>(g[p]);
          }
        }
      }
      T* to = gx.as<T>() + (b * s.channels + from) * s.plane;
      for (int64_t j = 0; j < channels * s.plane; j++) to[j] = T(sums[j]);
    }
  });
}

template <class T>
void plane_input_gradient(const Shape& s, const Options& o, const View& gx, const View& gy,
                          const View& grid) {
  const GridPlane plane = plane_of(s, o);
  const int64_t groups = (s.channels + kChannelGroup - 1) / kChannelGroup;
  parallel_for(0, s.batch * groups, 1, [&](int64_t begin, int64_t end) {
    GridTaps<T> taps;
    for (int64_t i = begin; i < end; i++) {
      const int64_t b = i / groups, from = i % groups * kChannelGroup;
      const int64_t channels = std::min(kChannelGroup, s.channels - from);
      T* const sums = gx.as<T>() + (b * s.channels + from) * s.plane;
      sliced_fill(sums, channels * s.plane, T(0));
      for (int64_t first = 0; first < s.points; first += kBlock) {
        const int64_t n = std::min(kBlock, s.points - first);
        grid_table<T>().find(&taps, plane, grid.as<T>() + (b * s.points + first) * 2, n);
        for (int64_t c = 0; c < channels; c++) {
          T* const sum = sums + c * s.plane;
          const T* g = gy.as<T>() + (b * s.channels + from + c) * s.points + first;
          for (int64_t p = 0; p < n; p++) {
            for (int k = 0; k < taps.corners; k++) {
              const auto index = taps.index[k][p];
              if (index >= 0) sum[index] += taps.weight[p][k] * g[p];
            }
          }
        }
      }
    }
  });
}

template <class T>
void plane_grid_gradient(const Shape& s, const Options& o, const View& ggrid, const View& gy,
                         const View& input, const View& grid) {
  for_each_plane_block<T>(s, o, grid,
                          [&](const GridTaps<T>& taps, int64_t b, int64_t first, int64_t n) {
                            alignas(64) T sums[2][kBlock] = {};
                            for (int64_t c = b * s.channels; c < (b + 1) * s.channels; c++) {
                              grid_table<T>().slopes(sums[0], sums[1], input.as<T>() + c * s.plane,
                                                     gy.as<T>() + c * s.points + first, taps, n);
                            }
                            T* const to = ggrid.as<T>() + (b * s.points + first) * 2;
                            for (int64_t p = 0; p < n; p++) {
                              to[2 * p] = sums[0][p];
                              to[2 * p + 1] = sums[1][p];
                            }
                          });
}

template <class T>
void grid_gradient(const Shape& s, const Options& o, const View& ggrid, const View& gy,
                   const View& input, const View& grid) {
  using A = Sum<T>;
  for_each_block<A, T>(
      s, o, grid, [&](const Block<A, T>& block, int64_t b, int64_t first, int64_t n) {
        A sums[kBlock][3];
        for (int64_t p = 0; p < n; p++) std::fill_n(sums[p], 3, block.start[p]);
        for (int64_t c = 0; c < s.channels; c++) {
          const T* x = input.as<T>() + (b * s.channels + c) * s.plane;
          const T* g = gy.as<T>() + (b * s.channels + c) * s.points + first;
          for (int64_t p = 0; p < n; p++) {
            for (int k = 0; k < block.count[p]; k++) {
              const Corner<A>& corner = block.corners[p][k];
              const A product = static_cast<A>(x[corner.offset]) * static_cast<A>(g[p]);
              for (int64_t a = 0; a < s.axes; a++) sums[p][a] += product * corner.slope[a];
            }
          }
        }
        T* to = ggrid.as<T>() + (b * s.points + first) * s.axes;
        for (int64_t p = 0; p < n; p++)
          for (int64_t a = 0; a < s.axes; a++) to[p * s.axes + a] = T(sums[p][a]);
      });
}

}  // namespace

void grid_sampler_backward(const View& gx, const View& ggrid, const View& gy, const View& input,
                           const View& grid, int64_t mode, int64_t padding, bool align_corners) {
  const Shape s(input, grid);
  const Options o = options_of(mode, padding, align_corners);
  with_dtype<Floating>(input.dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, Sum<T>>) {
      if (is_plane<T>(s, o)) {
        plane_input_gradient<T>(s, o, gx, gy, grid);
        return plane_grid_gradient<T>(s, o, ggrid, gy, input, grid);
      }
    }
    input_gradient<T>(s, o, gx, gy, grid);
    grid_gradient<T>(s, o, ggrid, gy, input, grid);
  });
}

}  // namespace taeda::cpu
