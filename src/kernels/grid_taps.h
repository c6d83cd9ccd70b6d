// Which positions of an image or volume grid_sampler reads along an axis for a coordinate, and
// their weights with derivatives: "taps". Every device's kernels have them from here (NVRTC
// compiles this, too). A tap that lies outside counts as zero.
#pragma once

#include <cmath>
#include <cstdint>

namespace taeda {

enum class GridPadding : int64_t { kZeros, kBorder, kReflection };

}  // namespace taeda

namespace taeda::grid {

enum class Mode : int64_t { kBilinear, kNearest, kBicubic };
using Padding = GridPadding;

inline constexpr int kMaxTaps = 4;  // along an axis

// A value that depends on a coordinate, and its derivative.
template <class A>
struct Moving {
  A value, slope;
};

template <class A>
Moving<A> clip(Moving<A> x, int64_t size) {
  const A last = static_cast<A>(size - 1);
  if (!(x.value > 0)) return {0, 0};
  return x.value >= last ? Moving<A>{last, 0} : x;
}

// x folded into [low, high].
template <class A>
Moving<A> reflect(Moving<A> x, A low, A high) {
  if (low == high) return {0, 0};
  const A span = high - low, distance = std::abs(x.value - low);
  const A slope = x.value < low ? -x.slope : x.slope;
  const A flips = std::floor(distance / span), extra = std::fmod(distance, span);
  if (flips - std::floor(flips / 2) * 2 == 0) return {extra + low, slope};
  return {span - extra + low, -slope};
}

template <class A>
Moving<A> pad(Moving<A> x, int64_t size, Padding padding, bool align_corners) {
  if (padding == Padding::kZeros) return x;
  if (padding == Padding::kReflection) {
    const A low = align_corners ? A(0) : A(-0.5);
    x = reflect(x, low, static_cast<A>(size - 1) - low);
  }
  return clip(x, size);
}

template <class A>
struct Tap {
  int64_t position;  // -1: outside
  A weight, slope;
};

template <class A>
Tap<A> tap_at(A position, int64_t size, A weight, A slope) {
  // Not for NaN. Sides beyond what A counts exactly are compared as integers.
  const bool fits = position >= 0 && position <= static_cast<A>(size - 1);
  const int64_t index = fits ? static_cast<int64_t>(position) : -1;
  return {index < size ? index : -1, weight, slope};
}

// Keys' cubic with a = -3/4 at the distances t + 1, t, 1 - t and 2 - t.
template <class A>
void cubic_weights(A t, Moving<A> (&w)[kMaxTaps]) {
  constexpr A a = A(-0.75);
  const auto inner = [](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto outer = [](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto inner_slope = [](A x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  const auto outer_slope = [](A x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  w[0] = {outer(t + 1), outer_slope(t + 1)};
  w[1] = {inner(t), inner_slope(t)};
  w[2] = {inner(1 - t), -inner_slope(1 - t)};
  w[3] = {outer(2 - t), -outer_slope(2 - t)};
}

struct Options {
  Mode mode;
  Padding padding;
  bool align_corners;
};

// The taps of coordinate g along an axis of `size`; returns how many.
template <class A>
int axis_taps(A g, int64_t size, const Options& o, Tap<A>* taps) {
  const A n = static_cast<A>(size);
  const Moving<A> x = o.align_corners ? Moving<A>{(g + 1) / 2 * (n - 1), (n - 1) / 2}
                                      : Moving<A>{((g + 1) * n - 1) / 2, n / 2};
  if (o.mode == Mode::kBicubic) {
    const A base = std::floor(x.value);
    Moving<A> w[kMaxTaps];
    cubic_weights(x.value - base, w);
    for (int k = 0; k < kMaxTaps; k++) {
      const Moving<A> at =
          pad(Moving<A>{base + static_cast<A>(k - 1), 0}, size, o.padding, o.align_corners);
      taps[k] = tap_at(at.value, size, w[k].value, w[k].slope * x.slope);
    }
    return kMaxTaps;
  }
  const Moving<A> at = pad(x, size, o.padding, o.align_corners);
  if (o.mode == Mode::kNearest) {
    taps[0] = tap_at(std::nearbyint(at.value), size, A(1), A(0));
    return 1;
  }
  const A base = std::floor(at.value), fraction = at.value - base;
  taps[0] = tap_at(base, size, 1 - fraction, -at.slope);
  taps[1] = tap_at(base + 1, size, fraction, at.slope);
  return 2;
}

}  // namespace taeda::grid
