// Max pooling. A NaN in a window is its maximum; of equal values the first counts, of several NaN
// the last: where the gradient goes. Values alone are computed separably, without looking for
// positions: the maximum over the window's rows (whole vectors), then along the row. The gradient
// finds the position again from the input.
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/pool_rows.h"
#include "kernels/cpu/row_io.h"
#include "kernels/cpu/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Sum<T>>(value));
}

// Position in the plane of the maximum of window (od, oh, ow).
template <class T>
int64_t position_of_max(const PoolShape& s, const T* plane, int64_t od, int64_t oh, int64_t ow) {
  const int64_t d1 = s.d.last(od), h0 = s.h.first(oh), h1 = s.h.last(oh), w0 = s.w.first(ow),
                w1 = s.w.last(ow);
  int64_t best = -1;
  Sum<T> most{};
  for (int64_t kd = s.d.first(od); kd < d1; kd++) {
    for (int64_t kh = h0; kh < h1; kh++) {
      const int64_t row =
          ((s.d.start(od) + kd * s.d.dilation) * s.h.in + s.h.start(oh) + kh * s.h.dilation) *
          s.w.in;
      for (int64_t kw = w0; kw < w1; kw++) {
        const int64_t at = row + s.w.start(ow) + kw * s.w.dilation;
        const Sum<T> value = plane[at];
        if (best < 0 || value > most || is_nan(value)) best = at, most = value;
      }
    }
  }
  return best;
}

// Calls found(window, position of its maximum) for every window of the plane: where possible a row
// of windows at a time.
template <class T, class F>
void for_each_max(const PoolShape& s, const T* plane, const F& found) {
  constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;
  const int64_t taps = s.d.kernel * s.h.kernel * s.w.kernel;
  if constexpr (kVectors) {
    if (taps < (1 << 20) && !s.has_empty_windows) {
      std::vector<const T*> lines;
      std::vector<int64_t> offsets;  // from the window's start to the element that `best` names
      std::vector<T> best(static_cast<size_t>(s.w.out));
      int64_t o = 0;
      for (int64_t od = 0; od < s.d.out; od++) {
        for (int64_t oh = 0; oh < s.h.out; oh++) {
          lines.clear();
          offsets.clear();
          for (int64_t kd = s.d.first(od); kd < s.d.last(od); kd++) {
            for (int64_t kh = s.h.first(oh); kh < s.h.last(oh); kh++) {
              const int64_t line = ((s.d.start(od) + kd * s.d.dilation) * s.h.in + s.h.start(oh) +
                                    kh * s.h.dilation) *
                                   s.w.in;
              lines.push_back(plane + line);
              for (int64_t k = 0; k < s.w.kernel; k++)
                offsets.push_back(line + k * s.w.dilation - s.w.padding);
            }
          }
          find_max_along_rows(s.w, lines.data(), static_cast<int64_t>(lines.size()), best.data());
          for (int64_t ow = 0; ow < s.w.out; ow++, o++)
            found(o, offsets[static_cast<size_t>(best[static_cast<size_t>(ow)])] + ow * s.w.stride);
        }
      }
      return;
    }
  }
  int64_t o = 0;
  for (int64_t od = 0; od < s.d.out; od++)
    for (int64_t oh = 0; oh < s.h.out; oh++)
      for (int64_t ow = 0; ow < s.w.out; ow++, o++) {
        const int64_t at = position_of_max(s, plane, od, oh, ow);
        if (at >= 0) found(o, at);
      }
}

template <class F>
void for_each_window(const PoolShape& s, const F& f) {
  int64_t o = 0;
  for (int64_t od = 0; od < s.d.out; od++)
    for (int64_t oh = 0; oh < s.h.out; oh++)
      for (int64_t ow = 0; ow < s.w.out; ow++, o++) f(o, od, oh, ow);
}

// For each column the larger of `most` and x, and where it is: x begins at position `line`. Without
// branches, which random numbers would mislead.
template <class T>
[[gnu::optimize("O3")]] void keep_larger(const T* x, int64_t line, Sum<T>* most, int64_t* best,
                                         int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const Sum<T> value = x[k];
    const bool larger = (value > most[k]) | (value != value);
    most[k] = larger ? value : most[k];
    best[k] = larger ? line + k : best[k];
  }
}

template <class F>
void for_each_plane(const PoolShape& s, const F& f) {
  parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) f(p);
  });
}

bool halves_exactly(const Windows& w) {
  return w.kernel == 2 && w.stride == 2 && w.padding == 0 && w.dilation == 1 && w.out * 2 <= w.in;
}
bool is_single(const Windows& w) { return w.kernel == 1 && w.stride == 1 && w.padding == 0; }
// Windows of 2 x 2 side by side: the common case.
bool is_two_by_two(const PoolShape& s) {
  return is_single(s.d) && halves_exactly(s.h) && halves_exactly(s.w);
}

