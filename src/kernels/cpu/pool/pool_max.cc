// Max pooling. A NaN in a window is its maximum; of equal values the first counts, of several NaN
// the last: where the gradient goes. Values alone are computed separably, without looking for
// indices: the maximum over the window's rows (whole vectors), then along the row. With argmax, a
// byte a window (a 32-bit integer for large windows) says which of its elements ("taps") it is.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "base/sliced.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/pool/pool_rows.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

template <class T>
inline constexpr bool kHasRowKernels = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Sum<T>>(value));
}

// What padding counts as.
template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return T(-std::numeric_limits<float>::infinity());
}

// Where window (od, oh)'s first row of elements begins, which may be outside, and how far from
// there a tap is. Taps are counted along rows, then rows, then slices.
int64_t start_of_windows(const PoolShape& s, int64_t od, int64_t oh) {
  return (s.d.start(od) * s.h.in + s.h.start(oh)) * s.w.in + s.w.start(0);
}
int64_t offset_of_tap(const PoolShape& s, int64_t tap) {
  const int64_t kw = tap % s.w.kernel, kh = tap / s.w.kernel % s.h.kernel,
                kd = tap / (s.w.kernel * s.h.kernel);
  return (kd * s.d.dilation * s.h.in + kh * s.h.dilation) * s.w.in + kw * s.w.dilation;
}

// How many there are, at most `most`.
int64_t count_taps(const PoolShape& s, int64_t most) {
  int64_t count = 1;
  for (const int64_t k : {s.d.kernel, s.h.kernel, s.w.kernel})
    count = k > most / count ? most : count * k;
  return count;
}

// The tap of the maximum of window (od, oh, ow), kNoTap where it is empty, and the maximum.
template <class T>
int64_t tap_of_max(const PoolShape& s, const T* plane, int64_t od, int64_t oh, int64_t ow, T* y) {
  const int64_t d1 = s.d.last(od), h0 = s.h.first(oh), h1 = s.h.last(oh), w0 = s.w.first(ow),
                w1 = s.w.last(ow);
  int64_t best = kNoTap;
  *y = lowest<T>();
  for (int64_t kd = s.d.first(od); kd < d1; kd++) {
    for (int64_t kh = h0; kh < h1; kh++) {
      const T* row = plane + ((s.d.start(od) + kd * s.d.dilation) * s.h.in + s.h.start(oh) +
                              kh * s.h.dilation) *
                                 s.w.in;
      for (int64_t kw = w0; kw < w1; kw++) {
        const T value = row[s.w.start(ow) + kw * s.w.dilation];
        if (best == kNoTap || value > *y || is_nan(value))
          best = (kd * s.h.kernel + kh) * s.w.kernel + kw, *y = value;
      }
    }
  }
  return best;
}

// The rows of a plane as phases, a few rows of windows at a time so that they stay in the
// first-level cache, and the maxima of their windows.
template <class T>
class PhaseRows {
 public:
  explicit PhaseRows(const PoolShape& s)
      : s_(s),
        phases_(s.w),
        span_((s.h.kernel - 1) * s.h.dilation + 1),
        step_(windows_a_block()),
        height_(span_ + (step_ - 1) * s.h.stride),
        lines_(s.d.kernel * height_ * phases_.size()) {
    std::fill_n(lines_.data(), s.d.kernel * height_ * phases_.size(), lowest<T>());
    for (int64_t kd = 0; kd < s.d.kernel; kd++)
      for (int64_t kh = 0; kh < s.h.kernel; kh++)
        for (int64_t kw = 0; kw < s.w.kernel; kw++)
          taps_.push_back((kd * height_ + kh * s.h.dilation) * phases_.size() + phases_.tap(kw));
  }

  // The maxima of the row of windows (od, oh) and their taps; rows of windows come in order.
  void find(const T* plane, int64_t od, int64_t oh, T* y, uint32_t* where) {
    if (oh % step_ == 0) load(plane, od, oh);
    const T* const from = lines_.data() + oh % step_ * s_.h.stride * phases_.size();
    if (find_max_of_taps(from, taps_.data(), static_cast<int64_t>(taps_.size()), has_nan_, y, where,
                         s_.w.out))
      name_first_taps(od, oh, where);
  }

 private:
  static constexpr int64_t kBlockBytes = 20 << 10;

