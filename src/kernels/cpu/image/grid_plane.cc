#include "kernels/cpu/image/grid_plane.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/grid_plane.cc"
#include "kernels/cpu/simd/simd.h"

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

// y * width + x as integers, -1 where they are outside (or NaN). Returns where
// they are inside.
template <class T>
TD_FN Mask<T> store_index(typename GridTaps<T>::Index* to, Vec<T> x, Vec<T> y,
                          const GridPlane& plane) {
  const typename Vec<T>::Bits bits;
  const Mask<T> inside = (x >= 0) & (x <= static_cast<T>(plane.width - 1)) & (y >= 0) &
                         (y <= static_cast<T>(plane.height - 1));
  x = select(inside, x, Vec<T>(0));
  y = select(inside, y, Vec<T>(0));
  hn::Vec<typename Vec<T>::Bits> index;
  if constexpr (kIsFloat<T>) {
    index = hn::Add(
        hn::Mul(hn::ConvertTo(bits, y.raw), hn::Set(bits, static_cast<int32_t>(plane.width))),
        hn::ConvertTo(bits, x.raw));
  } else {
    const Vec<T> rounder = kRounder<T>;
    index =
        hn::Sub(hn::BitCast(bits, (fma(y, Vec<T>(static_cast<T>(plane.width)), x) + rounder).raw),
                hn::BitCast(bits, rounder.raw));
  }
  hn::StoreU(hn::IfThenElse(hn::RebindMask(bits, inside.raw), index, hn::Set(bits, -1)), bits, to);
  return inside;
}

template <class T>
TD_FN void store_weights(GridTaps<T>* taps, int64_t p, Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
  hn::StoreInterleaved4(a.raw, b.raw, c.raw, d.raw, typename Vec<T>::Tag(), taps->weight[p]);
}

template <class T>
void find_taps(GridTaps<T>* taps, const GridPlane& plane, const T* positions, int64_t n) {
  using V = Vec<T>;
  taps->corners = plane.nearest ? 1 : 4;
  for (int64_t p = 0; p < n; p += V::size()) {
    V gx, gy;
    if (p + V::size() <= n) {
      hn::LoadInterleaved2(typename V::Tag(), positions + 2 * p, gx.raw, gy.raw);
    } else {  // a vector with zeros behind the last
      T pairs[2 * V::size()] = {};
      std::copy_n(positions + 2 * p, 2 * (n - p), pairs);
      hn::LoadInterleaved2(typename V::Tag(), pairs, gx.raw, gy.raw);
    }
    const Coordinate<T> x = find_coordinate(gx, plane.width, plane);
    const Coordinate<T> y = find_coordinate(gy, plane.height, plane);
    // What is outside weighs nothing; of a position that is not finite the weights are NaN.
    const V zero = 0, one = 1;
    if (plane.nearest) {
      const Mask<T> inside = store_index(taps->index[0] + p, round(x.value), round(y.value), plane);
      taps->inside[p] = all(inside);
      store_weights(taps, p, select(inside, one, zero), zero, zero, zero);
      continue;
    }
    const V left = floor(x.value), top = floor(y.value);
    const V wx[2] = {V(1) - (x.value - left), x.value - left};
    const V wy[2] = {V(1) - (y.value - top), y.value - top};
    taps->inside[p] = true;
    V weight[4];
    for (int k = 0; k < 4; k++) {
      const int i = k & 1, j = k >> 1;
      const Mask<T> inside = store_index(taps->index[k] + p, left + i, top + j, plane);
      taps->inside[p] &= all(inside);
      const V counts = select(inside, one, zero);
      weight[k] = wx[i] * wy[j] * counts;
      store(taps->along_x[k] + p, (i ? x.slope : -x.slope) * wy[j] * counts);
      store(taps->along_y[k] + p, wx[i] * (j ? y.slope : -y.slope) * counts);
    }
    store_weights(taps, p, weight[0], weight[1], weight[2], weight[3]);
  }
}

// The image at the indices of corner k, from position p on; 0 outside.
template <class T>
TD_FN Vec<T> corner(const T* image, const GridTaps<T>& taps, int k, int64_t p) {
  const typename Vec<T>::Tag d;
  const typename Vec<T>::Bits bits;
  const auto index = hn::Load(bits, taps.index[k] + p), zero = hn::Zero(bits);
  if (taps.inside[p]) return hn::GatherIndex(d, image, index);
  const auto outside = hn::RebindMask(d, hn::Lt(index, zero));
  return hn::IfThenZeroElse(outside, hn::GatherIndex(d, image, hn::Max(index, zero)));
}

// The sum over four corners, all inside: two pairs of neighbours, each read at once.
template <class T>
TD_FN T sum_pairs(const T* upper, const T* lower, const T* weight) {
#if HWY_TARGET == HWY_SCALAR
  return (upper[0] * weight[0] + lower[0] * weight[2]) +
         (upper[1] * weight[1] + lower[1] * weight[3]);
#else
  const hn::FixedTag<T, 2> pair;
  const auto sum = hn::MulAdd(hn::LoadU(pair, lower), hn::LoadU(pair, weight + 2),
                              hn::Mul(hn::LoadU(pair, upper), hn::LoadU(pair, weight)));
  return hn::GetLane(sum) + hn::ExtractLane(sum, 1);
#endif
}

template <int kCorners, class T>
TD_FN void read_corners(T* y, const T* image, const GridTaps<T>& taps, int64_t n) {
  using V = Vec<T>;
  for (int64_t p = 0; p < n; p += V::size()) {
    if (taps.inside[p]) {  // as the vectors do, but without gathering, at which processors are slow
      for (int64_t i = p; i < std::min(n, p + V::size()); i++)
        y[i] = kCorners == 1
                   ? image[taps.index[0][i]]
                   : sum_pairs(image + taps.index[0][i], image + taps.index[2][i], taps.weight[i]);
      continue;
    }
    V w[4];
    hn::LoadInterleaved4(typename V::Tag(), taps.weight[p], w[0].raw, w[1].raw, w[2].raw, w[3].raw);
    V sum = corner(image, taps, 0, p) * w[0];
    if (kCorners == 4) {
      sum = fma(corner(image, taps, 2, p), w[2], sum);
      sum = sum + fma(corner(image, taps, 3, p), w[3], corner(image, taps, 1, p) * w[1]);
    }
    if (p + V::size() <= n)
      store(y + p, sum);
    else
      store_n(y + p, sum, n - p);
  }
}
template <class T>
void read_taps(T* y, const T* image, const GridTaps<T>& taps, int64_t n) {
  taps.corners == 1 ? read_corners<1>(y, image, taps, n) : read_corners<4>(y, image, taps, n);
}

// The derivatives of a nearest pixel are 0.
template <class T>
void add_slopes(T* gx, T* gy, const T* image, const T* g, const GridTaps<T>& taps, int64_t n) {
  using V = Vec<T>;
  for (int64_t p = 0; p < n && taps.corners == 4; p += V::size()) {
    const V scale = p + V::size() <= n ? load(g + p) : load_n(g + p, n - p);
    V x = load(gx + p), y = load(gy + p);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
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
