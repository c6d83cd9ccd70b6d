// What the pooling kernels share: windows over the last one to three dimensions of row-major
// planes.
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "base/interrupt.h"
#include "kernels/view.h"

namespace taeda::cpu {

// One dimension's windows: window o covers in[o * stride - padding + k * dilation], k in [0,
// kernel).
struct Windows {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;

  int64_t start(int64_t o) const { return o * stride - padding; }
  // The first and one past the last k whose position lies inside.
  int64_t first(int64_t o) const {
    const int64_t s = start(o);
    return s >= 0 ? 0 : (-s + dilation - 1) / dilation;
  }
  int64_t last(int64_t o) const {
    const int64_t left = in - start(o);
    return left <= 0 ? 0 : std::min(kernel, (left + dilation - 1) / dilation);
  }
};

// Planes of up to three dimensions; missing leading ones have size one.
struct PoolShape {
  int64_t planes = 1;
  Windows d, h, w;
  bool has_empty_windows = false;  // a dilated window may step over the whole input
  int64_t in_size() const { return d.in * h.in * w.in; }
  int64_t out_size() const { return d.out * h.out * w.out; }
};

PoolShape pool_shape(IntSpan in, IntSpan out, IntSpan kernel, IntSpan stride, IntSpan padding,
                     IntSpan dilation);

// Planes that are worth a thread's while together.
int64_t plane_grain(const PoolShape& s);

// Sizes of the result of pooling over the last `spatial` dimensions. RuntimeError with PyTorch's
// text for windows that make no sense: kernel, stride and dilation at least 1, padding at most half
// the kernel, at least one window.
DimVector pool_sizes(std::string_view name, IntSpan in, int64_t spatial, IntSpan kernel,
                     IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode);

// For each row of windows: looks now and then whether the program wants the operator to stop.
inline void look_at_row(int64_t row) {
  if (row % 16 == 15) check_interrupt();
}

// The same along a row, which may be the whole input: runs of its windows end at next(), next() ...
class WindowRuns {
 public:
  explicit WindowRuns(const Windows& w)
      : out_(w.out),
        run_(std::max<int64_t>(1, kBetween / std::max(w.kernel, w.in / (w.out + 1)))) {}
  int64_t next(int64_t begin) const {
    if (begin > 0) check_interrupt();
    return std::min(out_, begin + run_);
  }

 private:
  static constexpr int64_t kBetween = int64_t{1} << 18;  // elements
  const int64_t out_, run_;
};

// The type that sums of T are kept in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

}  // namespace taeda::cpu