  int64_t windows_a_block() const {
    const int64_t bytes = s_.d.kernel * phases_.size() * static_cast<int64_t>(sizeof(T)),
                  rows = kBlockBytes / bytes;
    return span_ >= rows ? 1 : 1 + (rows - span_) / s_.h.stride;
  }

  // The rows that the windows (od, oh) to (od, oh + step - 1) reach; those outside of the input are
  // minus infinity.
  void load(const T* plane, int64_t od, int64_t oh) {
    const int64_t count = (std::min(step_, s_.h.out - oh) - 1) * s_.h.stride + span_;
    has_nan_ = false;
    for (int64_t kd = 0; kd < s_.d.kernel; kd++) {
      const int64_t slice = s_.d.start(od) + kd * s_.d.dilation;
      for (int64_t i = 0; i < count; i++) {
        const int64_t row = s_.h.start(oh) + i;
        T* const to = lines_.data() + (kd * height_ + i) * phases_.size();
        if (slice >= 0 && slice < s_.d.in && row >= 0 && row < s_.h.in)
          has_nan_ |= split_phases(phases_, plane + (slice * s_.h.in + row) * s_.w.in, to);
        else
          std::fill_n(to, phases_.size(), lowest<T>());
      }
    }
  }
  // Windows of minus infinity alone have it at their first element inside, if there is one.
  void name_first_taps(int64_t od, int64_t oh, uint32_t* where) const {
    const int64_t kd = s_.d.first(od), kh = s_.h.first(oh);
    if (kd >= s_.d.last(od) || kh >= s_.h.last(oh)) return;
    for (int64_t ow = 0; ow < s_.w.out; ow++) {
      const int64_t kw = s_.w.first(ow);
      if (where[ow] == kNoTap && kw < s_.w.last(ow))
        where[ow] = static_cast<uint32_t>((kd * s_.h.kernel + kh) * s_.w.kernel + kw);
    }
  }

  const PoolShape& s_;
  const Phases phases_;
  const int64_t span_, step_, height_;  // rows that a window spans; rows of windows, rows a block
  const Scratch<T> lines_;
  std::vector<int64_t> taps_;  // where they are, from the first line of a row of windows
  bool has_nan_ = false;
};

// Finds the maxima of planes, by vectors where that pays.
template <class T>
class Finder {
 public:
  explicit Finder(const PoolShape& s) : s_(s), where_(s.w.out + kWidest) {
    if constexpr (kHasRowKernels<T>) {
      const bool fits = s.d.kernel <= s.d.in && count_taps(s, kManyTaps) < kManyTaps;
      if (Phases::pays(s.w) && fits) rows_.emplace(s);
    }
  }

  // Writes a plane's maxima to y and calls found(first window, start, taps) for each row of
  // windows: window i's tap is taps[i], and it starts at position start + i * stride.
  template <class F>
  void find(const T* plane, T* y, const F& found) {
    int64_t o = 0;
    for (int64_t od = 0; od < s_.d.out; od++) {
      for (int64_t oh = 0; oh < s_.h.out; oh++, o += s_.w.out) {
        look_at_row(oh);
        find_row(plane, od, oh, y + o);
        found(o, start_of_windows(s_, od, oh), where_.data());
      }
    }
  }

 private:
  static constexpr int64_t kWidest = 16, kManyTaps = 1 << 20;
  struct Nothing {};

  void find_row(const T* plane, int64_t od, int64_t oh, T* y) {
    if constexpr (kHasRowKernels<T>) {
      if (rows_) return rows_->find(plane, od, oh, y, where_.data());
    }
    const WindowRuns runs(s_.w);
    for (int64_t ow = 0; ow < s_.w.out;) {
      for (const int64_t stop = runs.next(ow); ow < stop; ow++)
        where_[ow] = static_cast<uint32_t>(tap_of_max(s_, plane, od, oh, ow, y + ow));
    }
  }

  const PoolShape& s_;
  const Scratch<uint32_t> where_;
  std::optional<std::conditional_t<kHasRowKernels<T>, PhaseRows<T>, Nothing>> rows_;
};

bool halves_exactly(const Windows& w) {
  return w.kernel == 2 && w.stride == 2 && w.padding == 0 && w.dilation == 1 && w.out * 2 <= w.in;
}
bool is_single(const Windows& w) { return w.kernel == 1 && w.stride == 1 && w.padding == 0; }
// Windows of 2 x 2 side by side: the common case.
bool is_two_by_two(const PoolShape& s) {
  return is_single(s.d) && s.d.out == 1 && halves_exactly(s.h) && halves_exactly(s.w);
}

