#include "kernels/cpu/grid_plane.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/grid_plane.cc"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {

// A coordinate in elements of the image, and its derivative.
template <class T>
struct Coordinate {
  Vec<T> value, slope;
};

template <class T>
TD_FN Coordinate<T> clip(Coordinate<T> x, int64_t size) {
  const Vec<T> last = static_cast<T>(size - 1);
  const Mask<T> above = x.value > 0, inside = above & (x.value < last);
  return {select(above, raw_min(last, x.value), Vec<T>(0)), select(inside, x.slope, Vec<T>(0))};
}

// Folded into [low, high].
template <class T>
TD_FN Coordinate<T> reflect(Coordinate<T> x, T low, T high) {
  if (low == high) return {Vec<T>(0), Vec<T>(0)};
  const Vec<T> span = high - low, distance = abs(x.value - low);
  const Vec<T> slope = select(x.value < low, -x.slope, x.slope);
  const Vec<T> flips = floor(distance / span), extra = fmod(distance, span);
  const Mask<T> even = flips - floor(flips * 0.5) * 2 == 0;
  return {select(even, extra + low, span - extra + low), select(even, slope, -slope)};
}

template <class T>
TD_FN Coordinate<T> find_coordinate(Vec<T> g, int64_t size, const GridPlane& plane) {
  const T n = static_cast<T>(size);
  const Coordinate<T> x = plane.align_corners
                              ? Coordinate<T>{(g + 1) * 0.5 * (n - 1), Vec<T>((n - 1) / 2)}
                              : Coordinate<T>{((g + 1) * n - 1) * 0.5, Vec<T>(n / 2)};
  if (plane.padding == GridPadding::kZeros) return x;
  if (plane.padding == GridPadding::kBorder) return clip(x, size);
  const T low = plane.align_corners ? T(0) : T(-0.5);
  return clip(reflect(x, low, static_cast<T>(size - 1) - low), size);
}

// y * width + x as integers, -1 where they are outside (or NaN). Returns whether none is.
template <class T>
TD_FN bool store_place(typename GridTaps<T>::Index* to, Vec<T> x, Vec<T> y,
                       const GridPlane& plane) {
  const typename Vec<T>::Bits bits;
  const Mask<T> inside = (x >= 0) & (x <= static_cast<T>(plane.width - 1)) & (y >= 0) &
                         (y <= static_cast<T>(plane.height - 1));
  x = select(inside, x, Vec<T>(0));
  y = select(inside, y, Vec<T>(0));
  hn::Vec<typename Vec<T>::Bits> place;
  if constexpr (kIsFloat<T>) {
    place = hn::Add(
        hn::Mul(hn::ConvertTo(bits, y.raw), hn::Set(bits, static_cast<int32_t>(plane.width))),
        hn::ConvertTo(bits, x.raw));
  } else {
    const Vec<T> rounder = kRounder<T>;
    place =
        hn::Sub(hn::BitCast(bits, (fma(y, Vec<T>(static_cast<T>(plane.width)), x) + rounder).raw),
                hn::BitCast(bits, rounder.raw));
  }
  hn::StoreU(hn::IfThenElse(hn::RebindMask(bits, inside.raw), place, hn::Set(bits, -1)), bits, to);
  return all(inside);
}

template <class T>
void find_taps(GridTaps<T>* taps, const GridPlane& plane, const T* positions, int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kPoints = GridTaps<T>::kPoints;
  alignas(64) T axis[2][kPoints] = {};
  for (int64_t p = 0; p < n; p++) {
    axis[0][p] = positions[2 * p];
    axis[1][p] = positions[2 * p + 1];
  }
  taps->corners = plane.nearest ? 1 : 4;
  for (int64_t p = 0; p < n; p += V::size()) {
    const Coordinate<T> x = find_coordinate(load(axis[0] + p), plane.width, plane);
    const Coordinate<T> y = find_coordinate(load(axis[1] + p), plane.height, plane);
    if (plane.nearest) {
      taps->inside[p] = store_place(taps->place[0] + p, round(x.value), round(y.value), plane);
      store(taps->weight[0] + p, V(1));
      store(taps->along_x[0] + p, V(0));
      store(taps->along_y[0] + p, V(0));
      continue;
    }
    const V left = floor(x.value), top = floor(y.value);
    const V wx[2] = {V(1) - (x.value - left), x.value - left};
    const V wy[2] = {V(1) - (y.value - top), y.value - top};
    taps->inside[p] = true;
    for (int k = 0; k < 4; k++) {
      const int i = k & 1, j = k >> 1;
      taps->inside[p] &= store_place(taps->place[k] + p, left + i, top + j, plane);
      store(taps->weight[k] + p, wx[i] * wy[j]);
      store(taps->along_x[k] + p, (i ? x.slope : -x.slope) * wy[j]);
      store(taps->along_y[k] + p, wx[i] * (j ? y.slope : -y.slope));
    }
  }
}

// The image at places of corner k, from position p on; 0 outside.
template <class T>
TD_FN Vec<T> corner(const T* image, const GridTaps<T>& taps, int k, int64_t p) {
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto place = hn::Load(bits, taps.place[k] + p), zero = hn::Zero(bits);
  if (taps.inside[p]) return hn::GatherIndex(d, image, place);
  const auto outside = hn::RebindMask(d, hn::Lt(place, zero));
  return hn::IfThenZeroElse(outside, hn::GatherIndex(d, image, hn::Max(place, zero)));
}

template <class T>
void read_taps(T* y, const T* image, const GridTaps<T>& taps, int64_t n) {
  using V = Vec<T>;
  for (int64_t p = 0; p < n; p += V::size()) {
    V sum = 0;
    for (int k = 0; k < taps.corners; k++)
      sum = fma(corner(image, taps, k, p), load(taps.weight[k] + p), sum);
    if (p + V::size() <= n)
      store(y + p, sum);
    else
      store_n(y + p, sum, n - p);
  }
}

template <class T>
void add_slopes(T* gx, T* gy, const T* image, const T* g, const GridTaps<T>& taps, int64_t n) {
  using V = Vec<T>;
  for (int64_t p = 0; p < n; p += V::size()) {
    const V scale = p + V::size() <= n ? load(g + p) : load_n(g + p, n - p);
    V x = load(gx + p), y = load(gy + p);
    for (int k = 0; k < taps.corners; k++) {
      const V product = corner(image, taps, k, p) * scale;
      x = fma(product, load(taps.along_x[k] + p), x);
      y = fma(product, load(taps.along_y[k] + p), y);
    }
    store(gx + p, x);
    store(gy + p, y);
  }
}

template <class T>
const GridTable<T>& table() {
  static constexpr GridTable<T> entries{find_taps<T>, read_taps<T>, add_slopes<T>};
  return entries;
}
const GridTable<float>& float_table() { return table<float>(); }
const GridTable<double>& double_table() { return table<double>(); }

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(float_table);
HWY_EXPORT(double_table);
template <>
const GridTable<float>& grid_table() {
  return HWY_DYNAMIC_DISPATCH(float_table)();
}
template <>
const GridTable<double>& grid_table() {
  return HWY_DYNAMIC_DISPATCH(double_table)();
}
}  // namespace taeda::cpu
#endif
