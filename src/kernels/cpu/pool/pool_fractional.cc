// Fractional max pooling (Graham, 2014): max pooling over windows at pseudorandom distances.
//
// Along a dimension with a = (in - kernel) / (out - 1) and a random number u, window o starts at
// trunc((o + u) a) - trunc(u a), in the input's precision, and the last one at in - kernel.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pool/pool.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

template <class T>
void window_starts(T u, const Windows& w, std::vector<int64_t>& starts) {
  TD_CHECK(std::isfinite(Wide<T>(u)), "fractional_max_pool: random_samples must be finite");
  starts.resize(static_cast<size_t>(w.out));
  const int64_t last = w.in - w.kernel;
  const Wide<T> distance = w.out > 1 ? T(Wide<T>(last) / Wide<T>(w.out - 1)) : T(0);
  const auto begin = [&](Wide<T> o) {
    return static_cast<int64_t>(Wide<T>(T(Wide<T>(T(o + Wide<T>(u))) * distance)));
  };
  for (int64_t o = 0; o + 1 < w.out; o++) {
    const int64_t start = begin(static_cast<Wide<T>>(o)) - begin(0);
    starts[static_cast<size_t>(o)] = std::clamp<int64_t>(start, 0, last);
  }
  if (w.out > 0) starts.back() = last;
}

// The last NaN of a window, or else its first maximum.
template <class T>
struct Maximum {
  Wide<T> value = -std::numeric_limits<Wide<T>>::infinity();
  int64_t index;

  void accumulate(const T* plane, int64_t i) {
    const Wide<T> x = static_cast<Wide<T>>(plane[i]);
    if (!(x > value || std::isnan(x))) return;
    value = x;
    index = i;
  }
};

template <class T>
void pool_plane(const T* in, const PoolShape& s, std::array<std::vector<int64_t>, 3>& starts,
                T* out, int64_t* indices) {
  for (const int64_t z0 : starts[0]) {
    for (const int64_t y0 : starts[1]) {
      check_interrupt();
      for (const int64_t x0 : starts[2]) {
        Maximum<T> maximum{.index = (z0 * s.h.in + y0) * s.w.in + x0};
        for (int64_t z = z0; z < z0 + s.d.kernel; z++)
          for (int64_t y = y0; y < y0 + s.h.kernel; y++)
            for (int64_t x = x0; x < x0 + s.w.kernel; x++)
              maximum.accumulate(in, (z * s.h.in + y) * s.w.in + x);
        *out++ = T(maximum.value);
        *indices++ = maximum.index;
      }
    }
  }
}

}  // namespace

void fractional_max_pool(const View& output, const View& indices, const View& self,
                         IntSpan kernel_size, IntSpan, const View& random_samples) {
  const size_t n = kernel_size.size();
  const PoolShape s = pool_shape(self.sizes, output.sizes, kernel_size, {}, {0}, {1});
  // u of a plane by dimension: planes' samples begin with the width, volumes' with the depth
  const std::array<int64_t, 3> order =
      n == 2 ? std::array<int64_t, 3>{-1, 1, 0} : std::array<int64_t, 3>{0, 1, 2};
  with_dtype<Floating>(self.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      std::array<std::vector<int64_t>, 3> starts{{{0}}};
      const std::array<const Windows*, 3> windows{&s.d, &s.h, &s.w};
      for (int64_t plane = begin; plane < end; plane++) {
        const T* u = random_samples.as<T>() + plane * static_cast<int64_t>(n);
        for (size_t d = 3 - n; d < 3; d++) window_starts(u[order[d]], *windows[d], starts[d]);
        pool_plane(self.as<T>() + plane * s.in_size(), s, starts,
                   output.as<T>() + plane * s.out_size(),
                   indices.as<int64_t>() + plane * s.out_size());
      }
    });
  });
}

}  // namespace taeda::cpu