// Computes maxima without their positions.
template <class T>
class Maxima {
 public:
  explicit Maxima(const PoolShape& s)
      : s_(s), phases_(s.w), by_phases_(Phases::pays(s.w)), row_(s.w.in) {
    if (!by_phases_) return;
    split_.emplace(phases_.size());
    std::fill_n(split_->data(), phases_.size(), lowest<T>());
    for (int64_t k = 0; k < s.w.kernel; k++) taps_.push_back(split_->data() + phases_.tap(k));
  }

  void plane(const T* x, T* y) {
    if (is_two_by_two(s_)) {
      for (int64_t h = 0; h < s_.h.out; h++) {
        look_at_row(h);
        max_of_pairs(x + 2 * h * s_.w.in, x + (2 * h + 1) * s_.w.in, y + h * s_.w.out, s_.w.out);
      }
      return;
    }
    for (int64_t od = 0; od < s_.d.out; od++) {
      for (int64_t oh = 0; oh < s_.h.out; oh++, y += s_.w.out) {
        look_at_row(oh);
        row(x, od, oh, y);
      }
    }
  }

 private:
  void row(const T* x, int64_t od, int64_t oh, T* y) {
    lines_.clear();
    for (int64_t kd = s_.d.first(od); kd < s_.d.last(od); kd++)
      for (int64_t kh = s_.h.first(oh); kh < s_.h.last(oh); kh++)
        lines_.push_back(x + ((s_.d.start(od) + kd * s_.d.dilation) * s_.h.in + s_.h.start(oh) +
                              kh * s_.h.dilation) *
                                 s_.w.in);
    if (lines_.empty()) {
      std::fill_n(y, s_.w.out, lowest<T>());
      return;
    }
    const int64_t count = static_cast<int64_t>(lines_.size());
    if (is_single(s_.w)) return max_of_taps(lines_.data(), count, y, s_.w.out);
    max_of_taps(lines_.data(), count, row_.data(), s_.w.in);
    if (by_phases_) {
      split_phases(phases_, row_.data(), split_->data());
      return max_of_taps(taps_.data(), s_.w.kernel, y, s_.w.out);
    }
    const WindowRuns runs(s_.w);
    for (int64_t ow = 0; ow < s_.w.out;)
      for (const int64_t stop = runs.next(ow); ow < stop; ow++) y[ow] = window(ow);
  }
  T window(int64_t ow) const {
    T most = lowest<T>();
    for (int64_t k = s_.w.first(ow); k < s_.w.last(ow); k++) {
      const T value = row_[s_.w.start(ow) + k * s_.w.dilation];
      if (value > most || std::isnan(value)) most = value;
    }
    return most;
  }

  const PoolShape& s_;
  const Phases phases_;
  const bool by_phases_;
  const Scratch<T> row_;
  std::optional<Scratch<T>> split_;
  std::vector<const T*> taps_, lines_;
};