// A plane of half or bfloat16 as floats; any other as it is.
template <class T>
class WidePlane {
 public:
  using A = Sum<T>;
  explicit WidePlane(int64_t size) : size_(size), wide_(kDirect ? 0 : size) {}
  const A* read(const T* from) const {
    if constexpr (kDirect) {
      return from;
    } else {
      convert_row(wide_.data(), kDTypeOf<A>, 1, from, kDTypeOf<T>, 1, size_);
      return wide_.data();
    }
  }
  // Where to write what `close` stores.
  A* open(T* to) const {
    if constexpr (kDirect)
      return to;
    else
      return wide_.data();
  }
  void close(T* to) const {
    if constexpr (!kDirect) convert_row(to, kDTypeOf<T>, 1, wide_.data(), kDTypeOf<A>, 1, size_);
  }

 private:
  static constexpr bool kDirect = std::is_same_v<T, A>;
  const int64_t size_;
  const Scratch<A> wide_;
};

// What padding counts as.
template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return T(-std::numeric_limits<float>::infinity());
}

template <class T>
void max_plane(const PoolShape& s, const T* x, T* y, T* row) {
  if (s.has_empty_windows) {
    std::fill_n(y, s.out_size(), lowest<T>());
    for_each_max(s, x, [&](int64_t o, int64_t at) { y[o] = x[at]; });
    return;
  }
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (is_two_by_two(s)) {
      for (int64_t h = 0; h < s.h.out; h++)
        max_of_pairs(x + 2 * h * s.w.in, x + (2 * h + 1) * s.w.in, y + h * s.w.out, s.w.out);
      return;
    }
    for (int64_t od = 0; od < s.d.out; od++) {
      for (int64_t oh = 0; oh < s.h.out; oh++, y += s.w.out) {
        bool first = true;
        for (int64_t kd = s.d.first(od); kd < s.d.last(od); kd++) {
          for (int64_t kh = s.h.first(oh); kh < s.h.last(oh); kh++) {
            const int64_t d = s.d.start(od) + kd * s.d.dilation,
                          h = s.h.start(oh) + kh * s.h.dilation;
            const T* line = x + (d * s.h.in + h) * s.w.in;
            if (first)
              std::copy_n(line, s.w.in, row);
            else
              max_of_rows(row, line, s.w.in);
            first = false;
          }
        }
        max_along_row(s.w, row, y);
      }
    }
  } else {
    for_each_max(s, x, [&](int64_t o, int64_t at) { y[o] = x[at]; });
  }
}

template <class T>
void max_plane_gradient(const PoolShape& s, const T* x, const T* gy, T* gx) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (is_two_by_two(s)) {
      if (s.h.in != 2 * s.h.out || s.w.in != 2 * s.w.out) std::fill_n(gx, s.in_size(), T(0));
      for (int64_t h = 0; h < s.h.out; h++) {
        const int64_t upper = 2 * h * s.w.in, lower = upper + s.w.in;
        max_of_pairs_gradient(x + upper, x + lower, gy + h * s.w.out, gx + upper, gx + lower,
                              s.w.out);
      }
      return;
    }
  }
  std::fill_n(gx, s.in_size(), T(0));
  for_each_max(s, x, [&](int64_t o, int64_t at) {
    T& target = gx[at];
    target = T(static_cast<Sum<T>>(target) + static_cast<Sum<T>>(gy[o]));
  });
}

}  // namespace

void max_pool(const View& result, const View& input, IntSpan kernel_size, IntSpan stride,
              IntSpan padding, IntSpan dilation, bool) {
  const PoolShape s = pool_shape(input.sizes, result.sizes, kernel_size, stride, padding, dilation);
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    using A = Sum<T>;
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const Scratch<A> row(s.w.in);
      const WidePlane<T> x(s.in_size()), y(s.out_size());
      for (int64_t p = begin; p < end; p++) {
        T* const to = result.as<T>() + p * s.out_size();
        max_plane<A>(s, x.read(input.as<T>() + p * s.in_size()), y.open(to), row.data());
        y.close(to);
      }
    });
  });
}

void max_pool_backward(const View& result, const View& grad_output, const View& input,
                       IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                       bool) {
  const PoolShape s =
      pool_shape(input.sizes, grad_output.sizes, kernel_size, stride, padding, dilation);
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const WidePlane<T> x(s.in_size()), gy(s.out_size()), gx(s.in_size());
      for (int64_t p = begin; p < end; p++) {
        T* const to = result.as<T>() + p * s.in_size();
        max_plane_gradient<Sum<T>>(s, x.read(input.as<T>() + p * s.in_size()),
                                   gy.read(grad_output.as<T>() + p * s.out_size()), gx.open(to));
        gx.close(to);
      }
    });
  });
}

