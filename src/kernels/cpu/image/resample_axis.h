// The dimensions that interpolate resizes, by its arguments.
#pragma once

#include <array>
#include <string_view>

#include "kernels/resample_taps.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {

inline ResampleMode resample_mode(std::string_view mode) {
  if (mode == "nearest") return ResampleMode::kNearest;
  if (mode == "nearest-whole") return ResampleMode::kNearestWhole;
  if (mode == "nearest-exact") return ResampleMode::kNearestExact;
  if (mode == "linear") return ResampleMode::kLinear;
  if (mode == "cubic") return ResampleMode::kCubic;
  return mode == "cubic-aa" ? ResampleMode::kCubicAntialiased : ResampleMode::kLinearAntialiased;
}

// A negative scale leaves the dimension as it is; 0 stands for that of the sizes.
template <class A>
ResampleAxis<A> resample_axis(int64_t in, int64_t out, std::string_view mode, bool align_corners,
                              double scale) {
  if (scale < 0) {
    TD_CHECK(in == out, "interpolate: a dimension that stays has size {} and {}", in, out);
    return {in, out, ResampleMode::kStays, false, 1, 1, 1, 0};
  }
  ResampleAxis<A> axis{in, out, resample_mode(mode), align_corners, 0, 0, 1, 0};
  // A tiny scale must not become an infinite step, whose product with 0 is NaN.
  const double step = scale > 0 ? std::min(1.0 / scale, 1e18) : 0;
  axis.nearest_step =
      scale > 0 ? static_cast<float>(step) : static_cast<float>(in) / static_cast<float>(out);
  if (align_corners)
    axis.step = out > 1 ? static_cast<A>(in - 1) / static_cast<A>(out - 1) : A(0);
  else
    axis.step = scale > 0 ? static_cast<A>(step) : static_cast<A>(in) / static_cast<A>(out);
  if (!axis.is_antialiased()) return axis;
  axis.widen = std::max<A>(axis.step, 1);
  axis.support = (axis.mode == ResampleMode::kCubicAntialiased ? A(2) : A(1)) * axis.widen;
  TD_CHECK(axis.support < A(1e9), "interpolate: the antialiasing filter is too wide");
  return axis;
}

// The last three dimensions of images, of which missing ones have size one.
template <class A>
std::array<ResampleAxis<A>, 3> resample_axes(IntSpan in, IntSpan out, std::string_view mode,
                                             bool align_corners, Span<const double> scales) {
  const size_t n = in.size();
  const auto axis = [&](size_t from_last) {
    if (from_last >= n - 2) return resample_axis<A>(1, 1, "nearest", false, 0);
    const double scale = from_last < scales.size() ? scales[scales.size() - 1 - from_last] : 0;
    return resample_axis<A>(in[n - 1 - from_last], out[n - 1 - from_last], mode, align_corners,
                            scale);
  };
  return {axis(2), axis(1), axis(0)};
}

}  // namespace taeda::cpu
