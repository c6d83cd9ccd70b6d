// Which positions of a dimension a resized one reads, and their weights: "taps". Every device's
// kernels have them from here (NVRTC compiles this, too). Sources: Keys, "Cubic convolution
// interpolation" (1981) for the cubic weights; antialiasing widens the filter by the scale, as
// Pillow does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace taeda {

enum class ResampleMode : uint8_t {
  kStays,  // every position is its own tap
  kNearest,
  kNearestWhole,  // by the sizes, where these are equal or one is twice the other
  kNearestExact,
  kLinear,
  kCubic,
  kLinearAntialiased,
  kCubicAntialiased
};

template <class A>
struct ResampleAxis {
  int64_t in, out;
  ResampleMode mode;
  bool align_corners;
  float nearest_step;  // input elements per output element, as nearest modes count
  A step;              // the same for the others
  A widen, support;    // of antialiased filters: their scale, and how far they reach

  bool is_antialiased() const { return mode >= ResampleMode::kLinearAntialiased; }
  // The most taps that a position has.
  int64_t count() const {
    if (mode == ResampleMode::kLinear) return in == out ? 1 : 2;
    if (mode == ResampleMode::kCubic) return 4;
    if (!is_antialiased()) return 1;
    const int64_t most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
    return most < in ? most : in;
  }
};

template <class A>
A cubic_weight(A distance, A a) {
  const A x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Taps first, first + 1, ... of one output position; those outside are the border's.
template <class A>
struct ResampleTaps {
  int64_t first, count;
  A at;     // where between taps the position is
  A total;  // of an antialiased filter's weights
};

template <class A>
A filter_at(const ResampleAxis<A>& axis, const ResampleTaps<A>& t, int64_t k) {
  const A distance = (static_cast<A>(t.first + k) - t.at + A(0.5)) / axis.widen;
  if (axis.mode == ResampleMode::kCubicAntialiased) return cubic_weight<A>(distance, A(-0.5));
  return std::max<A>(0, 1 - std::abs(distance));
}

template <class A>
ResampleTaps<A> nearest_tap(const ResampleAxis<A>& axis, int64_t o) {
  if (axis.mode == ResampleMode::kStays) return {o, 1, 0, 0};
  if (axis.mode == ResampleMode::kNearestWhole && (axis.out == axis.in || axis.out == 2 * axis.in))
    return {o * axis.in / axis.out, 1, 0, 0};
  const float shift = axis.mode == ResampleMode::kNearestExact ? 0.5f : 0;
  const float at = (static_cast<float>(o) + shift) * axis.nearest_step;
  return {static_cast<int64_t>(std::min(std::floor(at), 9e18f)), 1, 0, 0};
}

template <class A>
ResampleTaps<A> antialiased_taps(const ResampleAxis<A>& axis, int64_t o) {
  const A centre = axis.step * (static_cast<A>(o) + A(0.5));
  const int64_t begin = static_cast<int64_t>(centre - axis.support + A(0.5));
  const int64_t end = static_cast<int64_t>(centre + axis.support + A(0.5));
  const int64_t first = begin > 0 ? begin : 0, last = end < axis.in ? end : axis.in;
  const int64_t most = axis.count(), count = last - first < most ? last - first : most;
  ResampleTaps<A> t{first, count > 0 ? count : 0, centre, 0};
  for (int64_t k = 0; k < t.count; k++) t.total += filter_at(axis, t, k);
  return t;
}

template <class A>
ResampleTaps<A> taps_of(const ResampleAxis<A>& axis, int64_t o) {
  if (axis.mode <= ResampleMode::kNearestExact) return nearest_tap(axis, o);
  if (axis.is_antialiased()) return antialiased_taps(axis, o);
  const A position = static_cast<A>(o), step = axis.step;
  const A at = axis.align_corners ? step * position : step * (position + A(0.5)) - A(0.5);
  if (axis.mode == ResampleMode::kCubic) {
    const A base = std::floor(std::min(std::max(at, A(-4e18)), A(4e18)));
    return {static_cast<int64_t>(base) - 1, 4, at - base, 0};
  }
  if (axis.in == axis.out) return {o, 1, 0, 0};  // whatever the scale
  const A inside = std::min(std::max(at, A(0)), static_cast<A>(axis.in));
  const int64_t whole = static_cast<int64_t>(inside), left = whole < axis.in ? whole : axis.in - 1;
  return {left, 2, std::min(std::max(inside - static_cast<A>(left), A(0)), A(1)), 0};
}

template <class A>
int64_t position_of(const ResampleAxis<A>& axis, const ResampleTaps<A>& t, int64_t k) {
  const int64_t i = t.first + k;
  return i < 0 ? 0 : i < axis.in ? i : axis.in - 1;
}
template <class A>
A weight_of(const ResampleAxis<A>& axis, const ResampleTaps<A>& t, int64_t k) {
  if (axis.is_antialiased()) return t.total != 0 ? filter_at(axis, t, k) / t.total : A(0);
  if (t.count == 1) return 1;
  if (axis.mode == ResampleMode::kLinear) return k == 0 ? 1 - t.at : t.at;
  return cubic_weight<A>(t.at - static_cast<A>(k - 1), A(-0.75));
}
// How much of position i the taps take: several of them at a border.
template <class A>
A weight_at(const ResampleAxis<A>& axis, const ResampleTaps<A>& t, int64_t i) {
  if (axis.is_antialiased()) return weight_of(axis, t, i - t.first);
  A total = 0;
  for (int64_t k = 0; k < t.count; k++)
    if (position_of(axis, t, k) == i) total += weight_of(axis, t, k);
  return total;
}

}  // namespace taeda