void max_pool_with_indices(const View& values, const View& indices, const View& input,
                           IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                           bool) {
  const PoolShape s = pool_shape(input.sizes, values.sizes, kernel_size, stride, padding, dilation);
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const WidePlane<T> wide(s.in_size());
      for (int64_t p = begin; p < end; p++) {
        const T* x = input.as<T>() + p * s.in_size();
        T* const y = values.as<T>() + p * s.out_size();
        int64_t* const places = indices.as<int64_t>() + p * s.out_size();
        if (s.has_empty_windows) {
          std::fill_n(y, s.out_size(), lowest<T>());
          std::fill_n(places, s.out_size(), int64_t{0});
        }
        for_each_max(s, wide.read(x), [&](int64_t o, int64_t at) {
          y[o] = x[at];
          places[o] = at;
        });
      }
    });
  });
}

// Window o of an adaptive pool covers [o * in / out, ceil((o + 1) * in / out)).
void adaptive_max_pool(const View& values, const View& indices, const View& input,
                       IntSpan output_size) {
  const size_t n = output_size.size();
  const DimVector ones(n, 1);
  const PoolShape s = pool_shape(input.sizes, values.sizes, ones, ones, DimVector(n, 0), ones);
  const auto begin_of = [](const Windows& w, int64_t o) { return o * w.in / w.out; };
  const auto end_of = [](const Windows& w, int64_t o) {
    return ((o + 1) * w.in + w.out - 1) / w.out;
  };
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    for_each_plane(s, [&](int64_t p) {
      const T* x = input.as<T>() + p * s.in_size();
      if (s.w.in == s.w.out) {  // channels-last: a row of windows at a time
        std::vector<Sum<T>> most(static_cast<size_t>(s.w.in));
        int64_t o = p * s.out_size();
        for (int64_t od = 0; od < s.d.out; od++) {
          for (int64_t oh = 0; oh < s.h.out; oh++, o += s.w.out) {
            int64_t* const best = indices.as<int64_t>() + o;
            std::fill_n(most.data(), most.size(), lowest<Sum<T>>());
            const int64_t first = begin_of(s.d, od) * s.h.in + begin_of(s.h, oh);
            for (int64_t k = 0; k < s.w.in; k++) best[k] = first * s.w.in + k;
            for (int64_t d = begin_of(s.d, od); d < end_of(s.d, od); d++) {
              for (int64_t h = begin_of(s.h, oh); h < end_of(s.h, oh); h++) {
                const int64_t line = (d * s.h.in + h) * s.w.in;
                keep_larger(x + line, line, most.data(), best, s.w.in);
              }
            }
            for (int64_t k = 0; k < s.w.in; k++) values.as<T>()[o + k] = x[best[k]];
          }
        }
        return;
      }
      for_each_window(s, [&](int64_t o, int64_t od, int64_t oh, int64_t ow) {
        int64_t best = -1;
        Sum<T> most{};
        for (int64_t d = begin_of(s.d, od); d < end_of(s.d, od); d++)
          for (int64_t h = begin_of(s.h, oh); h < end_of(s.h, oh); h++)
            for (int64_t w = begin_of(s.w, ow); w < end_of(s.w, ow); w++) {
              const int64_t at = (d * s.h.in + h) * s.w.in + w;
              const Sum<T> value = x[at];
              if (best < 0 || value > most || is_nan(value)) best = at, most = value;
            }
        values.as<T>()[p * s.out_size() + o] = x[best];
        indices.as<int64_t>()[p * s.out_size() + o] = best;
      });
    });
  });
}

// gx[indices[o]] += gy[o] within each plane.
void pool_scatter(const View& result, const View& grad_output, const View& indices, IntSpan sizes,
                  int64_t spatial) {
  int64_t in = 1, out = 1;
  for (size_t i = sizes.size() - static_cast<size_t>(spatial); i < sizes.size(); i++) {
    in *= sizes[i];
    out *= indices.sizes[i];
  }
  const int64_t planes = out == 0 ? 0 : indices.numel / out;
  for (int64_t i = 0; i < indices.numel; i++) {
    const int64_t at = indices.as<int64_t>()[i];
    TD_CHECK_INDEX(at >= 0 && at < in, "max pool backward: index {} out of range [0, {})", at, in);
  }
  with_dtype<Numbers>(result.dtype, [&]<class T>(T) {
    std::fill_n(result.as<T>(), result.numel, T(0));
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, in + out));
    parallel_for(0, planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * out; i < end * out; i++) {
        T& target = result.as<T>()[i / out * in + indices.as<int64_t>()[i]];
        target = T(static_cast<Sum<T>>(target) + static_cast<Sum<T>>(grad_output.as<T>()[i]));
      }
    });
  });
}

}  // namespace taeda::cpu