template <class F>
void for_each_window(const PoolShape& s, const F& f) {
  const WindowRuns runs(s.w);
  int64_t o = 0;
  for (int64_t od = 0; od < s.d.out; od++) {
    for (int64_t oh = 0; oh < s.h.out; oh++) {
      look_at_row(oh);
      for (int64_t ow = 0; ow < s.w.out;)
        for (const int64_t stop = runs.next(ow); ow < stop; ow++, o++) f(o, od, oh, ow);
    }
  }
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

// Taps as an argmax keeps them; kNoTap, of an empty window, becomes the largest byte.
[[gnu::optimize("O3")]] void narrow_taps(const uint32_t* taps, uint8_t* argmax, int64_t n) {
  for (int64_t i = 0; i < n; i++) argmax[i] = static_cast<uint8_t>(taps[i]);
}
void narrow_taps(const uint32_t* taps, int32_t* argmax, int64_t n) {
  std::copy_n(taps, n, reinterpret_cast<uint32_t*>(argmax));
}

constexpr int64_t kOutside = std::numeric_limits<int64_t>::min() / 2;  // far from any plane

// Where the tap that an argmax names is, relative to its window's start: bytes by a table.
template <class A>
class TapOffsets;
template <>
class TapOffsets<uint8_t> {
 public:
  explicit TapOffsets(const PoolShape& s) {
    offsets_.fill(kOutside);
    const int64_t taps = count_taps(s, 255);
    for (int64_t tap = 0; tap < taps; tap++)
      offsets_[static_cast<size_t>(tap)] = offset_of_tap(s, tap);
  }
  int64_t operator[](uint8_t argmax) const { return offsets_[argmax]; }

 private:
  std::array<int64_t, 256> offsets_;
};
template <>
class TapOffsets<int32_t> {
 public:
  explicit TapOffsets(const PoolShape& s) : s_(s) {}
  int64_t operator[](int32_t argmax) const {
    const uint32_t tap = static_cast<uint32_t>(argmax);
    return tap == kNoTap ? kOutside : offset_of_tap(s_, tap);
  }

 private:
  const PoolShape& s_;
};

void check_taps(const PoolShape& s) {
  TD_CHECK(count_taps(s, kNoTap) < kNoTap, "max_pool: the kernel has too many elements");
}

template <class T, class A>
void scatter_plane(const PoolShape& s, const TapOffsets<A>& offsets, const A* argmax, const T* gy,
                   T* gx) {
  if constexpr (std::is_same_v<A, uint8_t>) {
    if (is_two_by_two(s)) {
      if (s.h.in != 2 * s.h.out || s.w.in != 2 * s.w.out) sliced_fill(gx, s.in_size(), T(0));
      for (int64_t h = 0; h < s.h.out; h++, argmax += s.w.out, gy += s.w.out)
        max_of_pairs_gradient(argmax, gy, gx + 2 * h * s.w.in, gx + (2 * h + 1) * s.w.in, s.w.out);
      return;
    }
  }
  const uint64_t size = static_cast<uint64_t>(s.in_size());
  sliced_fill(gx, s.in_size(), T(0));
  for (int64_t od = 0; od < s.d.out; od++) {
    for (int64_t oh = 0; oh < s.h.out; oh++) {
      look_at_row(oh);
      int64_t start = start_of_windows(s, od, oh);
      in_slices(s.w.out, [&](int64_t ow, int64_t end) {
        for (; ow < end; ow++, start += s.w.stride) {
          const uint64_t at = static_cast<uint64_t>(start + offsets[*argmax++]);
          if (at < size) gx[at] += *gy;
          gy++;
        }
      });
    }
  }
}

// The maxima of all planes; found(first window, start, taps) tells of each row of windows.
template <class T, class Found>
void find_maxima(const PoolShape& s, const View& values, const View& input, const Found& found) {
  parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
    const WidePlane<T> x(s.in_size()), y(s.out_size());
    Finder<Sum<T>> finder(s);
    for (int64_t p = begin; p < end; p++) {
      T* const to = values.as<T>() + p * s.out_size();
      finder.find(x.read(input.as<T>() + p * s.in_size()), y.open(to),
                  [&](int64_t o, int64_t start, const uint32_t* taps) {
                    found(p * s.out_size() + o, start, taps);
                  });
      y.close(to);
    }
  });
}

}  // namespace

namespace {

void maxima_alone(const PoolShape& s, const View& values, const View& input) {
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    using A = Sum<T>;
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const WidePlane<T> wide_x(s.in_size()), wide_y(s.out_size());
      std::conditional_t<kHasRowKernels<A>, Maxima<A>, Finder<A>> maxima(s);
      for (int64_t p = begin; p < end; p++) {
        T* const to = values.as<T>() + p * s.out_size();
        const A* const x = wide_x.read(input.as<T>() + p * s.in_size());
        A* const y = wide_y.open(to);
        if constexpr (kHasRowKernels<A>)
          maxima.plane(x, y);
        else
          maxima.find(x, y, [](int64_t, int64_t, const uint32_t*) {});
        wide_y.close(to);
      }
    });
  });
}

template <class A>
void maxima_with_argmax(const PoolShape& s, const View& values, A* argmax, const View& input) {
  check_taps(s);
  with_dtype<Floating>(input.dtype, [&]<class T>(T) {
    find_maxima<T>(s, values, input, [&](int64_t o, int64_t, const uint32_t* taps) {
      narrow_taps(taps, argmax + o, s.w.out);
    });
  });
}

// f(the argmax's elements): bytes, or 32-bit integers for large windows.
template <class F>
void with_argmax_type(const View& argmax, const F& f) {
  if (argmax.dtype == DType::kUInt8)
    f(argmax.as<uint8_t>());
  else
    f(argmax.as<int32_t>());
}

template <class A>
void scatter(const PoolShape& s, const View& result, const View& grad_output, const A* argmax) {
  const TapOffsets<A> offsets(s);
  with_dtype<Floating>(result.dtype, [&]<class T>(T) {
    parallel_for(0, s.planes, plane_grain(s), [&](int64_t begin, int64_t end) {
      const WidePlane<T> gy(s.out_size()), gx(s.in_size());
      for (int64_t p = begin; p < end; p++) {
        T* const to = result.as<T>() + p * s.in_size();
        scatter_plane<Sum<T>>(s, offsets, argmax + p * s.out_size(),
                              gy.read(grad_output.as<T>() + p * s.out_size()), gx.open(to));
        gx.close(to);
      }
    });
  });
}

template <class A>
void indices_of(const PoolShape& s, int64_t* indices, const A* argmax) {
  const TapOffsets<A> offsets(s);
  for_each_plane(s, [&](int64_t p) {
    for_each_window(s, [&](int64_t o, int64_t od, int64_t oh, int64_t ow) {
      const int64_t i = p * s.out_size() + o,
                    at = start_of_windows(s, od, oh) + ow * s.w.stride + offsets[argmax[i]];
      indices[i] = at >= 0 && at < s.in_size() ? at : 0;
    });
  });
}

}  // namespace

// The maximum of each window and, with_argmax, which of its elements that is.
void max_pool(const View& values, const View& argmax, const View& input, IntSpan kernel_size,
              IntSpan stride, IntSpan padding, IntSpan dilation, bool, bool with_argmax) {
  const PoolShape s = pool_shape(input.sizes, values.sizes, kernel_size, stride, padding, dilation);
  if (!with_argmax) return maxima_alone(s, values, input);
  with_argmax_type(argmax, [&](auto* to) { maxima_with_argmax(s, values, to, input); });
}

// gx[window's start + offset of its argmax] += gy[window]
void max_pool_scatter(const View& result, const View& grad_output, const View& argmax,
                      IntSpan sizes, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                      IntSpan dilation, bool) {
  const PoolShape s = pool_shape(sizes, grad_output.sizes, kernel_size, stride, padding, dilation);
  with_argmax_type(argmax, [&](const auto* from) { scatter(s, result, grad_output, from); });
}

// The index in its plane of each window's maximum, zero for empty windows.
void max_pool_indices(const View& result, const View& argmax, IntSpan sizes, IntSpan kernel_size,
                      IntSpan stride, IntSpan padding, IntSpan dilation, bool) {
  const PoolShape s = pool_shape(sizes, argmax.sizes, kernel_size, stride, padding, dilation);
  with_argmax_type(argmax, [&](const auto* from) { indices_of(s, result.as<int64_t>(), from); });
}

void max_pool_with_indices(const View& values, const View& indices, const View& input,
                           IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                           bool) {
  const PoolShape s = pool_shape(input.sizes, values.sizes, kernel_size, stride, padding, dilation);
  check_taps(s);
  constexpr int64_t kTable = 4096;
  std::vector<int64_t> offsets;
  for (int64_t tap = 0; tap < count_taps(s, kTable); tap++)
    offsets.push_back(offset_of_tap(s, tap));
  const auto offset = [&](size_t tap) {
    return tap < offsets.size() ? offsets[tap] : offset_of_tap(s, static_cast<int64_t>(tap));
  };
  with_dtype<Numbers>(input.dtype, [&]<class T>(T) {
    find_maxima<T>(s, values, input, [&](int64_t o, int64_t start, const uint32_t* taps) {
      int64_t* const positions = indices.as<int64_t>() + o;
      for (int64_t i = 0; i < s.w.out; i++)
        positions[i] = taps[i] == kNoTap ? 0 : start + i * s.w.stride + offset(taps[i]);
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
  with_dtype<Floating>(result.dtype, [&]<class T>(T) {
    sliced_fill(result.as<T>(), result.numel, T(0));
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, in + out));
    parallel_for(0, planes, grain, [&](int64_t begin, int64_t end) {
      in_slices((end - begin) * out, [&](int64_t from, int64_t to) {
        for (int64_t i = begin * out + from; i < begin * out + to; i++) {
          const int64_t at = static_cast<const volatile int64_t*>(indices.as<int64_t>())[i];
          TD_CHECK_INDEX(at >= 0 && at < in, "max pool backward: index {} out of range [0, {})", at,
                         in);
          T& target = result.as<T>()[i / out * in + at];
          target = T(static_cast<Sum<T>>(target) + static_cast<Sum<T>>(grad_output.as<T>()[i]));
        }
      });
    });
  });
}

}  // namespace taeda::cpu
